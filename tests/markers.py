"""The marker of every test: one of fast, slow, torture, browser and ray.

Markers are assigned here and nowhere else: first by folder and file, then by the list of slow
tests, which holds what took long when it was measured. All other tests are fast. To measure again:
``pytest --durations=0``.
"""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent

PLACES: dict[str, str] = {
    "torture/": "torture",
    "report/site/test_browser.py": "browser",
    "engine/test_cluster.py": "ray",
}
"""Marker of the tests below a folder or in a file."""

SLOW: tuple[str, ...] = ()
"""Folders, files, or single tests (``file::test``) that take more than a second or two."""


def marker_of(path: Path, name: str) -> str | None:
    """Return the marker of the test called ``name`` in the file ``path``; None if not in here."""
    if not path.is_relative_to(TESTS):
        return None
    place = path.relative_to(TESTS).as_posix()
    for start, marker in PLACES.items():
        if place.startswith(start):
            return marker
    test = f"{place}::{name.partition('[')[0]}"
    return "slow" if test.startswith(SLOW) else "fast"
