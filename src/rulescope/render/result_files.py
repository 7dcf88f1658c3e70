"""Files of results: named after their labels, and written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rulescope.core.disk import require_possible, writing


def stem(label: str) -> str:
    """Return the file name of a label, without its ending: ``tab:e1-all`` is ``tab-e1-all``."""
    return "".join(mark if mark.isalnum() or mark in "-_." else "-" for mark in label)


def require_writable(folder: Path) -> None:
    """Make ``folder`` if it is missing; raise an error that names it if it cannot be written."""
    require_possible(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass


def write_whole(path: Path, content: bytes) -> Path:
    """Write ``content`` to ``path`` in one step, so that no reader sees half of it."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            temporary.chmod(0o666 & ~_umask())  # mkstemp makes files for the owner alone
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    return path


def _umask() -> int:
    """Return the umask of this process (it can be read only by setting it)."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
