"""The check of a whole store: damaged records and checkpoints, quarantine, stray files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from rulescope.core import disk
from rulescope.core.arrays import ArrayFileError
from rulescope.core.errors import RecordError, counted
from rulescope.records.branch_checkpoints import Branch, BranchCheckpoints, parse_name
from rulescope.records.sizes import PARTS
from rulescope.records.store import Report, Store
from rulescope.records.store_layout import ID


class Finding(NamedTuple):
    """One entry of a store, and what was found out about it."""

    what: str
    """A run id, or a path in the store."""
    about: str
    wrong: bool = True
    """Whether it is a problem, not only a note."""


class StoreCheck(NamedTuple):
    """The findings of a check, and the records that passed it."""

    findings: list[Finding]
    intact: list[str]
    """Ids of the records that match their checksums."""


def check_store(store: Store, report: Report | None = None) -> StoreCheck:
    """Read every record and checkpoint; damaged ones move to quarantine unless it is read only.

    ``report`` is called with the number of records read, and of all.
    """
    before = list(_list_quarantined(store))
    damaged = [Finding(each.id, each.problem) for each in store.verify(report)]
    damaged += _check_checkpoints(store)
    wrong = {finding.what for finding in damaged}  # still in place if the store is read only
    intact = [run for run in store.ids() if run not in wrong]
    return StoreCheck([*damaged, *before, *_list_stray(store)], intact)


def _check_checkpoints(store: Store) -> Iterator[Finding]:
    for path in disk.listed(store.root / "checkpoints"):
        branch = parse_name(path)
        if branch is not None:
            yield from _check_branch(store, branch)
            continue
        if not ID.fullmatch(path.stem) or path.suffix != ".npz":
            yield Finding(str(path.relative_to(store.root)), "not a checkpoint")
            continue
        try:
            store.read_checkpoint(path.stem)  # None if its run has just been finished
        except RecordError as fault:
            yield Finding(path.stem, f"its checkpoint: {fault}")


def _check_branch(store: Store, branch: Branch) -> Iterator[Finding]:
    """Yield the damage of a branch checkpoint, which stays: no result depends on it."""
    with suppress(FileNotFoundError):  # removed meanwhile
        try:
            BranchCheckpoints(store).read(branch)
        except ArrayFileError as fault:
            about = f"a branch checkpoint: damaged ({fault}); `rulescope records clean` removes it"
            yield Finding(f"checkpoints/{branch.file_name}", about)


def _list_quarantined(store: Store) -> Iterator[Finding]:
    """Yield the entries of the quarantine; one whose run has an intact record is no problem."""
    for item in store.quarantined():
        repeated = ID.fullmatch(item.id) is not None and item.id in store
        since = "; there is an intact record of this run now" if repeated else ""
        about = f"in quarantine since it was found damaged ({item.reason}){since}"
        yield Finding(str(item.path.relative_to(store.root)), about, wrong=not repeated)


def _list_stray(store: Store) -> Iterator[Finding]:
    for path in disk.listed(store.root):
        if path.name not in PARTS:
            yield Finding(path.name, "not a part of a store", wrong=False)
    temporary = disk.listed(store.root / "tmp")
    if temporary:
        about = f"{counted(len(temporary), 'write')} in progress, or left by crashed processes"
        yield Finding("tmp", about, wrong=False)
