"""Kills at every single disk step of a write by a child process.

(A fork, so that a child costs milliseconds: this process must have one thread only.)
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
from torture.disk_steps import Killer, observe
from torture.grid import grid, hashes

OLD, NEW = {"iteration": np.array(1)}, {"iteration": np.array(2)}
"""Two checkpoints."""
Check = Callable[[Store], str]
"""Returns the problem of a store, or an empty string."""


@dataclass
class Points:
    """The steps at which a writer was killed, and the problems found."""

    phases: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    leftovers: int = 0


def torture(folder: Path) -> Points:
    """Kill at every step of a commit to a new store and to an old one, and of a checkpoint."""
    folder.mkdir(parents=True, exist_ok=True)
    first, second, *_ = map(made_up, grid(1).values())
    run, known = second.manifest.id, second.manifest.science_hash
    found = Points()

    def whole_or_not_at_all(store: Store) -> str:
        seen = hashes(store) if store.root.is_dir() else {}
        store.commit(second)  # files of the killed writer do not disturb the next
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

    writes: list[tuple[str, Callable[[Store], object], Callable[[Store], object], Check]] = [
        ("commit to a new store", lambda _: None, lambda s: s.commit(second), whole_or_not_at_all),
        ("commit", into_old, lambda s: s.commit(second), whole_or_not_at_all),
        ("checkpoint", replacing, lambda s: s.save_checkpoint(run, NEW), old_or_new),
    ]
    for name, prepare, write, check in writes:
        at = 1
        while True:
            store = Store(folder / f"{name}-{at}".replace(" ", "-"))
            prepare(store)
            if not _is_killed(lambda: write(store), at, folder / "kill-log"):  # noqa: B023
                break
            try:
                problem = check(store)
            except RecordError as fault:
                problem = f"a partial record is visible: {fault}"
            found.problems += [f"{name}, step {at}: {problem}"] if problem else []
            found.leftovers += sum(1 for _ in store.root.glob("tmp/*"))
            at += 1
    for line in (folder / "kill-log").read_text().splitlines():
        found.phases[line.split("\t")[1]] += 1
    return found


def _is_killed(write: Callable[[], object], at: int, kill_log: Path) -> bool:
    """Run ``write`` in a child that is killed at a step; return whether it got that far."""
    child = os.fork()
    if child == 0:
        try:
            observe(Killer(at, kill_log, "writer"))
            write()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
