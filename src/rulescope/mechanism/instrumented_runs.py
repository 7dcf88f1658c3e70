"""Running lifetimes while a view observes them, and storing the observations.

An observed lifetime is an ordinary one, made from its specification and read after some iterations.
It ends with the same record, to the bit, as a lifetime that is not observed. The record goes to the
store; if the store has one already from the same program and machine, both must be equal.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rulescope.core import arrays, runtime
from rulescope.core.arrays import ArrayFileError, Arrays, prefix_names, unprefix
from rulescope.core.disk import write_whole
from rulescope.core.errors import RecordError
from rulescope.core.runtime import Identity
from rulescope.lifetime import Lifetime
from rulescope.mechanism.view_request import (
    AttachObserver,
    Observations,
    RunGroup,
    View,
    ViewRequest,
)
from rulescope.records import Record, Store
from rulescope.records.record import agree
from rulescope.run_spec import RunSpec
from rulescope.runner import find_or_make

_log = logging.getLogger(__name__)

OBSERVATIONS = "watched"
"""Folder, inside a results folder, with a file of observations for each group."""

Progress = Callable[[int], None]
"""Called with the iterations done so far, of all lifetimes together."""


def total_iterations(view: View, request: ViewRequest) -> int:
    """Return the iterations of all lifetimes of a view."""
    return sum(_iterations(group) for stage in view.stages(request) for group in stage)


def _iterations(group: RunGroup) -> int:
    return sum(run.iterations for run in group.runs.values())


def observe_view(
    view: View,
    request: ViewRequest,
    store: Store,
    folder: Path,
    *,
    weights: Path | None = None,
    progress: Progress = lambda _: None,
) -> list[Observations]:
    """Return the observations of ``view``; groups that ``folder`` has are not run again.

    An interrupted view continues with the first group that was not finished.
    """
    found: list[Observations] = []
    done = 0
    for group in (group for stage in view.stages(request) for group in stage):
        path = folder / OBSERVATIONS / f"{_key(view, group)}.npz"
        observations = _read_observations(path, group)
        if observations is None:
            observations = observe_group(
                group,
                view.attach_observer,
                store,
                weights=weights,
                progress=_from(done, progress),
            )
            write_whole(path, arrays.pack(_packed(observations)))
        found.append(observations)
        done += _iterations(group)
        progress(done)
    return found


def _from(start: int, progress: Progress) -> Progress:
    return lambda done: progress(start + done)


def observe_group(
    group: RunGroup,
    attach_observer: AttachObserver,
    store: Store,
    *,
    weights: Path | None = None,
    progress: Progress = lambda _: None,
) -> Observations:
    """Run the lifetimes of ``group`` in step, observe them, and store their records."""
    lifetimes = {name: _start(run, store, weights) for name, run in group.runs.items()}
    observe = attach_observer(lifetimes)
    observed: list[Arrays] = []
    done = 0
    for iteration in range(1, max(run.iterations for run in group.runs.values()) + 1):
        for lifetime in lifetimes.values():
            if not lifetime.finished:
                lifetime.advance()
                done += 1
                progress(done)
        if iteration in group.moments:
            observed.append(observe(iteration))
    records = {name: lifetime.record() for name, lifetime in lifetimes.items()}
    for record in records.values():
        commit_or_compare(record, store)
    return Observations(
        group,
        {name: np.stack([moment[name] for moment in observed]) for name in observed[0]},
        {name: record.log for name, record in records.items()},
        {name: record.manifest.science_hash for name, record in records.items()},
        runtime.source_identity(),
        runtime.runtime_identity(),
    )


def _start(run: RunSpec, store: Store, weights: Path | None) -> Lifetime:
    donors = {donor.id: find_or_make(donor, store, weights=weights).state for donor in run.donors}
    return Lifetime(run, weights=weights, donors=donors)


def commit_or_compare(record: Record, store: Store) -> None:
    """Commit ``record``, or compare it with the one that the store has.

    From the same source on the same machine they must be equal: otherwise observing has changed the
    lifetime, and the observations are void.
    """
    manifest = record.manifest
    if manifest.id not in store:
        store.commit(record)
        return
    stored = store.read(manifest.id)
    if agree(stored, record):
        return
    other = stored.manifest
    if (other.source, other.runtime) == (manifest.source, manifest.runtime):
        raise RecordError(
            f"run {manifest.id[:12]}: the observed run differs from the record in the store"
        )
    _log.warning(
        "run %s: the record in the store differs; it is of another program or machine",
        manifest.id[:12],
    )


def _key(view: View, group: RunGroup) -> str:
    """Return the file name of the observations of ``group`` by ``view``.

    Like a run id it does not depend on the program: a new version does not repeat finished runs.
    The file names the program that made it.
    """
    runs = {name: run.id for name, run in group.runs.items()}
    content = [view.name, view.version, runs, group.moments]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def _packed(observations: Observations) -> dict[str, NDArray[Any]]:
    logs = {f"log.{name}": log for name, log in observations.logs.items()}
    hashes = {name: np.array(value) for name, value in observations.science_hashes.items()}
    made = {
        "source": np.array(json.dumps(observations.source)),
        "runtime": np.array(json.dumps(observations.runtime)),
    }
    return prefix_names({"seen": observations.values, "science": hashes, "made": made, **logs})


def _read_observations(path: Path, group: RunGroup) -> Observations | None:
    """Return the stored observations of ``group``; None if ``path`` is missing or damaged."""
    if not path.exists():
        return None
    try:
        content = arrays.read(path)
        return Observations(
            group,
            unprefix("seen", content),
            {name: unprefix(f"log.{name}", content) for name in group.runs},
            {name: str(content[f"science/{name}"]) for name in group.runs},
            msgspec.json.decode(str(content["made/source"]), type=Identity),
            msgspec.json.decode(str(content["made/runtime"]), type=Identity),
        )
    except (ArrayFileError, OSError, KeyError, msgspec.MsgspecError) as fault:
        _log.warning("%s cannot be read, so its lifetimes are observed again: %s", path, fault)
        return None
