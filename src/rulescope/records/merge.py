"""Merging: records of a store or an archive, copied into another store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records import archive, plans
from rulescope.records.archive import LIMITS, Limits
from rulescope.records.store import ConflictError, Problem, Store


@dataclass
class Merged:
    """The records of a source by outcome."""

    new: list[str] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    """Present already, with an equal result (see :func:`rulescope.records.record.agree`)."""
    conflicts: list[Problem] = field(default_factory=list)
    """Present already, with a different result; the target's record stays."""
    refused: list[Problem] = field(default_factory=list)
    """Damaged, or not understood by this version."""


def merge(
    target: Store,
    source: Path,
    *,
    limits: Limits = LIMITS,
    report: Callable[[Merged], None] | None = None,
) -> Merged:
    """Copy every intact record of ``source``, a store or an archive, into ``target``.

    Each is verified, then committed whole; after an interrupt this can be called again. The source
    is not changed, even if records in it are damaged.
    """
    found = Merged()
    for run, read in _records(source, target, limits):
        try:
            is_new = target.commit_files(run, read(), limits.unpacked)
            (found.new if is_new else found.same).append(run)
        except ConflictError as fault:
            found.conflicts.append(Problem(run, str(fault)))
        except RecordError as fault:
            found.refused.append(Problem(run, str(fault)))
        if report is not None:
            report(found)
    if disk.is_folder(source):  # archives hold records alone
        plans.copy_plans(Store(source), target)
    return found


def _records(
    source: Path, target: Store, limits: Limits
) -> Iterator[tuple[str, Callable[[], dict[str, bytes]]]]:
    """Yield the id of every record in ``source``, with the function that reads its files."""
    if disk.is_folder(source):
        if source.resolve() == target.root.resolve():
            raise RecordError(f"{source}: is the target store itself")
        if not disk.is_folder(source / "runs"):
            raise RecordError(f"{source}: is not a store; it has no folder 'runs'")
        store = Store(source)
        for run in store.ids():
            yield run, lambda run=run: store.files(run, limits.unpacked)  # type: ignore[misc]
        return
    for run, files in archive.read(source, limits):
        yield run, lambda files=files: files  # type: ignore[misc]
