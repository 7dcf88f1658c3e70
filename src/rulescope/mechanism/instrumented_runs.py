"""Living lifetimes while they are looked at; what is seen is kept, and the lifetimes do not notice.

A watched lifetime is an ordinary one, made from its specification and stopped after some iterations
to be read. It ends with the same record, to the bit, as one that nobody looked at. The record goes
to the store; if the store has one already from the same program and machine, both must be equal.
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
from rulescope.core.errors import RecordError
from rulescope.core.runtime import Identity
from rulescope.lifetime import Lifetime
from rulescope.mechanism.view_request import Group, Inquiry, Observed, Observer, View
from rulescope.records import Record, Store
from rulescope.records.record import agree
from rulescope.render.result_files import write_whole
from rulescope.runner import find_or_make
from rulescope.spec.run_spec import RunSpec

_log = logging.getLogger(__name__)

KEPT = "watched"
"""Folder, inside of a results folder, with what was seen of each group."""

Report = Callable[[int], None]
"""Told the iterations done so far, all lifetimes together."""


def total(view: View, inquiry: Inquiry) -> int:
    """Return the iterations of all lifetimes of a view."""
    groups = [group for stage in view.stages(inquiry) for group in stage]
    return sum(run.iterations for group in groups for run in group.runs.values())


def observe(
    view: View,
    inquiry: Inquiry,
    store: Store,
    folder: Path,
    *,
    weights: Path | None = None,
    report: Report | None = None,
) -> list[Observed]:
    """Return what ``view`` sees of its lifetimes; what ``folder`` has of them is not lived again.

    An interrupted view goes on with the first group that it has not seen to the end.
    """
    found: list[Observed] = []
    done = 0
    for group in (group for stage in view.stages(inquiry) for group in stage):
        path = folder / KEPT / f"{_key(view, group)}.npz"
        seen = _kept(path, group)
        if seen is None:
            lived = _Count(report, done)
            seen = watch(group, view.observer, store, weights=weights, report=lived)
            write_whole(path, arrays.pack(_packed(seen)))
        found.append(seen)
        done += sum(run.iterations for run in group.runs.values())
        if report is not None:
            report(done)
    return found


def watch(
    group: Group,
    observer: Observer,
    store: Store,
    *,
    weights: Path | None = None,
    report: Callable[[], None] | None = None,
) -> Observed:
    """Live the lifetimes of ``group`` side by side, look at them, and keep their records."""
    lives = {name: _newborn(run, store, weights) for name, run in group.runs.items()}
    look = observer(lives)
    seen: list[Arrays] = []
    last = max(run.iterations for run in group.runs.values())
    for iteration in range(1, last + 1):
        for life in lives.values():
            if not life.finished:
                life.advance()
                if report is not None:
                    report()
        if iteration in group.moments:
            seen.append(look(iteration))
    records = {name: life.record() for name, life in lives.items()}
    for record in records.values():
        keep(record, store)
    return Observed(
        group,
        {name: np.stack([moment[name] for moment in seen]) for name in seen[0]},
        {name: record.log for name, record in records.items()},
        {name: record.manifest.science_hash for name, record in records.items()},
        runtime.source_identity(),
        runtime.runtime_identity(),
    )


def keep(record: Record, store: Store) -> None:
    """Commit ``record``, or compare it with the one that the store has.

    From the same source on the same machine they must be equal: otherwise looking has changed the
    lifetime, and what was seen is worth nothing.
    """
    manifest = record.manifest
    if manifest.id not in store:
        store.commit(record)
        return
    held = store.read(manifest.id)
    if agree(held, record):
        return
    other = held.manifest
    if (other.source, other.runtime) == (manifest.source, manifest.runtime):
        raise RecordError(
            f"run {manifest.id[:12]}: watched, it ended otherwise than the record in the store"
        )
    _log.warning(
        "run %s: the record in the store is another program's or machine's, and differs",
        manifest.id[:12],
    )


def _newborn(run: RunSpec, store: Store, weights: Path | None) -> Lifetime:
    donors = {donor.id: find_or_make(donor, store, weights=weights).state for donor in run.donors}
    return Lifetime(run, weights=weights, donors=donors)


class _Count:
    """Counts iterations on from those of earlier groups."""

    def __init__(self, report: Report | None, done: int) -> None:
        self._report, self._done = report, done

    def __call__(self) -> None:
        self._done += 1
        if self._report is not None:
            self._report(self._done)


def _key(view: View, group: Group) -> str:
    """Return a name for what ``view`` sees of ``group``.

    As in the store, it does not depend on the program: a record is not lived again either because
    there is a new version. What is kept tells who made it.
    """
    runs = {name: run.id for name, run in group.runs.items()}
    made_of = [view.name, view.version, runs, group.moments]
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:24]


def _packed(observed: Observed) -> dict[str, NDArray[Any]]:
    logs = {f"log.{name}": log for name, log in observed.logs.items()}
    hashes = {name: np.array(value) for name, value in observed.science.items()}
    made = {
        "source": np.array(json.dumps(observed.source)),
        "runtime": np.array(json.dumps(observed.runtime)),
    }
    return prefix_names({"seen": observed.seen, "science": hashes, "made": made, **logs})


def _kept(path: Path, group: Group) -> Observed | None:
    """Return what was seen of ``group`` earlier, if ``path`` has it whole."""
    if not path.exists():
        return None
    try:
        content = arrays.read(path)
        return Observed(
            group,
            unprefix("seen", content),
            {name: unprefix(f"log.{name}", content) for name in group.runs},
            {name: str(content[f"science/{name}"]) for name in group.runs},
            msgspec.json.decode(str(content["made/source"]), type=Identity),
            msgspec.json.decode(str(content["made/runtime"]), type=Identity),
        )
    except (ArrayFileError, OSError, KeyError, msgspec.MsgspecError) as fault:
        _log.warning("%s is looked at again: %s", path, fault)
        return None
