"""``rulescope records import``, ``export``, ``delete``, ``tensorboard`` and ``wandb``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rulescope.cli.console import index_progress
from rulescope.cli.options import STORE, AsJson, StoreFolder
from rulescope.cli.records_query import fail_on, warn_left_out
from rulescope.core import disk
from rulescope.core.errors import RecordError, counted
from rulescope.records import Problem, Store, archive, index, merge, query, trackers
from rulescope.records.columns import literal
from rulescope.records.sizes import readable

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="Run ids, or the beginning of each."),
]
Where = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="Records that match this, such as \"learner = 'a2c'\"."),
]


def import_(
    source: Annotated[Path, typer.Argument(help="Another store, or an archive made by `export`.")],
    store: StoreFolder = STORE,
    as_json: AsJson = False,
) -> None:
    """Import the records of another store or archive, verifying each.

    Records that are here already with the same science hash are skipped, and so are those of
    another schema that differ in the carrier columns alone. If records differ otherwise, this
    store's record stays and the conflict is reported. The same command resumes an interrupted one.
    """
    with Console(stderr=True).status("importing") as shown:  # shown only on a terminal

        def report(found: merge.Merged) -> None:
            done = len(found.new) + len(found.same)
            shown.update(f"importing: {done:,} records, {len(found.new):,} of them new")

        found = merge.merge(Store(store), source, report=report)
    if as_json:
        body = {
            "new": found.new,
            "same": len(found.same),
            "conflicts": {item.id: item.problem for item in found.conflicts},
            "refused": {item.id: item.problem for item in found.refused},
        }
        print(json.dumps(body))
    else:
        print(f"{counted(len(found.new), 'new record')}, {len(found.same):,} already here")
    for word, problems in (("conflict", found.conflicts), ("refused", found.refused)):
        for problem in problems:
            print(f"{word}: {problem.id}: {problem.problem}", file=sys.stderr)
    if found.conflicts or found.refused:
        raise typer.Exit(1)


def export(
    path: Annotated[
        Path, typer.Argument(metavar="ARCHIVE", help="To write: .zip, .tar or .tar.gz.")
    ],
    ids: Ids = None,
    where: Where = None,
    store: StoreFolder = STORE,
) -> None:
    """Export records, all or those named, to one file that `import` can read."""
    disk.require_possible(path.parent)
    keep = Store(store, read_only=True)
    done, problems = archive.write(keep, select_runs(keep, ids, where), path)
    print(f"{path}: {counted(done, 'record')}, {readable(path.stat().st_size)}")
    fail_on(problems)


def delete(
    ids: Ids = None,
    where: Where = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    store: StoreFolder = STORE,
) -> None:
    """Delete records: those named, or those that match a condition."""
    if not ids and where is None:
        raise RecordError("delete: name records, or give a condition with --where")
    keep = Store(store)
    runs = select_runs(keep, ids, where)
    if not runs:
        print("no such records")
        return
    room = sum(index.record_bytes(keep, run) for run in runs)
    what = f"{counted(len(runs), 'record')} of {readable(room)} in {store}"
    recipients = _list_recipients(keep, runs)
    if recipients:
        some = ", ".join(run[:12] for run in recipients[:5])
        print(
            f"warning: {counted(len(recipients), 'other record')} started from the state of one of "
            f"these ({some}{', ...' if len(recipients) > 5 else ''}) and cannot be reproduced "
            "without it",
            file=sys.stderr,
        )
    if not yes:
        if not sys.stdin.isatty():
            raise RecordError(f"delete: would delete {what}; add --yes to confirm")
        typer.confirm(f"Delete {what}?", abort=True)
    for run in runs:
        keep.delete(run)
    print(f"deleted {what}")


def tensorboard(
    out: Annotated[Path, typer.Argument(help="A folder for `tensorboard --logdir`.")],
    ids: Ids = None,
    where: Where = None,
    store: StoreFolder = STORE,
) -> None:
    """Write records as TensorBoard event files, one folder per record (extra: tensorboard)."""
    disk.require_possible(out)
    keep = Store(store, read_only=True)
    _show_written(out, *trackers.to_tensorboard(keep, select_runs(keep, ids, where), out))


def wandb(
    out: Annotated[Path, typer.Argument(help="A folder; `wandb sync` uploads its runs.")],
    ids: Ids = None,
    where: Where = None,
    project: Annotated[str, typer.Option(help="Name of the project in W&B.")] = "rulescope",
    store: StoreFolder = STORE,
) -> None:
    """Write records as offline runs of Weights & Biases (extra: wandb); nothing is uploaded."""
    disk.require_possible(out)
    keep = Store(store, read_only=True)
    _show_written(out, *trackers.to_wandb(keep, select_runs(keep, ids, where), out, project))


def select_runs(store: Store, ids: Sequence[str] | None, where: str | None) -> list[str]:
    """Return the run ids that were selected: by id, by a condition, or all."""
    if ids and where is not None:
        raise RecordError("name records or give --where, not both")
    if ids:
        return sorted({store.find(each) for each in ids})
    if where is None:
        return list(store.ids())
    with index_progress() as report, query.open_database(store, report) as database:
        warn_left_out(database.problems)
        return database.ids(where)


def _list_recipients(store: Store, runs: Sequence[str]) -> list[str]:
    """Return the other records that have one of ``runs`` as a donor."""
    listed = ", ".join(map(literal, runs))
    with index_progress() as report, query.open_database(store, report) as database:
        return database.ids(f"list_has_any(parents, [{listed}]) AND id NOT IN ({listed})")


def _show_written(out: Path, made: int, kept: int, problems: list[Problem]) -> None:
    print(f"{out}: {counted(made, 'record')} written, {kept:,} already there")
    fail_on(problems)
