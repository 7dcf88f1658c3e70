"""``rulescope records query``: SQL over all records of a store."""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from rulescope.cli.console import console, index_progress, printable
from rulescope.cli.options import STORE, StoreFolder
from rulescope.core import disk
from rulescope.core.errors import RecordError, counted
from rulescope.records import Problem, Store
from rulescope.records import query as queries
from rulescope.records.query import QueryResult

HELP = """Query all records of a store in SQL (DuckDB's).

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

ROWS = 100
"""Rows of a printed table, unless more are asked for."""


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT over runs and logs.")],
    store: StoreFolder = STORE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array of rows.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a .parquet or .csv file instead.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the table to print.")] = ROWS,
) -> None:
    """Run one query (see :data:`HELP`)."""
    if sum((as_json, as_csv, export is not None)) > 1:
        raise RecordError("--json, --csv and --export exclude one another")
    if export is not None:
        queries.export_format(export)
        disk.require_possible(export.parent)
    keep = Store(store, read_only=True)
    with index_progress() as report, queries.open_database(keep, report) as database:
        warn_left_out(database.problems)
        if export is not None:
            count = database.export(sql, export)
            print(f"{export}: {counted(count, 'row')}", file=sys.stderr)
        else:
            answer = database.query(sql)
            if as_json:
                _print_json(answer)
            elif as_csv:
                _print_csv(answer)
            else:
                _print_table(answer, rows)
        if database.problems:
            raise typer.Exit(1)


def warn_left_out(problems: Sequence[Problem]) -> None:
    """Warn of records that a query does not read."""
    for problem in problems[:10]:
        print(f"warning: left out: {problem.problem}", file=sys.stderr)
    if len(problems) > 10:
        print(f"warning: {len(problems) - 10:,} more are left out", file=sys.stderr)


def fail_on(problems: Sequence[Problem]) -> None:
    """Print the problems of records, and exit with code 1 if there are any."""
    for problem in problems:
        print(f"error: {problem.id}: {problem.problem}", file=sys.stderr)
    if problems:
        raise typer.Exit(1)


def _print_json(answer: QueryResult) -> None:
    """Print rows as they are read; NaN and infinities are null."""
    before = "["
    for row in answer.rows:
        fields = dict(zip(answer.columns, row, strict=True))
        print(before + msgspec.json.encode(fields, enc_hook=str).decode(), end="")
        before = ",\n"
    print("[]" if before == "[" else "]")


def _print_csv(answer: QueryResult) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        writer.writerow([_as_cell(value) for value in row])


def _as_cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return msgspec.json.encode(value, enc_hook=str).decode()
    return value


def _print_table(answer: QueryResult, limit: int) -> None:
    found = list(itertools.islice(answer.rows, limit))
    screen = console()
    screen.print(make_row_table(answer.columns, found))
    if next(answer.rows, None) is not None:
        print(f"only the first {limit:,} rows; see --rows, --csv and --export", file=sys.stderr)
    elif not found:
        print("no rows", file=sys.stderr)


def make_row_table(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return ``rows`` as a table: numbers to the right, nothing truncated."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, name in enumerate(names):
        numeric = all(isinstance(row[place], int | float | None) for row in rows)
        justify: JustifyMethod = "right" if numeric else "left"
        table.add_column(Text(printable(name)), justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_format_cell(value)) for value in row))
    return table


def _format_cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    return printable(str(_as_cell(value)))
