"""Packages that offer plug-ins, as an installer would leave them; nothing is installed."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
EXAMPLE = EXAMPLES / "plugin"
CONTINUAL = EXAMPLES / "continual"

Points = Mapping[str, Mapping[str, str]]
"""Entry points: by group, then by name."""

RULE = """
import torch
from rulescope.learners.update_rule import UpdateRule

class Counted(UpdateRule):
    LEARNING_RATE = 0.01

    def start(self):
        return {"count": torch.zeros(2)}

    def loss(self, seen, state):
        weight = 1.0 / (1.0 + state["count"][0])
        return -(weight * seen.rewards * seen.chosen()).mean(), {"count": state["count"] + 1.0}
"""
"""A rule whose history is how often it has learned."""


def metadata(folder: Path, name: str, points: Points) -> None:
    """Write the ``dist-info`` of a distribution called ``name``, version 1.0, into ``folder``."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, offered in points.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in offered.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


class Site:
    """A folder of packages that Python can import from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def offer(self, name: str, files: Mapping[str, str], points: Points) -> None:
        """Install a distribution called ``name``: its files by path, and its entry points."""
        for path, text in files.items():
            self.write(path, text)
        metadata(self.folder, name, points)

    def write(self, path: str, text: str) -> None:
        """Write one file, such as ``package/module.py``."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    def rule(self, source: str = RULE, name: str = "counted", attribute: str = "Counted") -> None:
        """Install the package ``rules_of_others`` with one rule in it."""
        self.offer(
            "rules-of-others",
            {"rules_of_others/__init__.py": "", "rules_of_others/rule.py": source},
            {"rulescope.rules": {name: f"rules_of_others.rule:{attribute}"}},
        )

    def world(self, source: str, name: str, attribute: str) -> None:
        """Install the module ``a_world`` with one world in it."""
        points = {"rulescope.worlds": {name: f"a_world:{attribute}"}}
        self.offer("a-world", {"a_world.py": source}, points)


@contextmanager
def importable(folder: Path, also: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let Python find what is in the two folders, in worker processes too; forget it afterwards."""
    folder.mkdir(exist_ok=True)
    monkeypatch.syspath_prepend(str(also))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) or ""
        if origin.startswith((str(folder), str(also))):
            del sys.modules[name]


@contextmanager
def example_installed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, example: Path = EXAMPLE
) -> Iterator[None]:
    """Let the package in the folder ``example`` be as if it were installed."""
    project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
    metadata(folder, project["name"], project["entry-points"])
    with importable(folder, example / "src", monkeypatch):
        yield
