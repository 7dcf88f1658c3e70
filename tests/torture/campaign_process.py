"""A campaign in a process of its own, which may be killed at a given disk step.

Workers import this module too, as the script that started them: the settings in ``$TORTURE`` apply
to the parent and all its workers.
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
from torture.disk_steps import Killer, observe
from torture.grid import grid
from torture.light_lifetime import use_light_lifetimes

VARIABLE = "TORTURE"
CHECKPOINT_SECONDS, WRITE_SECONDS = 0.1, 0.2
"""Far more often than usual, so that kills often hit a write."""
SOME_FAILED = 3
"""Exit code when runs failed, as of ``rulescope run``."""

Lifetimes = Literal["real", "light"]


class CampaignProcess(msgspec.Struct, frozen=True):
    """The settings of a campaign, and the disk steps at which its processes are killed."""

    store: str
    lifetimes: Lifetimes = "real"
    seeds: int = 3
    workers: int = 2
    shuffle: int | None = None
    """Seed of the order of runs; None: donors first."""
    parent_step: int | None = None
    """The disk step at which the parent is killed."""
    worker_steps: tuple[int, int] | None = None
    """Each worker is killed at a step drawn from this range, both ends included."""
    kill_log: str = ""
    """The file that lists kills at disk steps."""

    def start(self, stderr: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start the campaign, as the leader of a process group of its own."""
        paths = [Path(rulescope.__file__).parents[1], Path(__file__).parents[1]]
        environment = {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "OMP_NUM_THREADS": "1",
            VARIABLE: msgspec.json.encode(self).decode(),
        }
        return subprocess.Popen(
            [sys.executable, "-m", "torture.campaign_process"],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )

    def finish(self) -> None:
        """Run the campaign undisturbed; raise if it fails."""
        with self.start(subprocess.PIPE) as process:
            _, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(f"a campaign ended with {process.returncode}: {errors.decode()}")


def processes(group: int) -> Iterator[int]:
    """Yield the running processes of a group, its leader first."""
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda folder: int(folder.name)):
        try:
            state, _, found = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except OSError:
            continue  # ended meanwhile
        if int(found) == group and state not in "ZX":
            yield int(folder.name)


def wait_for_end(group: int, seconds: float) -> bool:
    """Wait until all processes of a group have ended; return whether they did in time."""
    until = time.monotonic() + seconds
    while any(True for _ in processes(group)):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def kill_all(group: int) -> None:
    """Kill all processes of a group."""
    for pid in processes(group):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def _prepare(settings: CampaignProcess, *, parent: bool) -> None:
    runner.CHECKPOINT_SECONDS, heartbeat.WRITE_SECONDS = CHECKPOINT_SECONDS, WRITE_SECONDS
    if settings.lifetimes == "light":
        use_light_lifetimes()
    at = settings.parent_step
    if not parent and settings.worker_steps is not None:
        at = random.Random(time.time_ns() ^ os.getpid()).randint(*settings.worker_steps)
    elif not parent:
        at = None
    if at is not None:
        observe(Killer(at, Path(settings.kill_log), "supervisor" if parent else "worker"))


def main() -> None:
    """Run the campaign with the settings of the environment."""
    settings = msgspec.json.decode(os.environ[VARIABLE], type=CampaignProcess)
    _prepare(settings, parent=True)
    specs = list(grid(settings.seeds).values())
    if settings.shuffle is not None:
        random.Random(settings.shuffle).shuffle(specs)
    campaign = run_all(specs, Store(Path(settings.store)), workers=settings.workers, name="torture")
    for run, cause in campaign.failed.items():
        print(f"error: run {run[:12]} failed: {cause}", file=sys.stderr)
    sys.exit(SOME_FAILED if campaign.failed else 0)


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__":
    _prepare(msgspec.json.decode(os.environ[VARIABLE], type=CampaignProcess), parent=False)
