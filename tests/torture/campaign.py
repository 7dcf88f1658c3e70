"""A campaign in a process of its own, which may be told to die at a step on the disk.

Workers import this module too, as the script that started them: what is said in ``$TORTURE`` holds
for the whole family.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import msgspec

import rulescope
from rulescope import runner
from rulescope.engine import heartbeat
from rulescope.engine.local_engine import run_all
from rulescope.records import Store
from torture.grid import grid
from torture.light import live_lightly
from torture.steps import Killer, watch

VARIABLE = "TORTURE"
CHECKPOINT_SECONDS, WRITE_SECONDS = 0.1, 0.2
"""Far more often than usual, so that much is being written when somebody is killed."""
SOME_FAILED = 3
"""Exit code, as of ``rulescope run``, when runs were given up."""

Lives = Literal["real", "light"]


class Order(msgspec.Struct, frozen=True):
    """What campaign is to be run, and who is to die in it."""

    store: str
    lives: Lives = "real"
    seeds: int = 3
    workers: int = 2
    shuffle: int | None = None
    """Seed of the order in which runs are given to the engine; None: donors first."""
    parent_step: int | None = None
    """The step on the disk at which the parent dies."""
    worker_steps: tuple[int, int] | None = None
    """Each worker dies at a step drawn from this range, both ends included."""
    diary: str = ""
    """The file in which those who die at a step say so."""

    def start(self, stderr: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the campaign, as the leader of a process group of its own."""
        paths = [Path(rulescope.__file__).parents[1], Path(__file__).parents[1]]
        told = {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "OMP_NUM_THREADS": "1",
            VARIABLE: msgspec.json.encode(self).decode(),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "torture.campaign"],
            env=os.environ | told,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )

    def finish(self) -> None:
        """Run the campaign undisturbed; whatever goes wrong raises."""
        with self.start(subprocess.PIPE) as process:
            _, told = process.communicate()
        if process.returncode:
            raise RuntimeError(f"a campaign ended with {process.returncode}: {told.decode()}")


def members(group: int) -> Iterator[int]:
    """Yield the living processes of a group, its leader first."""
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda folder: int(folder.name)):
        try:
            state, _, found = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # gone meanwhile
        if int(found) == group and state not in "ZX":
            yield int(folder.name)


def wait_for_end(group: int, seconds: float) -> bool:
    """Wait until nobody of a group is left; tell whether that came in time."""
    until = time.monotonic() + seconds
    while any(True for _ in members(group)):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def end(group: int) -> None:
    """Kill whoever is left of a group."""
    for pid in members(group):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _prepare(order: Order, *, parent: bool) -> None:
    runner.CHECKPOINT_SECONDS, heartbeat.WRITE_SECONDS = CHECKPOINT_SECONDS, WRITE_SECONDS
    if order.lives == "light":
        live_lightly()
    at = order.parent_step
    if not parent and order.worker_steps is not None:
        at = random.Random(time.time_ns() ^ os.getpid()).randint(*order.worker_steps)
    elif not parent:
        at = None
    if at is not None:
        watch(Killer(at, Path(order.diary), "supervisor" if parent else "worker"))


def main() -> None:
    """Run the campaign that was ordered."""
    order = msgspec.json.decode(os.environ[VARIABLE], type=Order)
    _prepare(order, parent=True)
    specs = list(grid(order.seeds).values())
    if order.shuffle is not None:
        random.Random(order.shuffle).shuffle(specs)
    campaign = run_all(specs, Store(Path(order.store)), workers=order.workers, name="torture")
    for run, cause in campaign.failed.items():
        print(f"error: run {run[:12]} failed: {cause}", file=sys.stderr)
    sys.exit(SOME_FAILED if campaign.failed else 0)


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    _prepare(msgspec.json.decode(os.environ[VARIABLE], type=Order), parent=False)
