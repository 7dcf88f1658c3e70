"""SIGKILL at any moment, to anybody: does the store ever show half a record, or a wrong one?"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from rulescope.core.errors import RecordError
from rulescope.records import Store
from torture.campaign import Lives, Order, end, members, wait_for_end
from torture.grid import grid, hashes

MEAN_SECONDS: dict[Lives, float] = {"real": 2.5, "light": 0.4}
"""Between two kills at random instants: about as long as a worker takes to start and work."""
WORKER_STEPS, PARENT_STEPS = (1, 160), (1, 300)
"""At which of its steps on the disk somebody dies: a commit takes about 40, a checkpoint 20."""
LEAVE_SECONDS = 60.0
"""How long workers without a parent may take to leave."""

Say = Callable[[str], None]
How = Literal["instants", "steps", "peace"]
"""Who kills: we, at random instants; everybody themselves, at a step on the disk; nobody."""


@dataclass
class Killed:
    """What was done, and what came of it."""

    instants: Counter[str] = field(default_factory=Counter)
    """Kills at random instants, by who was killed."""
    phases: Counter[str] = field(default_factory=Counter)
    """Kills at a step on the disk, by who was taking which step."""
    campaigns: int = 0
    """How often the campaign was started."""
    complete: int = 0
    """How often the whole grid was there in the end, so that it began with an empty store."""
    checks: int = 0
    """How often every visible record was read and verified while all this went on."""
    wrong: list[str] = field(default_factory=list)
    """Everything that should not have been."""
    rubbish: int = 0
    """Entries left in ``tmp`` by those who were killed."""

    @property
    def kills(self) -> int:
        """SIGKILLs altogether."""
        return self.instants.total() + self.phases.total()


@dataclass
class _Torturer:
    folder: Path
    lives: Lives
    seeds: int
    reference: dict[str, str]
    rng: random.Random
    say: Say
    found: Killed = field(default_factory=Killed)

    @property
    def _store(self) -> Store:
        return Store(self.folder / f"store-{self.found.complete}")

    def round(self, how: How) -> None:
        """Start or resume the campaign, and disturb it until it has ended."""
        order = Order(str(self._store.root), self.lives, self.seeds, diary=str(self._diary))
        if how == "steps" and self.rng.random() < 0.7:
            order = msgspec.structs.replace(order, worker_steps=WORKER_STEPS)
        elif how == "steps":
            order = msgspec.structs.replace(order, parent_step=self.rng.randint(*PARENT_STEPS))
        self.found.campaigns += 1
        with self._told.open("wb") as told, order.start(told) as process:
            self._watch(process, random_kills=how == "instants")
        self._read_diary()
        # Sometimes the next campaign meets the orphans of this one, sometimes not.
        meet = how != "peace" and self.rng.random() < 0.3
        if not meet and not wait_for_end(process.pid, LEAVE_SECONDS):
            self.found.wrong.append(f"workers did not leave within {LEAVE_SECONDS:g} s")
            end(process.pid)
        self._look()
        if process.returncode == 0:
            self._compare()
        elif how == "peace":
            said = self._told.read_text()
            self.found.wrong.append(f"left in peace, it ended with {process.returncode}: {said}")

    def _watch(self, process: subprocess.Popen[bytes], *, random_kills: bool) -> None:
        """Read what can be seen until the campaign has ended, and kill somebody now and then."""
        while True:
            try:
                process.wait(self.rng.expovariate(1.0 / MEAN_SECONDS[self.lives]))
                return
            except subprocess.TimeoutExpired:
                if random_kills:
                    self._kill_somebody(process)
                self._look()

    def _kill_somebody(self, process: subprocess.Popen[bytes]) -> None:
        family = list(members(process.pid))
        workers = [pid for pid in family if pid != process.pid]
        match self.rng.choice(["worker", "worker", "supervisor", "all"]):
            case "worker":
                chosen = [self.rng.choice(workers)] if workers else []
            case "supervisor":
                chosen = [process.pid]
            case _:
                chosen = family  # as when the machine loses power
        for pid in chosen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.found.instants["supervisor" if pid == process.pid else "worker"] += 1

    def _look(self) -> None:
        """Read every record that can be seen."""
        store = self._store
        if not store.root.is_dir():
            return
        self.found.checks += 1
        try:
            seen = hashes(store)
            aside = store.quarantined()
        except RecordError as fault:
            self.found.wrong.append(f"a partial record is visible: {fault}")
            return
        different = [run for run, found in seen.items() if self.reference[run] != found]
        self.found.wrong += [f"run {run} has another science hash" for run in different]
        self.found.wrong += [f"in quarantine: {item.path.name}: {item.reason}" for item in aside]

    def _compare(self) -> None:
        """Hold a finished grid against the undisturbed one, and begin again."""
        if hashes(self._store) != self.reference:
            self.found.wrong.append("a finished campaign differs from the undisturbed one")
        self.found.rubbish += sum(1 for _ in (self._store.root / "tmp").iterdir())
        self.found.complete += 1
        self.say(f"{self.found.kills} kills, grid complete and equal {self.found.complete} times")

    @property
    def _diary(self) -> Path:
        return self.folder / "diary"

    @property
    def _told(self) -> Path:
        return self.folder / "stderr"  # no pipe: orphans would hold it open

    def _read_diary(self) -> None:
        self.found.phases.clear()
        lines = self._diary.read_text().splitlines() if self._diary.exists() else []
        for line in lines:
            who, phase, _ = line.split("\t")
            self.found.phases[f"{who}: {phase}"] += 1


def torture(
    folder: Path,
    kills: int,
    seed: int,
    *,
    lives: Lives = "real",
    seeds: int = 3,
    reference: dict[str, str] | None = None,
    say: Say = lambda _: None,
) -> Killed:
    """Kill ``kills`` times in a campaign over the grid; the last resume is left in peace.

    ``reference`` is what the undisturbed campaign found; it is run if not given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if reference is None:
        reference = undisturbed(folder / "undisturbed", lives=lives, seeds=seeds)
    torturer = _Torturer(folder, lives, seeds, reference, random.Random(seed), say)
    begun, told = time.monotonic(), 0
    while torturer.found.kills < kills:
        torturer.round("steps" if torturer.rng.random() < 0.5 else "instants")
        if torturer.found.kills - told >= 25:
            told = torturer.found.kills
            say(f"{told} kills after {time.monotonic() - begun:.0f} s")
    torturer.round("peace")
    return torturer.found


def undisturbed(
    root: Path,
    *,
    lives: Lives = "real",
    seeds: int = 3,
    workers: int = 1,
    shuffle: int | None = None,
) -> dict[str, str]:
    """Return the science hashes of a campaign that nobody disturbs."""
    Order(str(root), lives, seeds, workers, shuffle).finish()
    found = hashes(Store(root))
    assert found.keys() == grid(seeds).keys(), "an undisturbed campaign is not complete"
    return found
