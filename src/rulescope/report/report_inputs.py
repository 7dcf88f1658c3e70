"""Inputs of a report: the verified records of a store, and profiles, views and checks on disk."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rulescope.assays.results import Table
from rulescope.assays.streams import world_checks
from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.envs.world_names import name_world
from rulescope.records import Logged, Record, Store
from rulescope.records.columns import run_row
from rulescope.records.index import record_bytes
from rulescope.records.store_layout import ID
from rulescope.report.site_model import (
    Evaluation,
    Floats,
    MechanismView,
    Plain,
    Progress,
    RecordedRun,
    TerminalArray,
    Unreadable,
    distinct_slugs,
    ignore_progress,
)

if TYPE_CHECKING:
    from rulescope.audit.profile import Profile
    from rulescope.mechanism.view_folder import StoredView

ROWS = 500
"""Rows of a log that are shown at most; a screen has no more points than that."""
VIEW_ORDER = ("trajectory", "targets", "replay")
"""Order of the mechanism views on their page; others come after them."""


def read_runs(
    store: Store, report: Progress = ignore_progress
) -> tuple[dict[str, RecordedRun], list[tuple[str, str]]]:
    """Return every run of ``store`` by id, and those that cannot be read, with the reason.

    Records that were quarantined earlier are among the latter, so that a store that is read twice
    yields the same report twice.
    """
    found: dict[str, RecordedRun] = {}
    problems: dict[str, str] = {}
    ids = list(store.ids())
    for done, run in enumerate(ids, start=1):
        try:
            found[run] = recorded_run(store.read(run), record_bytes(store, run))
        except RecordError as fault:
            problems[run] = _without_folder(fault, store.root)
        report(done, len(ids), run[:12])
    problems |= _quarantined(store, found)
    return found, sorted(problems.items())


def _without_folder(fault: RecordError, folder: Path) -> str:
    """Return an error message without the place of ``folder``, which is private to its owner."""
    return str(fault).replace(f"{folder}/", "")


def _quarantined(store: Store, found: Mapping[str, RecordedRun]) -> dict[str, str]:
    """Return why records are in quarantine, by run id, unless the run has a new record."""
    reasons: dict[str, list[str]] = {}
    for item in store.quarantined():
        checkpoint = (item.path / f"{item.id}.npz").exists()  # not a record
        if ID.fullmatch(item.id) and item.id not in found and not checkpoint:
            place = item.path.relative_to(store.root)
            reasons.setdefault(item.id, []).append(f"{item.reason}; moved to {place}")
    return {run: "; ".join(texts) for run, texts in reasons.items()}


def recorded_run(record: Record, size: int) -> RecordedRun:
    """Return what a report shows of ``record``, whose files have ``size`` bytes."""
    row = run_row(Logged(record.spec, record.manifest, record.log), size)
    rows = max((len(column) for column in record.log.values()), default=0)
    every = max(math.ceil(rows / ROWS), 1)
    spec = record.spec
    return RecordedRun(
        spec=spec,
        manifest=record.manifest,
        fields={
            "world": name_world(record.spec.environment),
            **{name: _plain(kind, row[f"{kind}:{name}"]) for kind, name in _columns(row)},
        },
        log={
            # Thinned from the end, so that the last row is always kept.
            name: column[::-1][::every][::-1].astype(np.float64)
            + (spec.start * spec.steps * spec.lanes if name == "steps" else 0.0)
            for name, column in sorted(record.log.items())
            if column.ndim == 1 and column.dtype.kind in "fiub"
        },
        every=every,
        terminal=_terminal_arrays(record.state),
        evaluations=_evaluations(record),
    )


def _columns(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return kind and name of the columns of an index row."""
    parts = (column.partition(":") for column in row)
    return [(kind, name) for kind, _, name in parts if name != "parents"]


def _plain(kind: str, value: Any) -> Plain:
    if kind == "n":
        return None
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value if isinstance(value, str | int | float | bool) else str(value)


