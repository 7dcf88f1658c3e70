"""``rulescope records import``, ``export``, ``delete``, ``tensorboard`` and ``wandb``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rulescope.assays.results import counted
from rulescope.cli import selection_options
from rulescope.cli.records_query import indexing, tell_left_out
from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records import Problem, Store, archive, index, merge, query, trackers
from rulescope.records.columns import literal
from rulescope.records.sizes import readable

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="Of records; the beginning of each will do."),
]
Where = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="Records for which this holds, such as \"learner = 'a2c'\"."),
]


def import_(
    source: Annotated[Path, typer.Argument(help="Another store, or an archive made by `export`.")],
    store: selection_options.StoreFolder = selection_options.STORE,
    as_json: selection_options.AsJson = False,
) -> None:
    """Bring the records of another store into this one, each verified and whole.

    Records that are here already with the same science hash are skipped, and so are those of
    another schema that differ in the carrier columns alone. Where records differ otherwise, this
    store's record stays and the conflict is reported. Interrupted, the same command completes it.
    """
    with Console(stderr=True).status("importing") as shown:  # which only a terminal shows

        def report(found: merge.Merged) -> None:
            done = len(found.new) + len(found.same)
            shown.update(f"importing: {done:,} records, {len(found.new):,} of them new")

        found = merge.merge(Store(store), source, report=report)
    if as_json:
        said = {
            "new": found.new,
            "same": len(found.same),
            "conflicts": {item.id: item.problem for item in found.conflicts},
            "refused": {item.id: item.problem for item in found.refused},
        }
        print(json.dumps(said))
    else:
        print(f"{counted(len(found.new), 'new record')}, {len(found.same):,} were here already")
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
    store: selection_options.StoreFolder = selection_options.STORE,
) -> None:
    """Write records into one file that `import` can read: all of them, or those named."""
    disk.require_possible(path.parent)
    keep = Store(store, read_only=True)
    done, problems = archive.write(keep, chosen(keep, ids, where), path)
    print(f"{path}: {counted(done, 'record')}, {readable(path.stat().st_size)}")
    _leave(problems)


def delete(
    ids: Ids = None,
    where: Where = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: selection_options.StoreFolder = selection_options.STORE,
) -> None:
    """Delete records: those named, or those for which a condition holds."""
    if not ids and where is None:
        raise RecordError("delete: name records, or give a condition with --where")
    keep = Store(store)
    runs = chosen(keep, ids, where)
    if not runs:
        print("no such records")
        return
    room = sum(index.size(keep, run) for run in runs)
    what = f"{counted(len(runs), 'record')} of {readable(room)} in {store}"
    heirs = _heirs(keep, runs)
    if heirs:
        some = ", ".join(run[:12] for run in heirs[:5])
        print(
            f"warning: {counted(len(heirs), 'other record')} began with the state of one of these "
            f"({some}{', ...' if len(heirs) > 5 else ''}) and could not be made again without it",
            file=sys.stderr,
        )
    if not yes:
        if not sys.stdin.isatty():
            raise RecordError(f"delete: would delete {what}; say --yes if that is meant")
        typer.confirm(f"Delete {what}?", abort=True)
    for run in runs:
        keep.delete(run)
    print(f"deleted {what}")


def tensorboard(
    out: Annotated[Path, typer.Argument(help="A folder for `tensorboard --logdir`.")],
    ids: Ids = None,
    where: Where = None,
    store: selection_options.StoreFolder = selection_options.STORE,
) -> None:
    """Write records as TensorBoard event files, a folder each (extra: tensorboard)."""
    disk.require_possible(out)
    keep = Store(store, read_only=True)
    _report(out, *trackers.to_tensorboard(keep, chosen(keep, ids, where), out))


def wandb(
    out: Annotated[Path, typer.Argument(help="A folder; `wandb sync` sends what is in it.")],
    ids: Ids = None,
    where: Where = None,
    project: Annotated[str, typer.Option(help="Name of the project in W&B.")] = "rulescope",
    store: selection_options.StoreFolder = selection_options.STORE,
) -> None:
    """Write records as offline runs of Weights & Biases (extra: wandb); nothing is sent."""
    disk.require_possible(out)
    keep = Store(store, read_only=True)
    _report(out, *trackers.to_wandb(keep, chosen(keep, ids, where), out, project))


def chosen(store: Store, ids: Sequence[str] | None, where: str | None) -> list[str]:
    """Return the records that a person chose: by id, by a condition, or all."""
    if ids and where is not None:
        raise RecordError("name records or give --where, not both")
    if ids:
        return sorted({store.find(each) for each in ids})
    if where is None:
        return list(store.ids())
    with indexing() as report, query.open_database(store, report) as questions:
        tell_left_out(questions.problems)
        return questions.ids(where)


def _heirs(store: Store, runs: Sequence[str]) -> list[str]:
    """Return the other records that had one of ``runs`` for a donor."""
    listed = ", ".join(map(literal, runs))
    with indexing() as report, query.open_database(store, report) as questions:
        return questions.ids(f"list_has_any(parents, [{listed}]) AND id NOT IN ({listed})")


def _report(out: Path, made: int, kept: int, problems: list[Problem]) -> None:
    print(f"{out}: {counted(made, 'record')} written, {kept:,} were there already")
    _leave(problems)


def _leave(problems: list[Problem]) -> None:
    for problem in problems:
        print(f"error: left out: {problem.id}: {problem.problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(1)
