"""SQL queries over all records of a store: the views ``runs`` and ``logs``, and given tables.

A query has access to these only: no files, no network, no settings, no changes. DuckDB
enforces this (``enable_external_access``, ``lock_configuration``), and only statements that read
are executed.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from rulescope.core.errors import RecordError
from rulescope.records import columns, index_shards, store_layout
from rulescope.records.columns import literal
from rulescope.records.index import Index
from rulescope.records.store import Problem, Report, Store
from rulescope.records.typed_tables import TypedTable, create_table

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "512MB"
"""Memory limit of a query."""
DISK = "4GB"
"""Limit of temporary files, for queries that exceed the memory limit."""
MAX_COLUMNS = 4000
"""Different columns of all logs together, at most."""
FORMATS = ("parquet", "csv", "json")

_READING = {"SELECT"}
_BATCH = 10_000
_ATTEMPTS = 3


class QueryResult(NamedTuple):
    """Column names, and rows that are fetched as they are read."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]


class Database:
    """The records of a store as SQL views (see :func:`open_database`)."""

    def __init__(
        self, connection: DuckDBPyConnection, export_path: Path, problems: Sequence[Problem]
    ) -> None:
        self._connection, self._export_path = connection, export_path
        self.problems = problems
        """Records that are left out."""

    def query(self, sql: str) -> QueryResult:
        """Return the result of ``sql``, one statement that reads."""
        with _one_line_errors():
            self._require_select(sql)
            result = self._connection.execute(sql)
            names = [column[0] for column in result.description or ()]
        return QueryResult(names, _rows(result))

    def export(self, sql: str, path: Path) -> int:
        """Write the result to a Parquet, CSV or JSON file, whole or not at all; return its rows."""
        kind = export_format(path)
        if kind == "json":
            with (
                store_layout.replacing(path) as partial,
                partial.open("w", encoding="utf-8") as file,
            ):
                return write_json(self.query(sql), file)
        with _one_line_errors():
            self._require_select(sql)
            relation = self._connection.sql(sql)
            if relation is None:
                raise RecordError("query: has no result to export")
            # Over an existing file DuckDB would write to another name first, which is not allowed.
            self._export_path.unlink(missing_ok=True)
            if kind == "csv":
                relation.write_csv(str(self._export_path), header=True)
            else:
                relation.write_parquet(str(self._export_path), compression="zstd")
            [[rows]] = self._connection.execute(_count_sql(self._export_path, kind)).fetchall()
        with store_layout.replacing(path) as partial:
            shutil.copyfile(self._export_path, partial)
        return int(rows)

    def ids(self, condition: str) -> list[str]:
        """Return the ids of the records for which an SQL condition on ``runs`` holds, sorted."""
        # On a line of its own, so that a comment at its end does not hide the rest.
        result = self.query(f"SELECT id FROM runs WHERE (\n{condition}\n) ORDER BY id")
        return [store_layout.check_id(row[0]) for row in result.rows]

    def _require_select(self, sql: str) -> None:
        """Raise unless ``sql`` is one statement, and one that reads."""
        found = self._connection.extract_statements(sql)
        if len(found) != 1:
            raise RecordError(f"query: {len(found)} statements; give one at a time")
        if found[0].type.name not in _READING:
            raise RecordError(
                f"query: {found[0].type.name} is not possible; a query only reads (SELECT)"
            )


@contextmanager
def open_database(
    store: Store, report: Report | None = None, tables: Mapping[str, TypedTable] | None = None
) -> Iterator[Database]:
    """Update the index of ``store`` and open its records for queries.

    ``tables`` are further tables, by name, that a query can join with the records.
    """
    with ExitStack() as stack:
        index = stack.enter_context(Index(store))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rulescope-query-"))
        private = Path(folder).resolve()
        for left in reversed(range(_ATTEMPTS)):
            folders = index.refresh(report)
            connection = index_shards.connect(MEMORY, private / "spilled")
            stack.callback(connection.close)
            try:
                _prepare(connection, folders)
                break
            except _duckdb_error():  # another process has just removed a shard: refresh again
                if not left:
                    raise RecordError(f"{store.root}: the index cannot be read") from None
        for name, table in (tables or {}).items():
            create_table(connection, name, table)
        export_path = private / "answer"
        logs = [folder / index_shards.LOGS for folder in folders]
        _restrict(connection, [*logs, export_path])
        yield Database(connection, export_path, index.problems)


