"""Programs that tests need besides Python, and what is reported where one is missing.

On a user's machine a test that needs a missing program is skipped, and the last lines of the output
list what was left out and how to install it. Continuous integration sets ``CI=true`` or
``RULESCOPE_TEST_ALL=1``: there a missing program is a failure, and so is any skipped test.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

STRICT_VARIABLES = ("CI", "RULESCOPE_TEST_ALL")
NO = ("", "0", "false", "no")
BESIDE = Path(__file__).parents[2] / "shared"
"""Optional folder with released weights and the golden arrays that contain them."""
LEFT_OUT = "left out"
"""Property in which a test that passes records what it could not test on this machine."""


class Program(NamedTuple):
    """A program that some tests need and pip does not install."""

    title: str
    names: tuple[str, ...]
    """Names of its executable; any of them will do."""
    advice: str
    """How to get it: an imperative sentence without its full stop."""


CHROMIUM = Program(
    "Chromium",
    ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "install it (Debian and Ubuntu: apt-get install chromium libatomic1) or name its path in "
    "RULESCOPE_CHROMIUM",
)
GIT = Program("git", ("git",), "install it (Debian and Ubuntu: apt-get install git)")


def strict(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether every test must run, as in continuous integration."""
    return any(environment.get(name, "").lower() not in NO for name in STRICT_VARIABLES)


def find(program: Program) -> str | None:
    """Return the path of ``program``, or None."""
    return next((path for name in program.names if (path := shutil.which(name))), None)


def require(program: Program, path: str | None) -> str:
    """Return ``path``; if there is none, skip the test, or fail it where nothing may be skipped."""
    if path is not None:
        return path
    missing = f"no {program.title} on this machine: {program.advice}"
    if strict():
        pytest.fail(missing)
    pytest.skip(missing)


def skipped(reports: Iterable[Any]) -> list[str]:
    """Return one sentence for each reason why tests were skipped, with their number."""
    reasons = Counter(_reason(report) for report in reports)
    return [
        f"{number} test{'' if number == 1 else 's'} skipped: {reason}."
        for reason, number in reasons.items()
    ]


def _reason(report: Any) -> str:
    """Return why a test was skipped, as the test gave it."""
    _, _, reason = report.longrepr  # (file, line, "Skipped: ...")
    return str(reason).removeprefix("Skipped: ")


def left_out(reports: Iterable[Any]) -> list[str]:
    """Return sentences on what tests that passed could not test on this machine."""
    sentences = [
        f"Left out: {what}."
        for report in reports
        for name, what in report.user_properties
        if name == LEFT_OUT
    ]
    if not (BESIDE / "golden").is_dir():
        sentences.append(
            f"Left out: comparisons with released weights, which are not kept in the repository "
            f"(expected in {os.path.relpath(BESIDE)}); random weights were compared."
        )
    return list(dict.fromkeys(sentences))
