"""``rulescope records query``: SQL over all records of a store."""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from rulescope.cli.console import console, index_progress, printable
from rulescope.cli.options import RESULTS, STORE, StoreFolder
from rulescope.core import disk
from rulescope.core.errors import RecordError, counted
from rulescope.records import Problem, Store
from rulescope.records import query as queries
from rulescope.records.query import QueryResult
from rulescope.records.typed_tables import TypedTable

HELP = """Query all records of a store in SQL (DuckDB's).

[bold]runs[/bold] has one row for each record: id, learner, environment, scale, seed, iterations, \
interventions, change, boundary, rule, science_hash, started, seconds, rows, bytes, parents, and \
every field of the specification, such as learner_learning_rate.

[bold]logs[/bold] has one row for each row of a log: id, iteration, steps, score and all other \
columns; what is not a number is NULL.

[bold]estimates[/bold] has one row for each estimate in the results folders below --results: \
folder, assay, rule, agent, quantity, a column for each label (task, arm, scale, ...), value, low, \
high, n, family, method, published_value, published_low, published_high. \
[bold]estimate_runs[/bold] has the runs of each results folder: folder, assay, id, science_hash.

A query reads these and nothing else. "DESCRIBE runs" lists the columns. Examples:

rulescope records query "SELECT learner, count(*) AS n FROM runs GROUP BY ALL"

rulescope records query "SELECT seed, scale, max(score) AS best FROM runs JOIN logs USING (id) \
WHERE learner = 'disco' GROUP BY ALL ORDER BY scale, seed"

rulescope records query "FROM logs WHERE score > 0.9" --out mastered.parquet

rulescope records query "SELECT arm, scale, value, low, high, published_value FROM estimates \
WHERE assay = 'E1' AND quantity = 'score'" --results results
"""

ROWS = 100
"""Rows of a printed table, unless more are asked for."""


def query(
    sql: Annotated[
        str, typer.Argument(metavar="SQL", help="One SELECT over runs, logs and estimates.")
    ],
    store: StoreFolder = STORE,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of results, for estimates. Default: results, if there is such a folder.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array of rows.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "--export",
            metavar="FILE",
            help="Write a .parquet, .csv or .json file instead.",
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows of the table to print.")] = ROWS,
) -> None:
    """Run one query (see :data:`HELP`)."""
    if sum((as_json, as_csv, out is not None)) > 1:
        raise RecordError("--json, --csv and --out exclude one another")
    if out is not None:
        queries.export_format(out)
        disk.require_possible(out.parent)
    keep = Store(store, read_only=True)
    tables = _read_estimates(sql, results)
    with index_progress() as report, queries.open_database(keep, report, tables) as database:
        warn_left_out(database.problems)
        with _name_results_option(tables):
            answer = None if out is not None else database.query(sql)
            count = 0 if out is None else database.export(sql, out)
        if answer is None:
            print(f"{out}: {counted(count, 'row')}", file=sys.stderr)
        elif as_json:
            queries.write_json(answer, sys.stdout)
        elif as_csv:
            _print_csv(answer)
        else:
            _print_table(answer, rows)
        if database.problems:
            raise typer.Exit(1)


def _read_estimates(sql: str, results: Path | None) -> Mapping[str, TypedTable]:
    """Return the tables of estimates; none if neither ``sql`` nor ``results`` asks for them."""
    from rulescope.assays.stored_estimates import make_tables

    folder = results or RESULTS
    if results is None and not ("estimate" in sql.lower() and folder.is_dir()):
        return {}
    try:
        return make_tables(folder)
    except RecordError as fault:
        raise RecordError(f"--results: {fault}") from None


@contextmanager
def _name_results_option(tables: Mapping[str, TypedTable]) -> Iterator[None]:
    """Name the option in the error of a query for estimates where there are no results."""
    try:
        yield
    except RecordError as fault:
        if tables or "Table with name estimate" not in str(fault):
            raise
        raise RecordError(
            f"query: there are no estimates: {RESULTS} is not a folder; name it with --results DIR"
        ) from None


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
        print(f"only the first {limit:,} rows; see --rows, --csv and --out", file=sys.stderr)
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
