"""Lifetimes as a report shows them: read from the store and verified.

(The analysis of an assay reads its lifetimes again, on its own.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import numpy as np

from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.records import Logged, Record, Store
from rulescope.records.columns import run_row
from rulescope.records.index import record_bytes
from rulescope.records.store_layout import ID
from rulescope.report.site.site_model import Floats, Kept, Life, Plain, Trial
from rulescope.spec.world_config import WORLDS, EnvironmentSpec

ROWS = 500
"""Of a log, at most; a screen has no more points than that."""
Tell = Callable[[int, int, str], None]
"""Told how much is done, of how much, and what it is about."""


def quiet(_done: int, _total: int, _note: str) -> None:
    """Tell nobody."""


def read(store: Store, tell: Tell = quiet) -> tuple[dict[str, Life], list[tuple[str, str]]]:
    """Return every lifetime of ``store`` by id, and those that cannot be read, with the reason.

    Among these are those that were put into quarantine before, so that a store that is read twice
    says the same twice.
    """
    found: dict[str, Life] = {}
    problems: dict[str, str] = {}
    runs = list(store.ids())
    for done, run in enumerate(runs, start=1):
        try:
            record = store.read(run)
            found[run] = life(record, record_bytes(store, run))
        except RecordError as fault:
            # Where a store lies is its owner's affair.
            problems[run] = str(fault).replace(f"{store.root}/", "")
        tell(done, len(runs), run[:12])
    problems |= _put_aside(store, found)
    return found, sorted(problems.items())


def _put_aside(store: Store, found: Mapping[str, Life]) -> dict[str, str]:
    """Return why records are in quarantine, unless they were lived again, by run id."""
    said: dict[str, list[str]] = {}
    for item in store.quarantined():
        checkpoint = (item.path / f"{item.id}.npz").exists()  # which is no record
        if ID.fullmatch(item.id) and item.id not in found and not checkpoint:
            where = item.path.relative_to(store.root)
            said.setdefault(item.id, []).append(f"{item.reason}; moved to {where}")
    return {run: "; ".join(reasons) for run, reasons in said.items()}


def life(record: Record, size: int) -> Life:
    """Return what a report shows of ``record``, whose files have ``size`` bytes."""
    row = run_row(Logged(record.spec, record.manifest, record.log), size)
    rows = max((len(column) for column in record.log.values()), default=0)
    every = max(math.ceil(rows / ROWS), 1)
    spec = record.spec
    return Life(
        spec=spec,
        manifest=record.manifest,
        fields={
            "world": _world(record.spec.environment),
            **{name: _plain(kind, row[f"{kind}:{name}"]) for kind, name in _named(row)},
        },
        log={
            # From the end, so that the last row is always among them.
            name: column[::-1][::every][::-1].astype(np.float64)
            + (spec.start * spec.steps * spec.lanes if name == "steps" else 0.0)
            for name, column in sorted(record.log.items())
            if column.ndim == 1 and column.dtype.kind in "fiub"
        },
        every=every,
        kept=_kept(record.state),
        trials=_trials(record),
    )


def _world(environment: EnvironmentSpec) -> str:
    """Return what a world is called, where it has a name."""
    named = (name for name, world in WORLDS.items() if world == environment)
    return next(named, str(environment.__struct_config__.tag))


def _named(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    parts = (column.partition(":") for column in row)
    return [(kind, name) for kind, _, name in parts if name != "parents"]


def _plain(kind: str, value: Any) -> Plain:
    if kind == "n":
        return None
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value if isinstance(value, str | int | float | bool) else str(value)


def _kept(state: Arrays) -> tuple[Kept, ...]:
    return tuple(
        Kept(name, array.shape, _norm(array))
        for name, array in sorted(state.items())
        if not name.startswith(("mark.", "evaluation."))  # whole checkpoints for forks; trials
    )


def _trials(record: Record) -> tuple[Trial, ...]:
    asked = record.spec.evaluation
    if asked is None:
        return ()
    rewards = {name: record.state.get(f"evaluation.{name}/reward") for name in asked.policies}
    return tuple(
        Trial(name, asked.lanes, asked.steps, float(np.mean(reward)) / asked.steps)
        for name, reward in rewards.items()
        if reward is not None
    )


def _norm(array: np.ndarray[Any, Any]) -> float | None:
    if array.dtype.kind != "f":
        return None
    return float(np.linalg.norm(array.astype(np.float64).reshape(-1)))


def numbers(column: Floats, digits: int = 5) -> list[float | None]:
    """Return a column as JSON has it: what is not a number is null, whole numbers stay short."""
    rounded = (float(f"{value:.{digits}g}") for value in column.tolist())
    return [
        None if not math.isfinite(value) else int(value) if value.is_integer() else value
        for value in rounded
    ]
