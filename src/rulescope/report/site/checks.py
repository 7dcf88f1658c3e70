"""Results of ``rulescope check``, where they were recorded: the numbers and the worlds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rulescope.assays import worlds
from rulescope.assays.results import Table
from rulescope.errors import RecordError
from rulescope.report.numeric_table import numeric_table
from rulescope.report.site.model import Damaged


def find(results: Path) -> tuple[tuple[Table, ...], Damaged]:
    """Return the tables of the checks recorded in the folder ``results``, and unreadable ones."""
    from rulescope.numerics import summary

    recorded: dict[Path, Callable[[Path], tuple[Table, ...]]] = {
        results / summary.FOLDER / summary.FILE: lambda path: (numeric_table(summary.read(path)),),
        results / worlds.FOLDER / worlds.FILE: lambda path: worlds.tables(worlds.read(path)),
    }
    tables: list[Table] = []
    damaged: list[tuple[str, str]] = []
    for path, read in recorded.items():
        if path.is_file():
            try:
                tables += read(path)
            except RecordError as fault:
                # Where results lie is their owner's affair.
                damaged.append((path.parent.name, str(fault).replace(f"{results}/", "")))
    return tuple(tables), tuple(damaged)
