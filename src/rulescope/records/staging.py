"""Names of folders under ``tmp``: they tell who writes, and so what is rubbish of the dead."""

from __future__ import annotations

import os
import platform
import re
import time
import uuid
from pathlib import Path

QUIET_SECONDS = 60.0
"""What a process of this machine that is dead has left counts as rubbish after this long."""
ABANDONED_SECONDS = 24 * 3600.0
"""After this long, untouched, it does, whoever has left it."""

_NAME = re.compile(r".*-(?P<host>[0-9a-z]+)-(?P<pid>\d+)-[0-9a-f]{32}")


def name(purpose: str) -> str:
    """Return a name that nobody else will ever use."""
    return f"{purpose}-{_host()}-{os.getpid()}-{uuid.uuid4().hex}"


def is_rubbish(path: Path) -> bool:
    """Tell whether nobody is working on ``path`` any more, as far as can be told from here."""
    try:
        quiet = time.time() - _touched(path)
    except OSError:
        return False  # just gone, or not ours to look at
    whose = _NAME.fullmatch(path.name)
    if whose and whose["host"] == _host() and not alive(int(whose["pid"])):
        return quiet >= QUIET_SECONDS
    return quiet >= ABANDONED_SECONDS


def _touched(path: Path) -> float:
    """Return when ``path``, or anything directly in it, was last changed."""
    inside = path.iterdir() if path.is_dir() and not path.is_symlink() else ()
    return max(float(each.lstat().st_mtime) for each in (path, *inside))


def _host() -> str:
    """Return a name for this machine that can be a part of a file's."""
    return re.sub("[^0-9a-z]", "", platform.node().lower())[:32] or "host"


def alive(pid: int) -> bool:
    """Tell whether there is a process of this number on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass  # somebody else's, but alive
    return True
