"""Results of ``rulescope check``, where they were recorded: the numbers and the worlds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rulescope.assays.results import Table
from rulescope.assays.streams import world_checks
from rulescope.core.errors import RecordError
from rulescope.report.site.site_model import Damaged


def find(results: Path) -> tuple[tuple[Table, ...], Damaged]:
    """Return the tables of the checks recorded in the folder ``results``, and unreadable ones."""
    from rulescope.numerics import parity_summary

    recorded: dict[Path, Callable[[Path], tuple[Table, ...]]] = {
        results / parity_summary.FOLDER / parity_summary.FILE: lambda path: (
            parity_summary.numeric_table(parity_summary.read_check(path)),
        ),
        results / world_checks.FOLDER / world_checks.FILE: lambda path: world_checks.tables(
            world_checks.read(path)
        ),
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
