"""Finished records in the formats of tools that draw curves: TensorBoard and Weights & Biases.

Both are optional extras. Nothing leaves the machine: files are written, and that is all.
"""

from __future__ import annotations

import importlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np

from rulescope.core import disk
from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.core.structs import expanded
from rulescope.records.record import Logged
from rulescope.records.store import Problem, Store

AXES = ("iteration", "steps")
"""Columns that are counted along; the first one that a log has is the step of its curves."""

Write = Callable[[Logged, Path], None]


def needs(module: str, extra: str) -> ModuleType:
    """Import a module of an extra, or say what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as fault:
        if (fault.name or "").partition(".")[0] not in (module.partition(".")[0], ""):
            raise  # it is there, and something that it needs is not
        raise RecordError(f"this needs an extra: pip install 'rulescope[{extra}]'") from None


def title(logged: Logged) -> str:
    """Return a name for people that no two records share: learner, world, seed, short id."""
    learner = logged.spec.learner.__struct_config__.tag
    world = logged.spec.environment.__struct_config__.tag
    return f"{learner}-{world}-seed{logged.spec.seed}-{logged.manifest.id[:12]}"


def points(log: Arrays) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield each row of a log: its step, and the values that are finite numbers.

    A column [rows, k] gives k values, ``name/0`` and so on; text is left out.
    """
    numbers = {name: column for name, column in log.items() if column.dtype.kind in "biuf"}
    axis = next((numbers[name] for name in AXES if name in numbers), None)
    for row in range(max(map(len, numbers.values()), default=0)):
        values = {}
        for name, column in numbers.items():
            for place, value in enumerate(np.atleast_1d(column[row])):
                if np.isfinite(value):
                    values[name if column.ndim == 1 else f"{name}/{place}"] = float(value)
        counted = axis is not None and axis.ndim == 1 and np.isfinite(axis[row])
        yield int(axis[row]) if axis is not None and counted else row, values


def about(logged: Logged) -> dict[str, Any]:
    """Return what a person may want to know of a record, as plain data."""
    manifest = logged.manifest
    rule = None if manifest.rule is None else msgspec.to_builtins(manifest.rule)
    return {
        "id": manifest.id,
        "science_hash": manifest.science_hash,
        "spec": expanded(logged.spec),
        "rule": rule,
        "source": manifest.source,
        "runtime": manifest.runtime,
        "started": manifest.started,
        "seconds": manifest.seconds,
    }


def export(
    store: Store, runs: Iterable[str], out: Path, write: Write, name: Callable[[Logged], str]
) -> tuple[int, int, list[Problem]]:
    """Give every record a folder under ``out``, filled by ``write``, whole or not at all.

    What is there already is kept, as records never change. Return how many folders are new, how
    many were there, and what is wrong with the records left out.
    """
    made, kept, problems = 0, 0, []
    for run in runs:
        try:
            logged = store.read_log(run)
        except RecordError as fault:
            problems.append(Problem(run, str(fault)))
            continue
        place = out / name(logged)
        if place.exists():
            kept += 1
            continue
        with disk.writing(place), _half(out) as half:
            write(logged, half)
            half.rename(place)
        made += 1
    return made, kept, problems


@contextmanager
def _half(out: Path) -> Iterator[Path]:
    out.mkdir(parents=True, exist_ok=True)
    half = out / f".half-{uuid.uuid4().hex[:12]}"
    half.mkdir()
    try:
        yield half
    finally:
        shutil.rmtree(half, ignore_errors=True)


# TensorBoard


def to_tensorboard(store: Store, runs: Iterable[str], out: Path) -> tuple[int, int, list[Problem]]:
    """Write an event file for each record, in a folder of its own."""
    needs("tensorboardX.proto.event_pb2", "tensorboard")

    def write(logged: Logged, folder: Path) -> None:
        began, took = _seconds(logged.manifest.started), logged.manifest.seconds
        rows = (
            (step, {tag: value for tag, value in values.items() if tag not in AXES})
            for step, values in points(logged.log)
        )
        event_file(folder, rows, began, took / logged.spec.iterations)
        (folder / "record.json").write_bytes(msgspec.json.encode(about(logged)))

    return export(store, runs, out, write, title)


def event_file(
    folder: Path, rows: Iterable[tuple[int, dict[str, float]]], began: float, pace: float
) -> None:
    """Write ``rows`` of values by step for TensorBoard; a step is said to take ``pace`` seconds."""
    protos = needs("tensorboardX.proto.event_pb2", "tensorboard")
    summaries = needs("tensorboardX.proto.summary_pb2", "tensorboard")
    writers = needs("tensorboardX.record_writer", "tensorboard")
    # Not the library's own file name: it holds the name of the machine, and the present time.
    record = writers.RecordWriter(str(folder / f"events.out.tfevents.{int(began)}.rulescope"))
    try:
        version = protos.Event(wall_time=began, file_version="brain.Event:2")
        record.write(version.SerializeToString())
        for step, values in rows:
            found = [summaries.Summary.Value(tag=t, simple_value=v) for t, v in values.items()]
            event = protos.Event(
                wall_time=began + pace * step, step=step, summary=summaries.Summary(value=found)
            )
            record.write(event.SerializeToString())
    finally:
        record.close()


def _seconds(started: str) -> float:
    try:
        return datetime.fromisoformat(started).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


# Weights & Biases

_QUIET = {
    "mode": "offline",
    "silent": True,
    "host": "",
    "username": "",
    "email": "",
    "program": "rulescope",
    "console": "off",
    "disable_git": True,
    "disable_code": True,
    "disable_job_creation": True,
    "save_code": False,
    "x_disable_stats": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_save_requirements": False,
}
"""Nothing about this machine, and nothing over the network."""


def to_wandb(
    store: Store, runs: Iterable[str], out: Path, project: str = "rulescope"
) -> tuple[int, int, list[Problem]]:
    """Write an offline run for each record, which ``wandb sync`` can send where one likes."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # it would call home about crashes
    wandb = needs("wandb", "wandb")
    known = wandb.Settings.model_fields
    settings = {name: value for name, value in _QUIET.items() if name in known}

    def write(logged: Logged, folder: Path) -> None:
        key = logged.manifest.id[:20]
        run = wandb.init(
            project=project,
            id=key,
            name=title(logged),
            config=about(logged),
            dir=str(folder),
            mode="offline",
            reinit="finish_previous",
            settings=wandb.Settings(**settings),
        )
        for step, values in points(logged.log):
            run.log(values, step=step)
        run.finish()
        # Its own folder is named by the present time; the record's file is all that counts.
        [file] = folder.glob(f"wandb/offline-run-*/run-{key}.wandb")
        file.rename(folder / file.name)
        shutil.rmtree(folder / "wandb")

    def name(logged: Logged) -> str:
        moment = datetime.fromtimestamp(_seconds(logged.manifest.started), tz=UTC)
        return f"offline-run-{moment:%Y%m%d_%H%M%S}-{logged.manifest.id[:20]}"

    try:
        return export(store, runs, out / "wandb", write, name)
    finally:
        wandb.teardown()
