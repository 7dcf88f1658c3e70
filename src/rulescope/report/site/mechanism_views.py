"""Mechanism views, where there are any: read and verified, as records are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.core.errors import RecordError
from rulescope.report.site.site_model import Damaged, Exhibited
from rulescope.report.site.slugs import distinct

if TYPE_CHECKING:
    from rulescope.mechanism.view_folder import StoredView

ORDER = ("trajectory", "targets", "replay")
"""As they are told about; others come after them."""


def find(results: Path) -> tuple[tuple[Exhibited, ...], Damaged]:
    """Return the views in the folder ``results``, and those that are no longer what was written."""
    from rulescope.mechanism.view_folder import read_files, read_view, view_folders

    found: list[tuple[str, StoredView, dict[str, bytes]]] = []
    damaged: list[tuple[str, str]] = []
    for folder in view_folders(results):
        try:
            shown = read_view(folder)
            found.append((folder.name, shown, read_files(shown)))
        except RecordError as fault:
            # Where results lie is their owner's affair.
            damaged.append((folder.name, str(fault).replace(f"{results}/", "")))
    found.sort(key=lambda each: (_place(each[1].name), each[0]))
    slugs = distinct(name for name, _, _ in found)
    views = (
        Exhibited(slug, shown, files) for slug, (_, shown, files) in zip(slugs, found, strict=True)
    )
    return tuple(views), tuple(damaged)


def _place(view: str) -> int:
    return ORDER.index(view) if view in ORDER else len(ORDER)
