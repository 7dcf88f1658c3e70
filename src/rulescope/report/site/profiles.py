"""Profiles of audits, where there are any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rulescope.audit.profile import Profile


def find(folder: Path) -> dict[str, Profile]:
    """Return every profile below ``folder`` by the name of the folder that holds it, sorted."""
    from rulescope.audit.profile import FILE, read

    paths = sorted(folder.glob(f"**/{FILE}")) if folder.is_dir() else []
    return {path.parent.relative_to(folder).as_posix(): read(path) for path in paths}
