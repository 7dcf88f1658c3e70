"""Export of records to TensorBoard and Weights & Biases files.

Both are optional extras. Only files are written; nothing is sent anywhere.
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
from rulescope.records.store import Problem, Store, read_each

AXES = ("iteration", "steps")
"""Columns for the x-axis; the first one that a log has is the step of its curves."""

Write = Callable[[Logged, Path], None]


def import_extra(module: str, extra: str) -> ModuleType:
    """Import a module of an extra; without it, raise an error that says what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as fault:
        if (fault.name or "").partition(".")[0] not in (module.partition(".")[0], ""):
            raise  # the module is installed, but not what it imports
        raise RecordError(f"this needs an extra: pip install 'rulescope[{extra}]'") from None


def title(logged: Logged) -> str:
    """Return a readable, unique name of a record: learner, world, seed, short id."""
    learner = logged.spec.learner.__struct_config__.tag
    world = logged.spec.environment.__struct_config__.tag
    return f"{learner}-{world}-seed{logged.spec.seed}-{logged.manifest.id[:12]}"


def points(log: Arrays) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield the step and the finite values of each row of a log.

    A column [rows, k] gives k values, ``name/0`` and so on; text is skipped.
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


def summarize(logged: Logged) -> dict[str, Any]:
    """Return the specification and provenance of a record as plain data."""
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
    """Let ``write`` fill a folder under ``out`` for every record, whole or not at all.

    Existing folders are kept, since records never change. Return the number of new folders, the
    number of existing ones, and the problems of records left out.
    """
    made, kept = 0, 0
    problems: list[Problem] = []
    for _, logged in read_each(runs, store.read_log, problems):
        folder = out / name(logged)
        if folder.exists():
            kept += 1
            continue
        with disk.writing(folder), _partial_folder(out) as partial:
            write(logged, partial)
            partial.rename(folder)
        made += 1
    return made, kept, problems


@contextmanager
def _partial_folder(out: Path) -> Iterator[Path]:
    """Create a hidden folder in ``out`` and remove it at the end unless it was renamed."""
    out.mkdir(parents=True, exist_ok=True)
    partial = out / f".half-{uuid.uuid4().hex[:12]}"
    partial.mkdir()
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


# TensorBoard


def to_tensorboard(store: Store, runs: Iterable[str], out: Path) -> tuple[int, int, list[Problem]]:
    """Write an event file for each record, in a folder of its own."""
    import_extra("tensorboardX.proto.event_pb2", "tensorboard")

    def write(logged: Logged, folder: Path) -> None:
        began, took = _seconds(logged.manifest.started), logged.manifest.seconds
        rows = (
            (step, {tag: value for tag, value in values.items() if tag not in AXES})
            for step, values in points(logged.log)
        )
        event_file(folder, rows, began, took / logged.spec.iterations)
        (folder / "record.json").write_bytes(msgspec.json.encode(summarize(logged)))

    return export(store, runs, out, write, title)


def event_file(
    folder: Path, rows: Iterable[tuple[int, dict[str, float]]], began: float, pace: float
) -> None:
    """Write ``rows`` of (step, values) for TensorBoard, ``pace`` seconds apart in wall time."""
    protos = import_extra("tensorboardX.proto.event_pb2", "tensorboard")
    summaries = import_extra("tensorboardX.proto.summary_pb2", "tensorboard")
    writers = import_extra("tensorboardX.record_writer", "tensorboard")
    # Not the library's own file name, which contains the host name and the present time.
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
"""No information about this machine, and no network."""


def to_wandb(
    store: Store, runs: Iterable[str], out: Path, project: str = "rulescope"
) -> tuple[int, int, list[Problem]]:
    """Write an offline run for each record, which ``wandb sync`` can upload."""
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")  # else it reports crashes
    wandb = import_extra("wandb", "wandb")
    known = wandb.Settings.model_fields
    settings = {name: value for name, value in _QUIET.items() if name in known}

    def write(logged: Logged, folder: Path) -> None:
        key = logged.manifest.id[:20]
        run = wandb.init(
            project=project,
            id=key,
            name=title(logged),
            config=summarize(logged),
            dir=str(folder),
            mode="offline",
            reinit="finish_previous",
            settings=wandb.Settings(**settings),
        )
        for step, values in points(logged.log):
            run.log(values, step=step)
        run.finish()
        # Its folder is named by the present time; only the file of the run is kept.
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
