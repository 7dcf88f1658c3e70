"""Imports between the packages of the project flow one way, and every module has its own name."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "rulescope"

TOP_LEVEL = "lifetime"
"""The layer of the modules that lie directly in the package."""

LAYERS = (
    ("core",),
    ("stats",),
    ("envs",),
    ("rules",),
    ("learners",),
    ("kit",),
    ("run_spec",),
    ("render",),
    ("records",),
    (TOP_LEVEL,),
    ("engine",),
    ("assays",),
    ("audit", "mechanism", "discover", "numerics"),
    ("claims",),
    ("report",),
    ("cli",),
)
"""A package imports packages of earlier layers only, not even its neighbours in one layer."""

KNOWN: set[tuple[str, str]] = set()
"""Upward imports that are still there. Remove an entry with its last import; add none."""

KNOWN_CYCLES: set[str] = set()
"""Packages in which modules still import each other. Add none."""

KNOWN_STEMS: set[str] = set()
"""File names that still occur twice. Remove an entry with its second file; add none."""

EXEMPT = {"rulescope", "rulescope.api"}
"""``rulescope/__init__.py`` and its functions are the public surface: they may import everything,
and nothing imports them."""


def modules() -> dict[str, Path]:
    """Return the file of every module of the package, by dotted name."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def layer_of(module: str) -> str:
    """Return the package that ``module`` belongs to."""
    name = module.split(".")[1]
    return name if (ROOT / name).is_dir() or name == "run_spec" else TOP_LEVEL


def imported_by(source: str) -> Iterator[str]:
    """Yield the modules of the package that ``source`` imports, wherever the import stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used"
            names = [f"{node.module}.{each.name}" for each in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "rulescope":
                yield name if name in MODULES else name.rpartition(".")[0] or name


@cache
def imports() -> dict[str, set[str]]:
    """Return the imported modules of each module that is not exempt."""
    return {
        name: set(imported_by(path.read_text())) - {name}
        for name, path in MODULES.items()
        if name not in EXEMPT
    }


def upward(graph: dict[str, set[str]]) -> dict[tuple[str, str], list[str]]:
    """Return the imports that go up or sideways, by the two packages."""
    rank = {name: place for place, layer in enumerate(LAYERS) for name in layer}
    found: dict[tuple[str, str], list[str]] = {}
    for module, targets in graph.items():
        here = layer_of(module)
        for target in sorted(targets - EXEMPT):
            there = layer_of(target)
            if there != here and rank[there] >= rank[here]:
                found.setdefault((here, there), []).append(f"{module} imports {target}")
    return found


def test_every_package_has_a_layer() -> None:
    packages = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert packages | {"run_spec", TOP_LEVEL} == {name for layer in LAYERS for name in layer}


def test_no_package_imports_a_later_one() -> None:
    found = upward(imports())
    new = [line for edge in found.keys() - KNOWN for line in found[edge]]
    assert not new, "\n".join(new)


def test_no_known_exception_is_out_of_date() -> None:
    assert upward(imports()).keys() >= KNOWN, "remove the entries of KNOWN that no import needs"


def test_nothing_imports_the_public_surface() -> None:
    assert [name for name, targets in imports().items() if targets & EXEMPT] == []


def has_cycle(package: str) -> bool:
    """Return whether modules of ``package`` import each other."""
    # An __init__ only names what the modules of its package hold, so it has no part in a cycle.
    inside = {
        name
        for name, path in MODULES.items()
        if name not in EXEMPT and path.name != "__init__.py" and layer_of(name) == package
    }
    try:
        TopologicalSorter({name: imports()[name] & inside for name in inside}).prepare()
    except CycleError:
        return True
    return False


def test_no_modules_of_a_package_import_each_other() -> None:
    assert {name for layer in LAYERS for name in layer if has_cycle(name)} == KNOWN_CYCLES


def test_no_two_modules_have_one_file_name() -> None:
    stems = Counter(path.stem for path in MODULES.values() if path.name != "__init__.py")
    twice = {stem for stem, count in stems.items() if count > 1}
    assert twice == KNOWN_STEMS


def test_lazy_and_typing_imports_count() -> None:
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from rulescope.cli.main import app

def late():
    import rulescope.assays.results_folder
    from rulescope import lifetime, __version__
"""
    assert set(imported_by(source)) == {
        "rulescope.cli.main",
        "rulescope.assays.results_folder",
        "rulescope.lifetime",
        "rulescope",
    }
