"""What nobody needs any more: rubbish of dead processes, and notes on runs that have a record."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rulescope.core import disk
from rulescope.records import staging
from rulescope.records.sizes import room
from rulescope.records.store import Store
from rulescope.records.store_layout import ID


class Leftover(NamedTuple):
    """Something that can go, and why."""

    path: Path
    part: str
    """The folder of the store that it is in."""
    why: str
    bytes: int


def find(store: Store, *, quarantine: bool = False) -> list[Leftover]:
    """Return what can go; what was put into quarantine only if that is asked for."""
    return [
        Leftover(path, part, why, room(path)) for part, path, why in _candidates(store, quarantine)
    ]


def remove(found: Iterable[Leftover]) -> None:
    """Remove leftovers; what somebody else has removed meanwhile is no matter."""
    for each in found:
        with disk.writing(each.path), suppress(FileNotFoundError):
            if each.path.is_dir() and not each.path.is_symlink():
                shutil.rmtree(each.path)
            else:
                each.path.unlink()


def _candidates(store: Store, quarantine: bool) -> Iterator[tuple[str, Path, str]]:
    for path in _inside(store, "tmp"):
        if staging.is_rubbish(path):
            yield "tmp", path, "a write that its process did not live to finish"
    for part, ending in (("checkpoints", ".npz"), ("failures", ".json")):
        for path in _inside(store, part):
            if path.suffix == ending and ID.fullmatch(path.stem) and path.stem in store:
                yield part, path, "its run has a record by now"
    if quarantine:
        for path in _inside(store, "quarantine"):
            yield "quarantine", path, "failed verification"


def _inside(store: Store, part: str) -> list[Path]:
    """Return what is in a folder of the store; one that is a link leads elsewhere."""
    folder = store.root / part
    return [] if folder.is_symlink() else disk.listed(folder)
