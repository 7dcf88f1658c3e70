"""``rulescope records``: the records of a store, listed, measured and cleaned up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from rulescope.cli import records_query, records_transfer
from rulescope.cli.console import console, index_progress, make_table, printable
from rulescope.cli.options import STORE, AsJson, StoreFolder
from rulescope.cli.records_query import fail_on, make_row_table
from rulescope.core import disk
from rulescope.core.errors import RecordError, counted
from rulescope.records import Problem, Record, Store, cleanup, sizes
from rulescope.records.columns import describe_intervention
from rulescope.records.index import Index

app = typer.Typer(no_args_is_help=True, help="Show, query, copy and delete the records of a store.")
app.command("query", help=records_query.HELP)(records_query.query)
app.command("import")(records_transfer.import_)
app.command("export")(records_transfer.export)
app.command("delete")(records_transfer.delete)
app.command("tensorboard")(records_transfer.tensorboard)
app.command("wandb")(records_transfer.wandb)


@app.command("hashes")
def hashes(
    store: StoreFolder = STORE,
    as_json: AsJson = False,
) -> None:
    """Verify every record, and print its science hash.

    The science hash covers the measurements, and neither times nor machines: two records of one
    run agree exactly if their hashes do. The hashes of a record of schema 1 and one of schema 2
    also differ if only the carrier columns do; `import` and `verify --rerun` allow for that.
    """
    keep = Store(store, read_only=True)
    found, problems = {}, []
    for run in keep.ids():
        try:
            found[run] = keep.read(run).manifest.science_hash
        except RecordError as fault:
            problems.append(Problem(run, str(fault)))
    if as_json:
        print(json.dumps(found))
    else:
        for run, science in found.items():
            print(run, science)
    fail_on(problems)


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(metavar="ID", help="Run id, or its beginning.")],
    rows: Annotated[int, typer.Option(min=0, help="Last rows of the log to show.")] = 5,
    store: StoreFolder = STORE,
    as_json: AsJson = False,
) -> None:
    """Show one record: its specification, its provenance, and the end of its log."""
    keep = Store(store, read_only=True)
    record = keep.read(keep.find(run))
    last = {name: column[max(0, len(column) - rows) :] for name, column in record.log.items()}
    if as_json:
        manifest = msgspec.to_builtins(record.manifest)
        ends = {name: column.tolist() for name, column in last.items()}
        print(msgspec.json.encode({"manifest": manifest, "log": ends}).decode())
        return
    screen = console()
    for name, value in _describe(record).items():
        screen.print(Text.assemble((f"{name:14}", "bold"), value))
    count = max(map(len, record.log.values()), default=0)
    screen.print(f"\n{counted(count, 'log row')}; the last:")
    columns = {name: column.tolist() for name, column in last.items()}
    heads = [f"{at:g}" for at in columns.pop("iteration", range(min(rows, count)))]
    leading = [name for name in ("steps", "score") if name in columns]
    names = leading + sorted(name for name in columns if name not in leading)
    screen.print(make_row_table(["iteration", *heads], [[name, *columns[name]] for name in names]))


def _describe(record: Record) -> dict[str, str]:
    spec, manifest = record.spec, record.manifest
    source = manifest.source
    dirty = ", edited" if source.get("dirty") else ""
    facts = {
        "id": manifest.id,
        "science hash": manifest.science_hash,
        "learner": spec.learner.__struct_config__.tag,
        "environment": spec.environment.__struct_config__.tag,
        "scale": f"{spec.scale:g}",
        "seed": spec.seed,
        "iterations": f"{spec.iterations:,}",
        "interventions": "; ".join(map(describe_intervention, spec.interventions)) or "none",
        "rule": "none" if manifest.rule is None else manifest.rule.name,
        "source": f"rulescope {source.get('version')}, {source.get('commit')}{dirty}",
        "runtime": ", ".join(f"{name} {value}" for name, value in manifest.runtime.items()),
        "started": f"{manifest.started}, took {manifest.seconds:,.1f} s",
        "spec": manifest.canonical,
    }
    if manifest.parents:
        facts["donors"] = ", ".join(manifest.parents)
    return {name: printable(str(value)) for name, value in facts.items()}


@app.command("index")
def index(store: StoreFolder = STORE) -> None:
    """Update the index of a store, so that queries need not open every record.

    `run` and `audit` do so when they end. Queries read the index and never write it.
    """
    keep = Store(store)
    keep.require_writable()
    with index_progress() as report, Index(keep) as updated:
        updated.refresh(report)
    count = sum(1 for _ in keep.ids()) - len(updated.problems)
    print(f"{store}: {counted(count, 'record')} in the index")
    fail_on(updated.problems)


@app.command("size")
def size(
    store: StoreFolder = STORE,
    as_json: AsJson = False,
) -> None:
    """Show the disk space of each part of a store."""
    with index_progress() as report:
        found = sizes.measure(Store(store, read_only=True), report)
    if as_json:
        groups = [
            {"learner": learner, "environment": environment, **space._asdict()}
            for (learner, environment), space in found.groups.items()
        ]
        parts = {name: space._asdict() for name, space in found.parts.items()}
        print(json.dumps({"parts": parts, "records": groups}))
    else:
        screen = console()
        spaces = {(name, sizes.PARTS[name]): space for name, space in found.parts.items()}
        screen.print(_fill(make_table("part", "content", ">entries", ">size"), spaces))
        if found.groups:
            screen.print()
            by_kind = make_table("learner", "environment", ">records", ">size")
            screen.print(_fill(by_kind, found.groups))
    fail_on(found.problems)


def _fill(table: Table, spaces: Mapping[tuple[str, str], sizes.Size]) -> Table:
    for labels, space in spaces.items():
        table.add_row(*labels, f"{space.entries:,}", sizes.readable(space.bytes))
    return table


@app.command("clean")
def clean(
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Also remove entries that failed verification.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be removed.")
    ] = False,
    store: StoreFolder = STORE,
    as_json: AsJson = False,
) -> None:
    """Remove files left by crashed processes, and checkpoints and failures of finished runs.

    That is: folders in tmp/ whose process on this machine is dead, or which have not been written
    to for a day; and checkpoints and failures of runs that have a record by now. Records are not
    touched.
    """
    keep = Store(store)
    if not disk.is_folder(keep.root):
        raise RecordError(f"{keep.root}: no such store")
    found = cleanup.find(keep, quarantine=quarantine)
    if not dry_run:
        cleanup.remove(found)
    space = sum(each.bytes for each in found)
    if as_json:
        items = [
            {**each._asdict(), "path": str(each.path.relative_to(keep.root))} for each in found
        ]
        print(json.dumps({"removed": not dry_run, "bytes": space, "leftovers": items}))
        return
    screen = console()
    if found:
        screen.print(_leftover_table(found))
    done = "would be removed" if dry_run else "removed"
    screen.print(f"{store}: {counted(len(found), 'leftover')} of {sizes.readable(space)} {done}")


def _leftover_table(found: list[cleanup.Leftover]) -> Table:
    """Return the number and the size of the leftovers of each kind."""
    table = make_table("part", "why", ">entries", ">size")
    for part, why in dict.fromkeys((each.part, each.why) for each in found):
        some = [each.bytes for each in found if (each.part, each.why) == (part, why)]
        table.add_row(part, why, f"{len(some):,}", sizes.readable(sum(some)))
    return table
