"""A disk that is full, read-only or broken, at every step of a command: nothing is lost or hidden.

A command is run in a child of this process, with one of its steps on the disk failing, or all from
there on. It must end with an error that names the store, and what was in the store must be there
to the bit. (A fork, so that a child costs milliseconds: this process must have one thread only.)
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from made_up_records import fill
from rulescope.cli.main import run as command_line
from rulescope.core.errors import RecordError
from rulescope.records import Store
from rulescope.spec.run_spec import canonical
from torture.grid import grid, hashes
from torture.light import lightly
from torture.steps import Failer, watched

FAULTS = {
    "disk full": (errno.ENOSPC, True),
    "disk full for a moment": (errno.ENOSPC, False),
    "broken disk": (errno.EIO, False),
    "read-only": (errno.EROFS, True),
}
"""The error, and whether it stays once it has come."""
NOBODY = 65534
TINY = 192 * 1024
"""Bytes of a real disk to be filled."""


@dataclass
class Faulted:
    """What was made to fail, and what came of it."""

    faults: Counter[str] = field(default_factory=Counter)
    """Commands that met a fault, by what was wrong with the disk."""
    committed: int = 0
    """Of these, how many had brought their record into the store, whole, before it failed."""
    skipped: list[str] = field(default_factory=list)
    """What could not be tried here, and why."""
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Ended:
    code: int
    told: str
    steps: int
    """Those that could have failed."""
    failed: list[str]


def _child(arguments: list[str], failer: Failer | None, folder: Path, user: int | None) -> _Ended:
    """Run the command line in a child process with ``failer`` at its disk."""
    told, count = folder / "told", folder / "count"
    child = os.fork()
    if child == 0:
        code = 70
        try:
            output = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            counted = os.open(count, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            os.dup2(output, 1)
            os.dup2(output, 2)
            if user is not None:
                os.setgid(user)
                os.setuid(user)
            sys.argv = ["rulescope", *arguments]
            failer = failer or Failer(0, 0)
            try:
                with watched(failer):
                    command_line()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            said = [str(failer.taken), *(f"{step.phase} {step.path}" for step in failer.failed)]
            os.write(counted, "\n".join(said).encode())
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    taken, *failed = count.read_text().splitlines() or ["0"]
    return _Ended(os.waitstatus_to_exitcode(status), told.read_text(), int(taken), failed)


@dataclass
class _Torturer:
    """A store with some records, and commands that would add one more."""

    folder: Path
    store: Store
    found: Faulted = field(default_factory=Faulted)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        kept, new = list(grid(1).values())[:2], list(grid(1).values())[5]
        self.source = Store(self.folder / "source")
        fill(self.store, kept)
        fill(self.source, [new])
        self.new = new
        self.spec = self.folder / "spec.json"
        self.spec.write_bytes(canonical(new))
        self.before = _content(self.store.root)

    @property
    def commands(self) -> dict[str, list[str]]:
        """Return commands that write: one brings a record in, one lives and pauses, one lives."""
        where = ["--store", str(self.store.root)]
        life = ["life", "--spec", str(self.spec), *where]
        return {
            "records import": ["records", "import", str(self.source.root), *where],
            "life, paused": [*life, "--stop-after", "8"],
            "life": life,
        }

    def warm_up(self) -> None:
        """Run every command here, so that children need not import what they need."""
        for command in self.commands.values():
            sys.argv = ["rulescope", *command]
            with suppress(SystemExit), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                command_line()
            self._tidy()

    def sweep(self, name: str, wrong: str) -> None:
        """Let every step of a command fail, one after another."""
        code, for_good = FAULTS[wrong]
        at = 1
        while self.one(name, wrong, Failer(at, code, for_good=for_good)).steps >= at:
            at += 1

    def one(
        self, name: str, wrong: str, failer: Failer | None = None, user: int | None = None
    ) -> _Ended:
        """Run a command on a disk that fails; look at what it said and left; tidy up."""
        ended = _child(self.commands[name], failer, self.folder, user)
        if failer is None or ended.failed:
            self.found.faults[wrong] += 1
            self._judge(f"{name}, {' '.join([wrong, *ended.failed[:1]])}", ended)
        elif ended.code:
            self.found.wrong.append(f"{name}: ended with {ended.code} though nothing failed")
        with suppress(OSError, RecordError):  # as where it is really read-only
            self._tidy()
        return ended

    def _judge(self, what: str, ended: _Ended) -> None:
        if ended.code <= 0:
            self.found.wrong.append(f"{what}: ended with {ended.code}: {ended.told}")
        if str(self.store.root) not in ended.told or "Traceback" in ended.told:
            self.found.wrong.append(f"{what}: the message does not name the path: {ended.told}")
        now = _content(self.store.root)
        lost = [path for path in self.before if now.get(path) != self.before[path]]
        self.found.wrong += [f"{what}: {path} is not what it was" for path in lost]
        try:
            self.found.committed += self.new.id in hashes(self.store)
        except RecordError as fault:
            self.found.wrong.append(f"{what}: a partial record is visible: {fault}")
        checkpoint = self.store.root / "checkpoints" / f"{self.new.id}.npz"
        if checkpoint.exists() and self.store.load_checkpoint(self.new.id) is None:
            self.found.wrong.append(f"{what}: a partial checkpoint is visible")
        if self.store.quarantined():
            self.found.wrong.append(f"{what}: something is in quarantine")

    def _tidy(self) -> None:
        """Bring the store back to where it was."""
        if self.new.id in self.store:
            self.store.delete(self.new.id)
        for path in (*self.store.root.glob("checkpoints/*"), *self.store.root.glob("failures/*")):
            path.unlink()
        shutil.rmtree(self.store.root / "tmp", ignore_errors=True)


def _content(root: Path) -> dict[str, str]:
    """Return the sha256 of every file of every record."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.glob("runs/*/*/*"))
    }


