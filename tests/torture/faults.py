"""Disk errors (full, read-only, broken) at every step of a command: nothing is lost or hidden.

A command is run in a child process, with one of its disk steps failing, or all from there on. It
must end with an error that names the store, and the records in the store must be unchanged. (A
fork, so that a child costs milliseconds: this process must have one thread only.)
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
from rulescope.run_spec import canonical
from torture.disk_steps import Failer, observing
from torture.grid import grid, hashes
from torture.light_lifetime import light_lifetimes

FAULTS = {
    "disk full": (errno.ENOSPC, True),
    "disk full for a moment": (errno.ENOSPC, False),
    "broken disk": (errno.EIO, False),
    "read-only": (errno.EROFS, True),
}
"""Name to the error code, and whether all later steps fail too."""
NOBODY = 65534
TINY = 192 * 1024
"""Bytes of the real disk that is filled."""


@dataclass
class Faulted:
    """The disk errors, and the problems found."""

    faults: Counter[str] = field(default_factory=Counter)
    """Commands with a disk error, by kind of error."""
    committed: int = 0
    """Of these, the number that had committed their whole record before the error."""
    skipped: list[str] = field(default_factory=list)
    """Parts that could not be run here, with the reason."""
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Ended:
    code: int
    output: str
    steps: int
    """Disk steps that could have failed."""
    failed: list[str]


def _child(arguments: list[str], failer: Failer | None, folder: Path, user: int | None) -> _Ended:
    """Run the command line in a child process with the disk errors of ``failer``."""
    printed, count = folder / "output", folder / "count"
    child = os.fork()
    if child == 0:
        code = 70
        try:
            output = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            counted = os.open(count, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            os.dup2(output, 1)
            os.dup2(output, 2)
            if user is not None:
                os.setgid(user)
                os.setuid(user)
            sys.argv = ["rulescope", *arguments]
            failer = failer or Failer(0, 0)
            try:
                with observing(failer):
                    command_line()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            lines = [str(failer.taken), *(f"{step.phase} {step.path}" for step in failer.failed)]
            os.write(counted, "\n".join(lines).encode())
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    taken, *failed = count.read_text().splitlines() or ["0"]
    return _Ended(os.waitstatus_to_exitcode(status), printed.read_text(), int(taken), failed)


@dataclass
class _Torturer:
    """A store with some records, and commands that add one more."""

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
        """Commands that write: import a record, pause a run, complete a run."""
        where = ["--store", str(self.store.root)]
        life = ["life", "--spec", str(self.spec), *where]
        return {
            "records import": ["records", "import", str(self.source.root), *where],
            "life, paused": [*life, "--stop-after", "8"],
            "life": life,
        }

    def warm_up(self) -> None:
        """Run every command in this process, so that children need no imports."""
        for command in self.commands.values():
            sys.argv = ["rulescope", *command]
            with suppress(SystemExit), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                command_line()
            self._restore()

    def sweep(self, name: str, error: str) -> None:
        """Run a command once for each of its steps, with that step failing."""
        code, for_good = FAULTS[error]
        at = 1
        while self.run_command(name, error, Failer(at, code, for_good=for_good)).steps >= at:
            at += 1

    def run_command(
        self, name: str, error: str, failer: Failer | None = None, user: int | None = None
    ) -> _Ended:
        """Run a command with disk errors; check its output and the store; restore the store."""
        ended = _child(self.commands[name], failer, self.folder, user)
        if failer is None or ended.failed:
            self.found.faults[error] += 1
            self._check(f"{name}, {' '.join([error, *ended.failed[:1]])}", ended)
        elif ended.code:
            self.found.problems.append(f"{name}: ended with {ended.code} without a disk error")
        with suppress(OSError, RecordError):  # e.g. if it is really read-only
            self._restore()
        return ended

    def _check(self, what: str, ended: _Ended) -> None:
        if ended.code <= 0:
            self.found.problems.append(f"{what}: ended with {ended.code}: {ended.output}")
        if str(self.store.root) not in ended.output or "Traceback" in ended.output:
            self.found.problems.append(
                f"{what}: the message does not name the path: {ended.output}"
            )
        now = _content(self.store.root)
        lost = [path for path in self.before if now.get(path) != self.before[path]]
        self.found.problems += [f"{what}: {path} has changed" for path in lost]
        try:
            self.found.committed += self.new.id in hashes(self.store)
        except RecordError as fault:
            self.found.problems.append(f"{what}: a partial record is visible: {fault}")
        checkpoint = self.store.root / "checkpoints" / f"{self.new.id}.npz"
        if checkpoint.exists() and self.store.load_checkpoint(self.new.id) is None:
            self.found.problems.append(f"{what}: a partial checkpoint is visible")
        if self.store.quarantined():
            self.found.problems.append(f"{what}: something is in quarantine")

    def _restore(self) -> None:
        """Remove what a command has added to the store."""
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
    """Test all disk errors at every step of the first ``commands``, and real ones if possible."""
    torturer = _Torturer(folder, Store(folder / "store"))
    with light_lifetimes():
        torturer.warm_up()
        for name in [*torturer.commands][:commands]:
            for error in FAULTS:
                torturer.sweep(name, error)
        _real_faults(folder / "real", torturer.found)
    return torturer.found


def _real_faults(folder: Path, found: Faulted) -> None:
    """Run the commands on a real full disk, a read-only one, and a folder of another user."""
    if os.geteuid() != 0:
        found.skipped.append("a real full disk and a real read-only one: only root may mount them")
        theirs = _Torturer(folder, Store(folder / "store"), found)
        with _write_protected(theirs.store.root):
            _run_commands(theirs, "closed folder")
        return
    # Not in ``folder``, whose parents may be closed to other users.
    with tempfile.TemporaryDirectory(prefix="rulescope-torture-") as public:
        Path(public).chmod(0o755)
        theirs = _Torturer(Path(public) / "theirs", Store(Path(public) / "theirs" / "store"), found)
        _run_commands(theirs, "closed folder", NOBODY)
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
        _run_commands(torturer, "real full disk")
        ballast.unlink()
        if _mounted(disk, "-o", "remount,ro"):
            _run_commands(torturer, "real read-only disk")
            _mounted(disk, "-o", "remount,rw")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _run_commands(torturer: _Torturer, error: str, user: int | None = None) -> None:
    for name in torturer.commands:
        torturer.run_command(name, error, user=user)


def _mounted(disk: Path, *how: str) -> bool:
    done = subprocess.run(["mount", *how, str(disk)], capture_output=True, check=False)
    return done.returncode == 0


@contextmanager
def _write_protected(folder: Path) -> Iterator[None]:
    """Remove write permission from a folder and the folders in it."""
    inside = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in inside:
        path.chmod(0o555)
    try:
        yield
    finally:
        for path in inside:
            path.chmod(0o755)
