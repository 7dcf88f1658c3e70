"""``rulescope records``: looking at what a store holds."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Annotated

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from rulescope.assays.results import counted
from rulescope.cli import records_clean, records_query, records_transfer, selection_options
from rulescope.cli.console import console, printable
from rulescope.cli.records_query import indexing, table
from rulescope.core.errors import RecordError
from rulescope.records import Problem, Record, Store, sizes
from rulescope.records.columns import describe
from rulescope.records.index import Index

app = typer.Typer(no_args_is_help=True, help="Look at, copy and delete the records in a store.")
app.command("query", help=records_query.HELP)(records_query.query)
app.command("import")(records_transfer.import_)
app.command("export")(records_transfer.export)
app.command("delete")(records_transfer.delete)
app.command("clean")(records_clean.clean)
app.command("tensorboard")(records_transfer.tensorboard)
app.command("wandb")(records_transfer.wandb)


@app.callback()
def records() -> None:
    """Hold the verbs below together."""


@app.command("hashes")
def hashes(
    store: selection_options.StoreFolder = selection_options.STORE,
    as_json: selection_options.AsJson = False,
) -> None:
    """Print the science hash of every record, having verified it.

    The science hash covers what was measured, and neither times nor machines: two records of one
    run agree exactly if their hashes do. The hashes of a record of schema 1 and one of schema 2
    also differ if only the carrier columns do; `import` and `verify --rerun` allow for that.
    """
    keep = Store(store, read_only=True)
    found, faults = {}, []
    for run in keep.ids():
        try:
            found[run] = keep.read(run).manifest.science_hash
        except RecordError as fault:
            faults.append(Problem(run, str(fault)))
    if as_json:
        print(json.dumps(found))
    else:
        for run, science in found.items():
            print(run, science)
    _tell(faults)


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(metavar="ID", help="Of the record; its beginning will do.")],
    rows: Annotated[int, typer.Option(min=0, help="Last rows of the log to show.")] = 5,
    store: selection_options.StoreFolder = selection_options.STORE,
    as_json: selection_options.AsJson = False,
) -> None:
    """Show one record: where it comes from, what was run, and how it ended."""
    keep = Store(store, read_only=True)
    record = keep.read(keep.find(run))
    last = {name: column[max(0, len(column) - rows) :] for name, column in record.log.items()}
    if as_json:
        manifest = msgspec.to_builtins(record.manifest)
        ends = {name: column.tolist() for name, column in last.items()}
        print(msgspec.json.encode({"manifest": manifest, "log": ends}).decode())
        return
    screen = console()
    for name, value in _facts(record).items():
        screen.print(Text.assemble((f"{name:14}", "bold"), value))
    count = max(map(len, record.log.values()), default=0)
    screen.print(f"\n{counted(count, 'log row')}; the last:")
    columns = {name: column.tolist() for name, column in last.items()}
    heads = [f"{at:g}" for at in columns.pop("iteration", range(min(rows, count)))]
    leading = [name for name in ("steps", "score") if name in columns]
    names = leading + sorted(name for name in columns if name not in leading)
    screen.print(table(["iteration", *heads], [[name, *columns[name]] for name in names]))


def _facts(record: Record) -> dict[str, str]:
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
        "interventions": "; ".join(map(describe, spec.interventions)) or "none",
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
def index(store: selection_options.StoreFolder = selection_options.STORE) -> None:
    """Bring the index of a store up to date, so that queries need not open every record.

    `run` and `audit` do so when they end. Queries use the index and never write it.
    """
    keep = Store(store)
    keep.require_writable()
    with indexing() as report, Index(keep) as made:
        made.refresh(report)
    count = sum(1 for _ in keep.ids()) - len(made.problems)
    print(f"{store}: {counted(count, 'record')} in the index")
    _tell(made.problems)


@app.command("size")
def size(
    store: selection_options.StoreFolder = selection_options.STORE,
    as_json: selection_options.AsJson = False,
) -> None:
    """Tell what takes how much room in a store."""
    with indexing() as report:
        found = sizes.measure(Store(store, read_only=True), report)
    if as_json:
        groups = [
            {"learner": learner, "environment": environment, **room._asdict()}
            for (learner, environment), room in found.groups.items()
        ]
        parts = {name: room._asdict() for name, room in found.parts.items()}
        print(json.dumps({"parts": parts, "records": groups}))
    else:
        screen = console()
        screen.print(_rooms(("part", "what it is"), _parts(found)))
        if found.groups:
            screen.print()
            screen.print(_rooms(("learner", "environment"), found.groups.items()))
    _tell(found.problems)


def _parts(found: sizes.Sizes) -> Iterable[tuple[tuple[str, str], sizes.Size]]:
    return [((name, sizes.PARTS[name]), room) for name, room in found.parts.items()]


def _rooms(heads: tuple[str, str], rows: Iterable[tuple[tuple[str, str], sizes.Size]]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        made.add_column(head)
    made.add_column("entries" if heads[0] == "part" else "records", justify="right")
    made.add_column("size", justify="right")
    for labels, room in rows:
        made.add_row(*labels, f"{room.entries:,}", sizes.readable(room.bytes))
    return made


def _tell(faults: Iterable[Problem]) -> None:
    """Print what is wrong with some records, and leave with the code for it."""
    faults = list(faults)
    for fault in faults:
        print(f"error: {fault.problem}", file=sys.stderr)
    if faults:
        raise typer.Exit(1)
