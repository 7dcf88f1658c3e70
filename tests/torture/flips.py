"""Bits that flip and files that end too soon: everything is noticed, and made again the same."""

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
from rulescope.spec.run_spec import RunSpec
from torture.campaign import Lives, Order
from torture.grid import grid, hashes
from torture.light import lightly

CHECKPOINT = "checkpoint"
INDEX = ("runs.parquet", "logs.parquet")
KINDS = (*FILES, CHECKPOINT, *INDEX)
"""Every kind of file that results depend on."""
NOTES = "notes"
"""Of failures and of running campaigns: for people, and without a checksum."""
QUESTION = "SELECT id, science_hash, iteration, score FROM runs JOIN logs USING (id) ORDER BY ALL"


@dataclass
class Flipped:
    """What was damaged, by kind of file, and what came of it."""

    flips: Counter[str] = field(default_factory=Counter)
    truncations: Counter[str] = field(default_factory=Counter)
    detected: Counter[str] = field(default_factory=Counter)
    redone: int = 0
    """Runs that were lived again because their record or checkpoint was damaged."""
    wrong: list[str] = field(default_factory=list)

    @property
    def damages(self) -> int:
        """How often something was damaged that results depend on."""
        total = self.flips + self.truncations
        return total.total() - total[NOTES]


@dataclass
class _Torturer:
    store: Store
    lives: Lives
    specs: dict[str, RunSpec]
    reference: dict[str, str]
    rng: random.Random
    found: Flipped = field(default_factory=Flipped)

    def damage(self, path: Path, kind: str) -> None:
        """Flip a bit somewhere in a file, or cut its end off."""
        content = bytearray(path.read_bytes())
        place = self.rng.randrange(len(content))
        if self.rng.random() < 0.7:
            content[place] ^= 1 << self.rng.randrange(8)
            self.found.flips[kind] += 1
        else:
            del content[place:]
            self.found.truncations[kind] += 1
        path.write_bytes(content)

    def spoil(self, kind: str, count: int) -> None:
        """Damage so many files of one kind."""
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
        """Damage one file of so many records; look for it, and run the campaign again."""
        chosen = self.rng.sample(sorted(self.specs), count)
        for run in chosen:
            self.damage(self.store.folder(run) / kind, kind)
        if {problem.id for problem in self.store.verify()} != set(chosen):
            self.found.wrong.append(f"verify did not find exactly what was damaged in {kind}")
        self._again(kind, chosen)

    def donors(self, kind: str, count: int) -> None:
        """Damage records that others inherit from, who have not lived yet; nobody verifies."""
        heirs = {spec.donors[0].id: run for run, spec in self.specs.items() if spec.donors}
        founders = sorted(run for run in heirs if not self.specs[run].donors)
        chosen = self.rng.sample(founders, count)
        for run in chosen:
            self.store.delete(heirs[run])
            self.damage(self.store.folder(run) / kind, kind)
        self._again(kind, chosen)

    def notes(self, count: int) -> None:
        """Damage what campaigns note for people; it has no say in what is lived."""
        for run in self.rng.sample(sorted(self.specs), count):
            self.store.delete(run)
            failures.add(self.store, run, "made up")
            self.damage(self.store.root / failures.FOLDER / f"{run}.json", NOTES)
            with heartbeat.StatusFile(self.store, Campaign(0), name=run):
                said = sorted((self.store.root / heartbeat.FOLDER).iterdir())[-1]
                content = said.read_bytes()
            said.write_bytes(content)
            self.damage(said, NOTES)
        self._again(NOTES, [])

    def checkpoints(self, count: int) -> None:
        """Damage lifetimes in progress."""
        chosen = self.rng.sample(sorted(self.specs), count)
        for run in chosen:
            self.store.delete(run)
        for run in (key for key in self.specs if key in chosen):  # donors first
            self._pause(self.specs[run])
            path = self.store.root / "checkpoints" / f"{run}.npz"
            if path.exists():
                self.damage(path, CHECKPOINT)
        self._again(CHECKPOINT, chosen)

    def index(self, kind: str, count: int) -> None:
        """Damage the index; every answer must be what it was."""
        for _ in range(count):
            before = self._answer()
            shards = sorted((self.store.root / "index").glob(f"*/*/{kind}"))
            damaged = self.rng.choice([path for path in shards if not _worn(path)])
            self.damage(damaged, kind)
            content = damaged.read_bytes()
            if self._answer() != before:
                self.found.wrong.append(f"damage in {kind} changed an answer")
            elif damaged.exists() and damaged.read_bytes() == content:
                self.found.wrong.append(f"damage in {kind} went unnoticed")
            else:
                self.found.detected[kind] += 1

    def _pause(self, spec: RunSpec) -> None:
        try:
            runner.find_or_make(spec, self.store, stop_after=spec.iterations // 2)
        except runner.Paused:
            return
        self.found.wrong.append(f"run {spec.id} could not be stopped half-way")

    def _answer(self) -> list[tuple[object, ...]]:
        with open_database(self.store) as database:
            return list(database.query(QUESTION).rows)

    def _again(self, kind: str, damaged: list[str]) -> None:
        """Run the campaign again, and see that it noticed, and that all is as it was."""
        Order(str(self.store.root), self.lives, seeds=len(self.specs) // 8).finish()
        aside = {item.id for item in self.store.quarantined()}
        if damaged:
            self.found.detected[kind] += len(aside & set(damaged))
        self.found.wrong += [f"{kind} of {run}: went unnoticed" for run in set(damaged) - aside]
        self.found.redone += len(damaged)
        if hashes(self.store) != self.reference:
            self.found.wrong.append(f"after damage in {kind}, the records are not what they were")
        for item in self.store.quarantined():
            shutil.rmtree(item.path)


def _worn(path: Path) -> bool:
    return (path.parent / "worn").exists()


def torture(
    root: Path, damages: int, seed: int, *, lives: Lives = "real", seeds: int = 3
) -> Flipped:
    """Damage files of every kind, ``damages`` altogether, in a store that holds the grid."""
    store = Store(root)
    with lightly() if lives == "light" else nullcontext():
        Order(str(root), lives, seeds).finish()
        torturer = _Torturer(store, lives, grid(seeds), hashes(store), random.Random(seed))
        for kind, count in _shares(damages):
            torturer.spoil(kind, count)
        torturer.notes(2 * seeds)
    return torturer.found


def _shares(damages: int) -> Iterator[tuple[str, int]]:
    """Yield how often each kind of file is damaged."""
    for place, kind in enumerate(KINDS):
        yield kind, damages // len(KINDS) + (place < damages % len(KINDS))
