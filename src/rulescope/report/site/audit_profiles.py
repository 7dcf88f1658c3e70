"""Profiles of audits, where there are any."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.core.errors import RecordError
from rulescope.report.site.site_model import Damaged

if TYPE_CHECKING:
    from rulescope.audit.profile import Profile


def find(folder: Path) -> tuple[dict[str, Profile], Damaged]:
    """Return every profile below ``folder`` by the name of the folder that holds it, sorted.

    Beside them those that cannot be read.
    """
    from rulescope.audit.profile import FILE, read

    paths = sorted(folder.glob(f"**/{FILE}")) if folder.is_dir() else []
    found: dict[str, Profile] = {}
    damaged: list[tuple[str, str]] = []
    for path in paths:
        name = path.parent.relative_to(folder).as_posix()
        try:
            found[name] = read(path)
        except RecordError as fault:
            # Where results lie is their owner's affair.
            damaged.append((name, str(fault).replace(f"{folder}/", "")))
    return found, tuple(damaged)
