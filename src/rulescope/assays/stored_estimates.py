"""Estimates in results folders as typed tables: for SQL queries, and as a Parquet file.

A results folder is data from elsewhere: only regular files of a bounded size are read, and each
must have the fields and types of :class:`StoredResults`.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from rulescope.assays import published
from rulescope.assays.estimates import Label
from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records.columns import Row, escaped
from rulescope.records.typed_tables import TypedTable

INDEX = "results.json"
"""The file of a results folder that names every estimate, every lifetime used and every file."""
MAX_BYTES = 64 << 20
"""Of one such file."""
MAX_FOLDERS = 10_000
"""Results folders that are read at once, at most."""
MAX_LABELS = 200
"""Different labels of all estimates together, at most; the assays have about twenty."""

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]

_ABOUT = {
    "assay": "t",
    "rule": "t",
    "agent": "t",
    "iterations": "i",
    "name": "t",
    "quantity": "t",
}
_NUMBERS = {
    "value": "f",
    "low": "f",
    "high": "f",
    "n": "i",
    "draws": "i",
    "family": "i",
    "method": "t",
    "other_grid": "b",
    "seeds": "l",
    "published_value": "f",
    "published_low": "f",
    "published_high": "f",
    "published_n": "i",
    "published_family": "i",
}
_FOLDER = {"folder": "t"}
ESTIMATE_COLUMNS = tuple(_FOLDER | _ABOUT | _NUMBERS)
"""Columns that every table of estimates has; the labels stand between quantity and value."""
RUN_COLUMNS = {"folder": "t", "assay": "t", "id": "t", "science_hash": "t"}
"""Columns of ``estimate_runs``: name to kind."""


class StoredRow(msgspec.Struct, frozen=True):
    """One estimate of a results folder; a number that is not finite is None."""

    quantity: str
    labels: dict[str, Label]
    value: float | None
    low: float | None
    high: float | None
    n: int
    draws: int
    family: int
    method: str
    seeds: list[float | None] | None
    """[seeds]: the values of the single lifetimes, if they are known."""
    other_grid: bool


class StoredResults(msgspec.Struct, frozen=True):
    """What a results folder says of its estimates."""

    assay: str
    rule: str
    agent: str
    iterations: int
    estimates: dict[str, StoredRow]
    """By printed name."""
    runs: dict[Sha256, Sha256]
    """The science hash of every lifetime used, by run id."""


class _Kind(msgspec.Struct):
    """Whether a file is the index of a mechanism view, whose observations are no estimates."""

    view: str | None = None


def decode_results(content: bytes, path: Path) -> StoredResults:
    """Return the results in ``content``, which was read from ``path``."""
    try:
        return msgspec.json.decode(content, type=StoredResults)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        raise RecordError(
            f"{path}: not the results of an assay, or those of an earlier version ({fault}); "
            "run the assay again"
        ) from None


def read_results(root: Path) -> dict[str, StoredResults]:
    """Return the results of all assays below ``root``, by folder relative to it.

    Mechanism views are left out. A file that cannot be read as results is an error.
    """
    if not disk.is_folder(root):
        raise RecordError(f"{root}: no such folder")
    with disk.reading(root):
        paths = sorted(islice(root.rglob(INDEX), MAX_FOLDERS + 1))
    if len(paths) > MAX_FOLDERS:
        raise RecordError(f"{root}: has more than {MAX_FOLDERS:,} results folders")
    found = {}
    for path in paths:
        content = _read_bounded(path)
        if not _is_view(content):
            found[path.parent.relative_to(root).as_posix()] = decode_results(content, path)
    return found


def _read_bounded(path: Path) -> bytes:
    with disk.reading(path):
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):  # a link leads anywhere, reading a pipe does not end
            raise RecordError(f"{path}: not a regular file, and is not read")
        if about.st_size > MAX_BYTES:
            raise RecordError(f"{path}: too large ({about.st_size:,} bytes)")
        return path.read_bytes()


def _is_view(content: bytes) -> bool:
    try:
        return msgspec.json.decode(content, type=_Kind).view is not None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False  # decode_results explains what is wrong


def make_tables(root: Path) -> dict[str, TypedTable]:
    """Return the tables ``estimates`` and ``estimate_runs`` of all results below ``root``."""
    found = read_results(root)
    estimates = [
        {"t:folder": folder} | row
        for folder, results in found.items()
        for row in estimate_rows(results)
    ]
    runs: list[Row] = [
        {"t:folder": folder, "t:assay": results.assay, "t:id": run, "t:science_hash": digest}
        for folder, results in found.items()
        for run, digest in results.runs.items()
    ]
    columns = _FOLDER | estimate_columns(found.values())
    return {
        "estimates": TypedTable(columns, estimates),
        "estimate_runs": TypedTable(RUN_COLUMNS, runs),
    }


def estimate_table(results: StoredResults) -> TypedTable:
    """Return the estimates of one results folder as a table."""
    return TypedTable(estimate_columns([results]), list(estimate_rows(results)))


def estimate_columns(found: Iterable[StoredResults]) -> dict[str, str]:
    """Return the columns of a table of estimates in their order: name to kind."""
    rows = (row for results in found for row in results.estimates.values())
    names = sorted({_label_column(name) for row in rows for name in row.labels})
    if len(names) > MAX_LABELS:
        raise RecordError(f"the estimates have {len(names):,} different labels: too many")
    return _ABOUT | dict.fromkeys(names, "t") | _NUMBERS


def estimate_rows(results: StoredResults) -> Sequence[Row]:
    """Return a row for each estimate, beside the published value of the same name."""
    printed = published.estimates(results.assay)
    rows = []
    for name, one in results.estimates.items():
        row: Row = {
            "t:assay": results.assay,
            "t:rule": results.rule,
            "t:agent": results.agent,
            "i:iterations": results.iterations,
            "t:name": name,
            "t:quantity": one.quantity,
            "f:value": one.value,
            "f:low": one.low,
            "f:high": one.high,
            "i:n": one.n,
            "i:draws": one.draws,
            "i:family": one.family,
            "t:method": one.method,
            "b:other_grid": one.other_grid,
            "l:seeds": one.seeds,
        }
        for label, value in one.labels.items():
            row[f"{'t' if isinstance(value, str) else 'f'}:{_label_column(label)}"] = value
        if name in printed:
            theirs = printed[name]
            row |= {
                "f:published_value": theirs.value,
                "f:published_low": None if math.isnan(theirs.low) else theirs.low,
                "f:published_high": None if math.isnan(theirs.high) else theirs.high,
                "i:published_n": theirs.n,
                "i:published_family": theirs.family,
            }
        rows.append(row)
    return rows


def _label_column(label: str) -> str:
    """Return the column of a label: its name, unless another column has it."""
    name = escaped(label)
    return f"label_{name}" if name in ESTIMATE_COLUMNS else name