def _rows(result: DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while True:
        with _one_line_errors():
            some = result.fetchmany(_BATCH)
        if not some:
            return
        yield from some


def export_format(path: Path) -> str:
    """Return the export format for the name of a file."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise RecordError(f"{path}: the name must end in .parquet, .csv or .json")
    return kind


def write_json(answer: QueryResult, file: IO[str]) -> int:
    """Write one JSON array of rows as they are read, and return their number.

    NaN and infinities are null.
    """
    count, before = 0, "["
    for row in answer.rows:
        fields = dict(zip(answer.columns, row, strict=True))
        file.write(before + msgspec.json.encode(fields, enc_hook=str).decode())
        count, before = count + 1, ",\n"
    file.write("]\n" if count else "[]\n")
    return count


def _prepare(connection: DuckDBPyConnection, folders: Sequence[Path]) -> None:
    """Create ``runs``, which is small, as a table in memory, and ``logs`` as a view of files."""
    for view, always, name in (
        ("runs", columns.RUNS, index_shards.RUNS),
        ("logs", columns.LOGS, index_shards.LOGS),
    ):
        source = index_shards.parquet_sql(*(folder / name for folder in folders)) if folders else ""
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}") if folders else None
        physical = [row[0] for row in described.fetchall()] if described else []
        if len(physical) > MAX_COLUMNS:
            raise RecordError(f"the logs have {len(physical):,} different columns: too many")
        visible = [column for column in physical if column != index_shards.SIGNATURE]
        wanted = ", ".join(_as_integer(each) for each in columns.select_columns(visible, always))
        what = "TABLE" if view == "runs" else "VIEW"
        rest = f"FROM {source}" if folders else "WHERE false"
        connection.execute(f"CREATE {what} {view} AS SELECT {wanted} {rest}")


def _as_integer(selected: str) -> str:
    """Convert iterations and steps, which logs hold as floats, to integers."""
    for name in ("iteration", "steps"):
        plain = columns.quoted(f"f:{name}")
        if selected == f"{plain} AS {columns.quoted(name)}":
            return f"TRY_CAST({plain} AS BIGINT) AS {columns.quoted(name)}"
    return selected


def _restrict(connection: DuckDBPyConnection, allowed: Sequence[Path]) -> None:
    """Allow access to the given files only, irreversibly."""
    paths = ", ".join(literal(str(path)) for path in allowed)
    for setting in (
        f"max_temp_directory_size = '{DISK}'",
        "python_enable_replacements = false",
        f"allowed_paths = [{paths}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def _count_sql(path: Path, kind: str) -> str:
    read = "read_parquet" if kind == "parquet" else "read_csv"
    options = "" if kind == "parquet" else ", header = true, all_varchar = true"
    return f"SELECT count(*) FROM {read}({literal(str(path))}{options})"


def _duckdb_error() -> type[Exception]:
    import duckdb

    return cast(type[Exception], duckdb.Error)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn errors of DuckDB into a :class:`RecordError` of one line."""
    import duckdb

    try:
        yield
    except duckdb.PermissionException:
        raise RecordError(
            "query: has access to the records of the store (runs, logs) and to estimates only: "
            "no files, no network, no extensions"
        ) from None
    except duckdb.OutOfMemoryException:
        raise RecordError(f"query: needs more than {MEMORY} of memory; select less") from None
    except duckdb.Error as fault:
        raise RecordError(f"query: {_one_line(str(fault))}") from None


def _one_line(message: str) -> str:
    """Return a message of DuckDB, with its suggestions, without the marked line of SQL."""
    lines = [line.strip() for line in message.split("LINE ")[0].splitlines()]
    return " ".join(line for line in lines if line)
