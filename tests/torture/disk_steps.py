"""Every disk step of this process, observed just before, amid and after it.

An observer may count steps, raise the error of a bad disk, or kill the process.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

Moment = Literal["before", "amid", "after"]
NAMES = ("fsync", "rename", "replace", "mkdir", "unlink", "rmdir")
"""Functions of ``os`` that change the disk, or wait for it."""


class Step(NamedTuple):
    """One step, such as ``rename``, and its file or folder."""

    kind: str
    moment: Moment
    path: str

    @property
    def phase(self) -> str:
        """Its name in a report."""
        return f"{self.moment} {self.kind}"


Observer = Callable[[Step], None]


class Killer:
    """Kills this process at its ``at``-th step (from 1), after logging the step."""

    def __init__(self, at: int, kill_log: Path, role: str) -> None:
        self._left, self._role = at, role
        self._kill_log = os.open(kill_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def __call__(self, step: Step) -> None:
        self._left -= 1
        if self._left == 0:
            os.write(self._kill_log, f"{self._role}\t{step.phase}\t{step.path}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)


class Failer:
    """Raises a disk error at the ``at``-th step (from 1), or at all steps from there on.

    A write may fail in the middle. A completed step does not fail.
    """

    def __init__(self, at: int, code: int, *, for_good: bool = False) -> None:
        self._at, self._code, self._for_good = at, code, for_good
        self.taken = 0
        self.failed: list[Step] = []

    def __call__(self, step: Step) -> None:
        if step.moment == "after" or _is_removal(step):
            return
        if self._code == errno.EROFS and step.kind in ("write", "fsync"):
            return  # on a read-only disk no file is open for writing
        self.taken += 1
        if self.taken == self._at or (self._for_good and self.taken > self._at):
            self.failed.append(step)
            raise OSError(self._code, os.strerror(self._code), step.path)


def _is_removal(step: Step) -> bool:
    """Return whether a step removes a temporary folder: if that fails, nothing is lost."""
    inside = step.kind == "unlink" and not os.path.isabs(step.path)  # noqa: PTH117
    return step.kind == "rmdir" or inside


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Call ``observer`` at every step while entered."""
    before = {name: getattr(os, name) for name in NAMES}
    opened = io.open
    observe(observer)
    try:
        yield
    finally:
        for name, real in before.items():
            setattr(os, name, real)
        _set_open(opened)


def observe(observer: Observer) -> None:
    """Call ``observer`` at every step from now on."""
    for name in NAMES:
        setattr(os, name, _observed(name, getattr(os, name), observer))
    _set_open(_observed_open(io.open, observer))


def _set_open(function: Callable[..., Any]) -> None:
    io.open = builtins.open = function


def _observed(name: str, real: Callable[..., Any], observer: Observer) -> Callable[..., Any]:
    kind = "rename" if name == "replace" else name

    def step(target: Any, *arguments: Any, **options: Any) -> Any:
        path = _name(target) if name == "fsync" else os.fspath(target)
        observer(Step(kind, "before", path))
        result = real(target, *arguments, **options)
        observer(Step(kind, "after", path))
        return result

    return step


def _name(handle: int) -> str:
    """Return the path of an open file, if known."""
    try:
        return str(Path(f"/proc/self/fd/{handle}").readlink())
    except OSError:
        return f"file {handle}"


def _observed_open(real: Callable[..., Any], observer: Observer) -> Callable[..., Any]:
    def opening(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if isinstance(file, int) or not set(mode) & set("wxa+"):
            return real(file, mode, *arguments, **options)
        path = os.fspath(file)
        observer(Step("open", "before", path))
        made = real(file, mode, *arguments, **options)
        made.write = _observed_write(made, path, observer)
        return made

    return opening


def _observed_write(file: Any, path: str, observer: Observer) -> Callable[[Any], int]:
    """Return a ``write`` for ``file`` that writes two halves and flushes each."""
    real = file.write

    def write(content: Any) -> int:
        half = len(content) // 2
        observer(Step("write", "before", path))
        real(content[:half])
        file.flush()
        observer(Step("write", "amid", path))
        real(content[half:])
        file.flush()
        observer(Step("write", "after", path))
        return len(content)

    return write
