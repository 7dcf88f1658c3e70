"""Cleanup of a store: files left by crashed processes, and files of runs that have a record now."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rulescope.core import disk
from rulescope.records.branch_checkpoints import BranchCheckpoints, parse_name
from rulescope.records.sizes import total_bytes
from rulescope.records.store import Store
from rulescope.records.store_layout import ID, is_abandoned


class Leftover(NamedTuple):
    """A file or folder that is not needed any more."""

    path: Path
    part: str
    """The folder of the store that contains it."""
    why: str
    bytes: int


def find(store: Store, *, quarantine: bool = False) -> list[Leftover]:
    """Return what can be removed; entries in quarantine only if asked for."""
    return [
        Leftover(path, part, why, total_bytes(path))
        for part, path, why in _candidates(store, quarantine)
    ]


def remove(found: Iterable[Leftover]) -> None:
    """Remove leftovers; those removed by another process meanwhile are skipped."""
    for each in found:
        with disk.writing(each.path), suppress(FileNotFoundError):
            if each.path.is_dir() and not each.path.is_symlink():
                shutil.rmtree(each.path)
            else:
                each.path.unlink()


def _candidates(store: Store, quarantine: bool) -> Iterator[tuple[str, Path, str]]:
    for path in _entries(store, "tmp"):
        if is_abandoned(path):
            yield "tmp", path, "an unfinished write of a crashed process"
    for part, ending in (("checkpoints", ".npz"), ("failures", ".json")):
        for path in _entries(store, part):
            if path.suffix == ending and ID.fullmatch(path.stem) and path.stem in store:
                yield part, path, "its run has a record now"
    branches = BranchCheckpoints(store)
    for path in _entries(store, "checkpoints"):
        branch = parse_name(path)
        if branch is not None and not branches.is_needed(branch):
            yield "checkpoints", path, "the runs that start from it have records, or it is damaged"
    if quarantine:
        for path in _entries(store, "quarantine"):
            yield "quarantine", path, "failed verification"


def _entries(store: Store, part: str) -> list[Path]:
    """Return the entries of a folder of the store; links are not followed."""
    folder = store.root / part
    return [] if folder.is_symlink() else disk.listed(folder)
