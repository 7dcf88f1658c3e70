"""Mechanism views, where there are any: read and verified, as records are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.errors import RecordError
from rulescope.report.files import stem
from rulescope.report.site.model import Exhibited

if TYPE_CHECKING:
    from rulescope.mechanism.folder import Exhibit

ORDER = ("trajectory", "targets", "replay")
"""As they are told about; others come after them."""
Damaged = tuple[tuple[str, str], ...]
"""Folders that are left out: name, reason."""


def find(results: Path) -> tuple[tuple[Exhibited, ...], Damaged]:
    """Return the views in the folder ``results``, and those that are no longer what was written."""
    from rulescope.mechanism.folder import content, exhibit, folders

    found: list[tuple[str, Exhibit, dict[str, bytes]]] = []
    damaged: list[tuple[str, str]] = []
    for folder in folders(results):
        try:
            shown = exhibit(folder)
            found.append((folder.name, shown, content(shown)))
        except RecordError as fault:
            # Where results lie is their owner's affair.
            damaged.append((folder.name, str(fault).replace(f"{results}/", "")))
    found.sort(key=lambda each: (_place(each[1].name), each[0]))
    slugs = _distinct(name for name, _, _ in found)
    views = (
        Exhibited(slug, shown, files) for slug, (_, shown, files) in zip(slugs, found, strict=True)
    )
    return tuple(views), tuple(damaged)


def _place(view: str) -> int:
    return ORDER.index(view) if view in ORDER else len(ORDER)


def _distinct(names: Iterable[str]) -> list[str]:
    """Return a name for each that can stand in an address, no two alike."""
    made: list[str] = []
    for name in names:
        slug, turn = stem(name), 2
        while slug in made:
            slug, turn = f"{stem(name)}-{turn}", turn + 1
        made.append(slug)
    return made
