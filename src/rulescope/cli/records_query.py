"""``rulescope records query``: questions in SQL about all records of a store."""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table
from rich.text import Text

from rulescope.assays.results import counted
from rulescope.cli import selection_options
from rulescope.cli.console import console, printable
from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records import Problem, Store
from rulescope.records import query as queries
from rulescope.records.query import QueryResult
from rulescope.records.store import Report

HELP = """Ask about all records of a store in SQL (DuckDB's).

[bold]runs[/bold] has one row for each record: id, learner, environment, scale, seed, iterations, \
interventions, change, boundary, rule, science_hash, started, seconds, rows, bytes, parents, and \
every field of the specification, such as learner_learning_rate.

[bold]logs[/bold] has one row for each row of a log: id, iteration, steps, score and all other \
columns; what is not a number is NULL.

A query reads these two and nothing else. "DESCRIBE runs" lists the columns. Examples:

rulescope records query "SELECT learner, count(*) AS n FROM runs GROUP BY ALL"

rulescope records query "SELECT seed, scale, max(score) AS best FROM runs JOIN logs USING (id) \
WHERE learner = 'disco' GROUP BY ALL ORDER BY scale, seed"

rulescope records query "FROM logs WHERE score > 0.9" --export mastered.parquet
"""

NO_MORE = 100
"""Rows of a table for people, unless they ask for more."""


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT over runs and logs.")],
    store: selection_options.StoreFolder = selection_options.STORE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array of rows.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a .parquet or .csv file instead.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the table to print.")] = NO_MORE,
) -> None:
    """Answer one question about all records of a store (see ``HELP``)."""
    if sum((as_json, as_csv, export is not None)) > 1:
        raise RecordError("--json, --csv and --export exclude one another")
    if export is not None:
        queries.export_format(export)
        disk.require_possible(export.parent)
    keep = Store(store, read_only=True)
    with indexing() as report, queries.open_database(keep, report) as questions:
        tell_left_out(questions.problems)
        if export is not None:
            count = questions.export(sql, export)
            print(f"{export}: {counted(count, 'row')}", file=sys.stderr)
        else:
            answer = questions.query(sql)
            if as_json:
                _print_json(answer)
            elif as_csv:
                _print_csv(answer)
            else:
                _print_table(answer, rows)
        if questions.problems:
            raise typer.Exit(1)


@contextmanager
def indexing() -> Iterator[Report | None]:
    """Lend what shows how far the index is, to people who wait for it."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = False

    def report(done: int, total: int) -> None:
        nonlocal shown
        if done % 100 == 0 or done == total:
            shown = total > 100
            end = "\n" if done == total else "\r"
            if shown:
                print(f"indexing: {done:,} of {total:,} records", end=end, file=sys.stderr)

    yield report


def tell_left_out(problems: Sequence[Problem]) -> None:
    """Warn of records that a query does not see."""
    for problem in problems[:10]:
        print(f"warning: left out: {problem.problem}", file=sys.stderr)
    if len(problems) > 10:
        print(f"warning: {len(problems) - 10:,} more are left out", file=sys.stderr)


def _print_json(answer: QueryResult) -> None:
    """Print rows as they come; numbers that JSON does not have are null."""
    opening = "["
    for row in answer.rows:
        named = dict(zip(answer.columns, row, strict=True))
        print(opening + msgspec.json.encode(named, enc_hook=str).decode(), end="")
        opening = ",\n"
    print("[]" if opening == "[" else "]")


def _print_csv(answer: QueryResult) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        writer.writerow([_plain(value) for value in row])


def _plain(value: Any) -> Any:
    if isinstance(value, list | dict):
        return msgspec.json.encode(value, enc_hook=str).decode()
    return value


def _print_table(answer: QueryResult, limit: int) -> None:
    found = list(itertools.islice(answer.rows, limit))
    screen = console()
    screen.print(table(answer.columns, found))
    if next(answer.rows, None) is not None:
        print(f"only the first {limit:,} rows; see --rows, --csv and --export", file=sys.stderr)
    elif not found:
        print("no rows", file=sys.stderr)


def table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return rows as a table for people: numbers to the right, nothing cut off."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(names):
        numeric = all(isinstance(row[place], int | float | None) for row in rows)
        made.add_column(Text(printable(name)), justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        made.add_row(*(Text(_shown(value)) for value in row))
    return made


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return printable(str(_plain(value)))
