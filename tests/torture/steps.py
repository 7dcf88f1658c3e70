"""Every step that this process takes on the disk, seen just before, amid and after it is taken.

Whoever watches may count, or raise the error that a disk would, or kill the process on the spot.
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
"""Functions of ``os`` that change what is on the disk, or wait for it."""


class Step(NamedTuple):
    """One step, such as ``rename``, and the file or folder that it is about."""

    kind: str
    moment: Moment
    path: str

    @property
    def phase(self) -> str:
        """What it is called in a report."""
        return f"{self.moment} {self.kind}"


Watcher = Callable[[Step], None]


class Killer:
    """Kills this process at its ``at``-th step (from 1), having noted which one that was."""

    def __init__(self, at: int, diary: Path, who: str) -> None:
        self._left, self._who = at, who
        self._diary = os.open(diary, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def __call__(self, step: Step) -> None:
        self._left -= 1
        if self._left == 0:
            os.write(self._diary, f"{self._who}\t{step.phase}\t{step.path}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)


class Failer:
    """Lets the ``at``-th step (from 1) fail, or all from there on, as a disk would.

    A file may fail when half of it is written. A step that is done cannot fail afterwards.
    """

    def __init__(self, at: int, code: int, *, for_good: bool = False) -> None:
        self._at, self._code, self._for_good = at, code, for_good
        self.taken = 0
        self.failed: list[Step] = []

    def __call__(self, step: Step) -> None:
        if step.moment == "after" or _is_tidying(step):
            return
        if self._code == errno.EROFS and step.kind in ("write", "fsync"):
            return  # where nothing can be written, no file is ever open for it
        self.taken += 1
        if self.taken == self._at or (self._for_good and self.taken > self._at):
            self.failed.append(step)
            raise OSError(self._code, os.strerror(self._code), step.path)


def _is_tidying(step: Step) -> bool:
    """Tell whether a step removes a folder: if that fails, rubbish stays, and nothing is lost."""
    inside = step.kind == "unlink" and not os.path.isabs(step.path)  # noqa: PTH117
    return step.kind == "rmdir" or inside


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Let ``watcher`` see every step that is taken within."""
    before = {name: getattr(os, name) for name in NAMES}
    opened = io.open
    watch(watcher)
    try:
        yield
    finally:
        for name, real in before.items():
            setattr(os, name, real)
        _set_open(opened)


def watch(watcher: Watcher) -> None:
    """Let ``watcher`` see every step from now on."""
    for name in NAMES:
        setattr(os, name, _seen(name, getattr(os, name), watcher))
    _set_open(_opening(io.open, watcher))


def _set_open(function: Callable[..., Any]) -> None:
    io.open = builtins.open = function


def _seen(name: str, real: Callable[..., Any], watcher: Watcher) -> Callable[..., Any]:
    kind = "rename" if name == "replace" else name

    def step(target: Any, *arguments: Any, **options: Any) -> Any:
        path = _name(target) if name == "fsync" else os.fspath(target)
        watcher(Step(kind, "before", path))
        result = real(target, *arguments, **options)
        watcher(Step(kind, "after", path))
        return result

    return step


def _name(handle: int) -> str:
    """Return what an open file is called, where that can be told."""
    try:
        return str(Path(f"/proc/self/fd/{handle}").readlink())
    except OSError:
        return f"file {handle}"


def _opening(real: Callable[..., Any], watcher: Watcher) -> Callable[..., Any]:
    def opening(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if isinstance(file, int) or not set(mode) & set("wxa+"):
            return real(file, mode, *arguments, **options)
        path = os.fspath(file)
        watcher(Step("open", "before", path))
        made = real(file, mode, *arguments, **options)
        made.write = _writing(made, path, watcher)
        return made

    return opening


def _writing(file: Any, path: str, watcher: Watcher) -> Callable[[Any], int]:
    """Return how ``file`` writes from now on: in two halves, each of which reaches the disk."""
    real = file.write

    def write(content: Any) -> int:
        half = len(content) // 2
        watcher(Step("write", "before", path))
        real(content[:half])
        file.flush()
        watcher(Step("write", "amid", path))
        real(content[half:])
        file.flush()
        watcher(Step("write", "after", path))
        return len(content)

    return write