def _terminal_arrays(state: Arrays) -> tuple[TerminalArray, ...]:
    return tuple(
        TerminalArray(name, array.shape, _norm(array))
        for name, array in sorted(state.items())
        if not name.startswith(("mark.", "evaluation."))  # checkpoints for forks; evaluations
    )


def _evaluations(record: Record) -> tuple[Evaluation, ...]:
    asked = record.spec.evaluation
    if asked is None:
        return ()
    rewards = {name: record.state.get(f"evaluation.{name}/reward") for name in asked.policies}
    return tuple(
        Evaluation(name, asked.lanes, asked.steps, float(np.mean(reward)) / asked.steps)
        for name, reward in rewards.items()
        if reward is not None
    )


def _norm(array: np.ndarray[Any, Any]) -> float | None:
    if array.dtype.kind != "f":
        return None
    return float(np.linalg.norm(array.astype(np.float64).reshape(-1)))


def json_numbers(column: Floats, digits: int = 5) -> list[float | None]:
    """Return a column as JSON: NaN and infinities are null, whole numbers are integers."""
    rounded = (float(f"{value:.{digits}g}") for value in column.tolist())
    return [
        None if not math.isfinite(value) else int(value) if value.is_integer() else value
        for value in rounded
    ]


def find_profiles(results: Path) -> tuple[dict[str, Profile], Unreadable]:
    """Return the audit profiles below ``results`` by folder name, and unreadable ones."""
    from rulescope.audit.profile import FILE, read

    paths = sorted(results.glob(f"**/{FILE}")) if results.is_dir() else []
    found: dict[str, Profile] = {}
    unreadable: list[tuple[str, str]] = []
    for path in paths:
        name = path.parent.relative_to(results).as_posix()
        try:
            found[name] = read(path)
        except RecordError as fault:
            unreadable.append((name, _without_folder(fault, results)))
    return found, tuple(unreadable)


def find_views(results: Path) -> tuple[tuple[MechanismView, ...], Unreadable]:
    """Return the mechanism views in the folder ``results``, and damaged or unreadable ones."""
    from rulescope.mechanism.view_folder import read_files, read_view, view_folders

    found: list[tuple[str, StoredView, dict[str, bytes]]] = []
    unreadable: list[tuple[str, str]] = []
    for folder in view_folders(results):
        try:
            view = read_view(folder)
            found.append((folder.name, view, read_files(view)))
        except RecordError as fault:
            unreadable.append((folder.name, _without_folder(fault, results)))
    found.sort(key=lambda each: (_view_place(each[1].name), each[0]))
    slugs = distinct_slugs(name for name, _, _ in found)
    views = (
        MechanismView(slug, view, files)
        for slug, (_, view, files) in zip(slugs, found, strict=True)
    )
    return tuple(views), tuple(unreadable)


def _view_place(view: str) -> int:
    return VIEW_ORDER.index(view) if view in VIEW_ORDER else len(VIEW_ORDER)


def find_checks(results: Path) -> tuple[tuple[Table, ...], Unreadable]:
    """Return the tables of ``rulescope check`` in the folder ``results``, and unreadable ones."""
    from rulescope.numerics import parity_table

    recorded: dict[Path, Callable[[Path], tuple[Table, ...]]] = {
        results / parity_table.FOLDER / parity_table.FILE: lambda path: (
            parity_table.numeric_table(parity_table.read_check(path)),
        ),
        results / world_checks.FOLDER / world_checks.FILE: lambda path: world_checks.tables(
            world_checks.read(path)
        ),
    }
    tables: list[Table] = []
    unreadable: list[tuple[str, str]] = []
    for path, read in recorded.items():
        if path.is_file():
            try:
                tables += read(path)
            except RecordError as fault:
                unreadable.append((path.parent.name, _without_folder(fault, results)))
    return tuple(tables), tuple(unreadable)