def torture(folder: Path, commands: int = 3) -> Faulted:
    """Try every fault at every step of the first ``commands``; and real ones, where we may."""
    torturer = _Torturer(folder, Store(folder / "store"))
    with lightly():
        torturer.warm_up()
        for name in [*torturer.commands][:commands]:
            for wrong in FAULTS:
                torturer.sweep(name, wrong)
        _real_faults(folder / "real", torturer.found)
    return torturer.found


def _real_faults(folder: Path, found: Faulted) -> None:
    """Meet a real full disk, a real read-only one, and a folder that belongs to somebody else."""
    if os.geteuid() != 0:
        found.skipped.append("a real full disk and a real read-only one: only root may mount them")
        theirs = _Torturer(folder, Store(folder / "store"), found)
        with _closed(theirs.store.root):
            _all(theirs, "closed folder")
        return
    # Not in ``folder``: nobody may be let into what is above it.
    with tempfile.TemporaryDirectory(prefix="rulescope-torture-") as public:
        Path(public).chmod(0o755)
        theirs = _Torturer(Path(public) / "theirs", Store(Path(public) / "theirs" / "store"), found)
        _all(theirs, "closed folder", NOBODY)
    disk = folder / "disk"
    disk.mkdir(parents=True)
    if not _mounted(disk, "-t", "tmpfs", "-o", f"size={TINY}", "rulescope"):
        found.skipped.append("a real full disk and a real read-only one: mounting is not allowed")
        return
    try:
        torturer = _Torturer(folder / "else", Store(disk / "store"), found)
        ballast = disk / "ballast"
        with suppress(OSError):
            ballast.write_bytes(b"0" * TINY)
        _all(torturer, "real full disk")
        ballast.unlink()
        if _mounted(disk, "-o", "remount,ro"):
            _all(torturer, "real read-only disk")
            _mounted(disk, "-o", "remount,rw")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _all(torturer: _Torturer, wrong: str, user: int | None = None) -> None:
    for name in torturer.commands:
        torturer.one(name, wrong, user=user)


def _mounted(disk: Path, *how: str) -> bool:
    done = subprocess.run(["mount", *how, str(disk)], capture_output=True, check=False)
    return done.returncode == 0


@contextmanager
def _closed(folder: Path) -> Iterator[None]:
    """Let nobody write into a folder, or the folders in it."""
    inside = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in inside:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path in inside:
            path.chmod(0o755)
