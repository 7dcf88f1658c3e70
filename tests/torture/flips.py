"""Flipped bits and truncated files: all damage is detected, and damaged runs are repeated."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from rulescope import runner
from rulescope.engine import failures, heartbeat
from rulescope.engine.campaign import Campaign
from rulescope.records import Store
from rulescope.records.query import open_database
from rulescope.records.record import FILES
from rulescope.run_spec import RunSpec
from torture.campaign_process import CampaignProcess, Lifetimes
from torture.grid import grid, hashes
from torture.light_lifetime import light_lifetimes

CHECKPOINT = "checkpoint"
INDEX = ("runs.parquet", "logs.parquet")
KINDS = (*FILES, CHECKPOINT, *INDEX)
"""All kinds of files that results depend on."""
NOTES = "notes"
"""Failures and status files of campaigns, which have no checksum."""
QUERY = "SELECT id, science_hash, iteration, score FROM runs JOIN logs USING (id) ORDER BY ALL"


@dataclass
class Flipped:
    """Damage by kind of file, and the problems found."""

    flips: Counter[str] = field(default_factory=Counter)
    truncations: Counter[str] = field(default_factory=Counter)
    detected: Counter[str] = field(default_factory=Counter)
    redone: int = 0
    """Runs that were repeated because their record or checkpoint was damaged."""
    problems: list[str] = field(default_factory=list)

    @property
    def damages(self) -> int:
        """The number of damaged files that results depend on."""
        total = self.flips + self.truncations
        return total.total() - total[NOTES]


@dataclass
class _Torturer:
    store: Store
    lifetimes: Lifetimes
    specs: dict[str, RunSpec]
    reference: dict[str, str]
    rng: random.Random
    found: Flipped = field(default_factory=Flipped)

    def damage(self, path: Path, kind: str) -> None:
        """Flip a random bit of a file, or truncate it."""
        content = bytearray(path.read_bytes())
        place = self.rng.randrange(len(content))
        if self.rng.random() < 0.7:
            content[place] ^= 1 << self.rng.randrange(8)
            self.found.flips[kind] += 1
        else:
            del content[place:]
            self.found.truncations[kind] += 1
        path.write_bytes(content)

    def damage_files(self, kind: str, count: int) -> None:
        """Damage ``count`` files of one kind."""
        if kind in INDEX:
            self.index(kind, count)
        elif kind == CHECKPOINT:
            self.checkpoints(count)
        else:
            donors = count // 4
            self.records(kind, count - donors)
            if donors:
                self.donors(kind, donors)

    def records(self, kind: str, count: int) -> None:
        """Damage one file of ``count`` records; verify, and run the campaign again."""
        chosen = self.rng.sample(sorted(self.specs), count)
        for run in chosen:
            self.damage(self.store.folder(run) / kind, kind)
        if {problem.id for problem in self.store.verify()} != set(chosen):
            self.found.problems.append(f"verify did not find exactly what was damaged in {kind}")
        self._rerun(kind, chosen)

    def donors(self, kind: str, count: int) -> None:
        """Damage donors of runs that are missing, without verifying before the next campaign."""
        recipients = {spec.donors[0].id: run for run, spec in self.specs.items() if spec.donors}
        founders = sorted(run for run in recipients if not self.specs[run].donors)
        chosen = self.rng.sample(founders, count)
        for run in chosen:
            self.store.delete(recipients[run])
            self.damage(self.store.folder(run) / kind, kind)
        self._rerun(kind, chosen)

    def notes(self, count: int) -> None:
        """Damage failures and status files, which must not influence any run."""
        for run in self.rng.sample(sorted(self.specs), count):
            self.store.delete(run)
            failures.add(self.store, run, "made up")
            self.damage(self.store.root / failures.FOLDER / f"{run}.json", NOTES)
            with heartbeat.StatusFile(self.store, Campaign(0), name=run):
                status_file = sorted((self.store.root / heartbeat.FOLDER).iterdir())[-1]
                content = status_file.read_bytes()
            status_file.write_bytes(content)
            self.damage(status_file, NOTES)
        self._rerun(NOTES, [])

    def checkpoints(self, count: int) -> None:
        """Damage the checkpoints of runs in progress."""
        chosen = self.rng.sample(sorted(self.specs), count)
        for run in chosen:
            self.store.delete(run)
        for run in (key for key in self.specs if key in chosen):  # donors first
            self._pause(self.specs[run])
            path = self.store.root / "checkpoints" / f"{run}.npz"
            if path.exists():
                self.damage(path, CHECKPOINT)
        self._rerun(CHECKPOINT, chosen)

    def index(self, kind: str, count: int) -> None:
        """Damage the index; query results must not change."""
        for _ in range(count):
            before = self._query()
            shards = sorted((self.store.root / "index").glob(f"*/*/{kind}"))
            damaged = self.rng.choice([path for path in shards if not _is_replaced(path)])
            self.damage(damaged, kind)
            content = damaged.read_bytes()
            if self._query() != before:
                self.found.problems.append(f"damage in {kind} changed a query result")
            elif damaged.exists() and damaged.read_bytes() == content:
                self.found.problems.append(f"damage in {kind} was not detected")
            else:
                self.found.detected[kind] += 1

    def _pause(self, spec: RunSpec) -> None:
        try:
            runner.find_or_make(spec, self.store, stop_after=spec.iterations // 2)
        except runner.Paused:
            return
        self.found.problems.append(f"run {spec.id} could not be paused")

    def _query(self) -> list[tuple[object, ...]]:
        with open_database(self.store) as database:
            return list(database.query(QUERY).rows)

    def _rerun(self, kind: str, damaged: list[str]) -> None:
        """Run the campaign again; check that damage was detected and all records are equal."""
        CampaignProcess(str(self.store.root), self.lifetimes, seeds=len(self.specs) // 8).finish()
        quarantined = {item.id for item in self.store.quarantined()}
        if damaged:
            self.found.detected[kind] += len(quarantined & set(damaged))
        self.found.problems += [
            f"{kind} of {run}: was not detected" for run in set(damaged) - quarantined
        ]
        self.found.redone += len(damaged)
        if hashes(self.store) != self.reference:
            self.found.problems.append(
                f"after damage in {kind}, the records differ from the reference"
            )
        for item in self.store.quarantined():
            shutil.rmtree(item.path)


def _is_replaced(path: Path) -> bool:
    return (path.parent / "worn").exists()


def torture(
    root: Path, damages: int, seed: int, *, lifetimes: Lifetimes = "real", seeds: int = 3
) -> Flipped:
    """Damage files of every kind, ``damages`` altogether, in a store that holds the grid."""
    store = Store(root)
    with light_lifetimes() if lifetimes == "light" else nullcontext():
        CampaignProcess(str(root), lifetimes, seeds).finish()
        torturer = _Torturer(store, lifetimes, grid(seeds), hashes(store), random.Random(seed))
        for kind, count in _shares(damages):
            torturer.damage_files(kind, count)
        torturer.notes(2 * seeds)
    return torturer.found


def _shares(damages: int) -> Iterator[tuple[str, int]]:
    """Yield each kind of file and how many are damaged."""
    for place, kind in enumerate(KINDS):
        yield kind, damages // len(KINDS) + (place < damages % len(KINDS))
