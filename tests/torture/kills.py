"""SIGKILL to any process at any moment: the store never shows a partial or wrong record."""

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
from torture.campaign_process import CampaignProcess, Lifetimes, kill_all, processes, wait_for_end
from torture.grid import grid, hashes

MEAN_SECONDS: dict[Lifetimes, float] = {"real": 2.5, "light": 0.4}
"""Mean time between two kills at random instants: about that of a worker to start and run."""
WORKER_STEPS, PARENT_STEPS = (1, 160), (1, 300)
"""Ranges of disk steps for kills: a commit takes about 40 steps, a checkpoint 20."""
EXIT_SECONDS = 60.0
"""Time that workers without a parent have to exit."""

Log = Callable[[str], None]
How = Literal["instants", "steps", "undisturbed"]
"""Kills at random instants, at disk steps, or none."""


@dataclass
class Killed:
    """The kills, and the problems found."""

    instants: Counter[str] = field(default_factory=Counter)
    """Kills at random instants, by role."""
    phases: Counter[str] = field(default_factory=Counter)
    """Kills at disk steps, by role and step."""
    campaigns: int = 0
    """How often the campaign was started."""
    complete: int = 0
    """How often the whole grid was complete; then the next campaign starts with an empty store."""
    checks: int = 0
    """How often every visible record was read and verified meanwhile."""
    problems: list[str] = field(default_factory=list)
    leftovers: int = 0
    """Entries left in ``tmp`` by killed processes."""

    @property
    def kills(self) -> int:
        """All kills."""
        return self.instants.total() + self.phases.total()


@dataclass
class _Torturer:
    folder: Path
    lifetimes: Lifetimes
    seeds: int
    reference: dict[str, str]
    rng: random.Random
    log: Log
    found: Killed = field(default_factory=Killed)

    @property
    def _store(self) -> Store:
        return Store(self.folder / f"store-{self.found.complete}")

    def round(self, how: How) -> None:
        """Start or resume the campaign, with kills until it has ended."""
        campaign = CampaignProcess(
            str(self._store.root), self.lifetimes, self.seeds, kill_log=str(self._kill_log)
        )
        if how == "steps" and self.rng.random() < 0.7:
            campaign = msgspec.structs.replace(campaign, worker_steps=WORKER_STEPS)
        elif how == "steps":
            campaign = msgspec.structs.replace(
                campaign, parent_step=self.rng.randint(*PARENT_STEPS)
            )
        self.found.campaigns += 1
        with self._stderr.open("wb") as stderr, campaign.start(stderr) as process:
            self._watch(process, random_kills=how == "instants")
        self._read_kill_log()
        # Sometimes the next campaign overlaps with orphaned workers of this one.
        overlap = how != "undisturbed" and self.rng.random() < 0.3
        if not overlap and not wait_for_end(process.pid, EXIT_SECONDS):
            self.found.problems.append(f"workers did not exit within {EXIT_SECONDS:g} s")
            kill_all(process.pid)
        self._check_records()
        if process.returncode == 0:
            self._compare()
        elif how == "undisturbed":
            errors = self._stderr.read_text()
            self.found.problems.append(f"undisturbed, it ended with {process.returncode}: {errors}")

    def _watch(self, process: subprocess.Popen[bytes], *, random_kills: bool) -> None:
        """Check visible records until the campaign has ended, with kills at random instants."""
        while True:
            try:
                process.wait(self.rng.expovariate(1.0 / MEAN_SECONDS[self.lifetimes]))
                return
            except subprocess.TimeoutExpired:
                if random_kills:
                    self._kill_at_random(process)
                self._check_records()

    def _kill_at_random(self, process: subprocess.Popen[bytes]) -> None:
        group = list(processes(process.pid))
        workers = [pid for pid in group if pid != process.pid]
        match self.rng.choice(["worker", "worker", "supervisor", "all"]):
            case "worker":
                chosen = [self.rng.choice(workers)] if workers else []
            case "supervisor":
                chosen = [process.pid]
            case _:
                chosen = group  # as when the machine loses power
        for pid in chosen:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.found.instants["supervisor" if pid == process.pid else "worker"] += 1

    def _check_records(self) -> None:
        """Verify every visible record."""
        store = self._store
        if not store.root.is_dir():
            return
        self.found.checks += 1
        try:
            seen = hashes(store)
            quarantined = store.quarantined()
        except RecordError as fault:
            self.found.problems.append(f"a partial record is visible: {fault}")
            return
        different = [run for run, found in seen.items() if self.reference[run] != found]
        self.found.problems += [f"run {run} has another science hash" for run in different]
        self.found.problems += [
            f"in quarantine: {item.path.name}: {item.reason}" for item in quarantined
        ]

    def _compare(self) -> None:
        """Compare a complete grid with the undisturbed one; the next one starts from nothing."""
        if hashes(self._store) != self.reference:
            self.found.problems.append("a finished campaign differs from the undisturbed one")
        self.found.leftovers += sum(1 for _ in (self._store.root / "tmp").iterdir())
        self.found.complete += 1
        self.log(f"{self.found.kills} kills, grid complete and equal {self.found.complete} times")

    @property
    def _kill_log(self) -> Path:
        return self.folder / "kill-log"

    @property
    def _stderr(self) -> Path:
        return self.folder / "stderr"  # not a pipe: orphans would hold it open

    def _read_kill_log(self) -> None:
        self.found.phases.clear()
        lines = self._kill_log.read_text().splitlines() if self._kill_log.exists() else []
        for line in lines:
            role, phase, _ = line.split("\t")
            self.found.phases[f"{role}: {phase}"] += 1


def torture(
    folder: Path,
    kills: int,
    seed: int,
    *,
    lifetimes: Lifetimes = "real",
    seeds: int = 3,
    reference: dict[str, str] | None = None,
    log: Log = lambda _: None,
) -> Killed:
    """Kill ``kills`` times in campaigns over the grid; the last one is undisturbed.

    ``reference`` holds the science hashes of an undisturbed campaign, which is run if not given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if reference is None:
        reference = undisturbed(folder / "undisturbed", lifetimes=lifetimes, seeds=seeds)
    torturer = _Torturer(folder, lifetimes, seeds, reference, random.Random(seed), log)
    start, reported = time.monotonic(), 0
    while torturer.found.kills < kills:
        torturer.round("steps" if torturer.rng.random() < 0.5 else "instants")
        if torturer.found.kills - reported >= 25:
            reported = torturer.found.kills
            log(f"{reported} kills after {time.monotonic() - start:.0f} s")
    torturer.round("undisturbed")
    return torturer.found


def undisturbed(
    root: Path,
    *,
    lifetimes: Lifetimes = "real",
    seeds: int = 3,
    workers: int = 1,
    shuffle: int | None = None,
) -> dict[str, str]:
    """Return the science hashes of an undisturbed campaign."""
    CampaignProcess(str(root), lifetimes, seeds, workers, shuffle).finish()
    found = hashes(Store(root))
    assert found.keys() == grid(seeds).keys(), "an undisturbed campaign is not complete"
    return found
