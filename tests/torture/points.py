"""Death at every single step of a write: a child of this process commits, and dies on the way.

(A fork, so that a death costs milliseconds: this process must have one thread only.)
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from made_up_records import made_up
from rulescope.core.errors import RecordError
from rulescope.records import Store
from torture.grid import grid, hashes
from torture.steps import Killer, watch

OLD, NEW = {"iteration": np.array(1)}, {"iteration": np.array(2)}
"""Checkpoints."""
Judge = Callable[[Store], str]
"""Returns what is wrong with a store, or nothing."""


@dataclass
class Points:
    """Where somebody died, and what came of it."""

    phases: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    rubbish: int = 0


def torture(folder: Path) -> Points:
    """Die at every step of a commit into a new store and into an old one, and of a checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    first, second, *_ = map(made_up, grid(1).values())
    run, known = second.manifest.id, second.manifest.science_hash
    found = Points()

    def whole_or_not_at_all(store: Store) -> str:
        seen = hashes(store) if store.root.is_dir() else {}
        store.commit(second)  # whatever the dead have left does not disturb the living
        if seen.get(run, known) != known or hashes(store)[run] != known:
            return "a record is not what was committed"
        return "in quarantine" if store.quarantined() else ""

    def old_or_new(store: Store) -> str:
        kept = store.load_checkpoint(run)
        return "" if kept is not None and int(kept["iteration"]) in (1, 2) else "no checkpoint"

    def into_old(store: Store) -> None:
        store.commit(first)

    def replacing(store: Store) -> None:
        store.save_checkpoint(run, OLD)

    tried: list[tuple[str, Callable[[Store], object], Callable[[Store], object], Judge]] = [
        ("commit to a new store", lambda _: None, lambda s: s.commit(second), whole_or_not_at_all),
        ("commit", into_old, lambda s: s.commit(second), whole_or_not_at_all),
        ("checkpoint", replacing, lambda s: s.save_checkpoint(run, NEW), old_or_new),
    ]
    for name, prepare, act, judge in tried:
        at = 1
        while True:
            store = Store(folder / f"{name}-{at}".replace(" ", "-"))
            prepare(store)
            if not _died(lambda: act(store), at, folder / "diary"):  # noqa: B023
                break
            try:
                problem = judge(store)
            except RecordError as fault:
                problem = f"a partial record is visible: {fault}"
            found.wrong += [f"{name}, step {at}: {problem}"] if problem else []
            found.rubbish += sum(1 for _ in store.root.glob("tmp/*"))
            at += 1
    for line in (folder / "diary").read_text().splitlines():
        found.phases[line.split("\t")[1]] += 1
    return found


def _died(act: Callable[[], object], at: int, diary: Path) -> bool:
    """Let a child ``act`` and die at a step; tell whether it got that far."""
    child = os.fork()
    if child == 0:
        try:
            watch(Killer(at, diary, "writer"))
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
