"""Questions in SQL about all records of a store: the views ``runs`` and ``logs``.

A question sees these views and nothing else: no file, no network, no setting, and it can change
nothing. That is DuckDB's own doing (``enable_external_access``, ``lock_configuration``), and only
statements that read are let through to it.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records import columns, index_shards, store_layout
from rulescope.records.columns import literal
from rulescope.records.index import Index
from rulescope.records.store import Problem, Report, Store

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY = "512MB"
"""What a query may take."""
DISK = "4GB"
"""What a query may put into temporary files when that is not enough."""
MAX_COLUMNS = 4000
"""Of all logs together."""
FORMATS = ("parquet", "csv")

_READING = {"SELECT"}
_AT_ONCE = 10_000
_TRIES = 3


class Answer(NamedTuple):
    """The rows that a question has, read bit by bit."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]


class Questions:
    """The records of a store, ready to be asked about (see :func:`asking`)."""

    def __init__(
        self, connection: DuckDBPyConnection, outbox: Path, problems: Sequence[Problem]
    ) -> None:
        self._connection, self._outbox = connection, outbox
        self.problems = problems
        """Records that are left out, and why."""

    def ask(self, sql: str) -> Answer:
        """Return what ``sql``, one statement that reads, has for an answer."""
        with _explained():
            self._require_reading(sql)
            result = self._connection.execute(sql)
            names = [column[0] for column in result.description or ()]
        return Answer(names, _rows(result))

    def export(self, sql: str, path: Path) -> int:
        """Write the answer to a Parquet or CSV file, whole or not at all; return its rows."""
        kind = export_format(path)
        with _explained():
            self._require_reading(sql)
            relation = self._connection.sql(sql)
            if relation is None:
                raise RecordError("query: has no answer that could be exported")
            # If there were one, DuckDB would write to another name first, which is not allowed.
            self._outbox.unlink(missing_ok=True)
            if kind == "csv":
                relation.write_csv(str(self._outbox), header=True)
            else:
                relation.write_parquet(str(self._outbox), compression="zstd")
            [[rows]] = self._connection.execute(_counting(self._outbox, kind)).fetchall()
        _delivered(self._outbox, path)
        return int(rows)

    def ids(self, condition: str) -> list[str]:
        """Return the ids of the records for which an SQL condition on ``runs`` holds, sorted."""
        # On a line of its own, so that a comment at its end ends with it.
        answer = self.ask(f"SELECT id FROM runs WHERE (\n{condition}\n) ORDER BY id")
        return [store_layout.checked(row[0]) for row in answer.rows]

    def _require_reading(self, sql: str) -> None:
        """Raise unless ``sql`` is one statement, and one that reads."""
        found = self._connection.extract_statements(sql)
        if len(found) != 1:
            raise RecordError(f"query: {len(found)} statements; ask one question at a time")
        if found[0].type.name not in _READING:
            raise RecordError(
                f"query: {found[0].type.name} is not possible; a query reads (SELECT) and "
                "changes nothing"
            )


@contextmanager
def asking(store: Store, report: Report | None = None) -> Iterator[Questions]:
    """Bring the index of ``store`` up to date and lend what answers questions about it."""
    with ExitStack() as stack:
        index = stack.enter_context(Index(store))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rulescope-query-"))
        private = Path(folder).resolve()
        for left in reversed(range(_TRIES)):
            folders = index.refresh(report)
            connection = index_shards.connect(MEMORY, private / "spilled")
            stack.callback(connection.close)
            try:
                _prepare(connection, folders)
                break
            except _engine_error():  # another process has just replaced a shard: look again
                if not left:
                    raise RecordError(f"{store.root}: the index cannot be read") from None
        outbox = private / "answer"
        _shut(connection, [*(folder / index_shards.LOGS for folder in folders), outbox])
        yield Questions(connection, outbox, index.problems)


def _rows(result: DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while True:
        with _explained():
            some = result.fetchmany(_AT_ONCE)
        if not some:
            return
        yield from some


def export_format(path: Path) -> str:
    """Return the format that the name of a file to be written asks for."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise RecordError(f"{path}: the name must end in .parquet or .csv")
    return kind


def _prepare(connection: DuckDBPyConnection, folders: Sequence[Path]) -> None:
    """Make the views; ``runs`` is small and copied, ``logs`` is read when it is asked for."""
    for view, always, name in (
        ("runs", columns.RUNS, index_shards.RUNS),
        ("logs", columns.LOGS, index_shards.LOGS),
    ):
        source = index_shards.parquet(*(folder / name for folder in folders)) if folders else ""
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}") if folders else None
        physical = [row[0] for row in described.fetchall()] if described else []
        if len(physical) > MAX_COLUMNS:
            raise RecordError(f"the logs have {len(physical):,} different columns: too many")
        hidden = [column for column in physical if column != index_shards.SIGNATURE]
        wanted = ", ".join(_whole(each) for each in columns.selected(hidden, always))
        what = "TABLE" if view == "runs" else "VIEW"
        rest = f"FROM {source}" if folders else "WHERE false"
        connection.execute(f"CREATE {what} {view} AS SELECT {wanted} {rest}")


def _whole(selected: str) -> str:
    """Count iterations and steps in whole numbers, though logs hold floats."""
    for name in ("iteration", "steps"):
        plain = columns.quoted(f"f:{name}")
        if selected == f"{plain} AS {columns.quoted(name)}":
            return f"TRY_CAST({plain} AS BIGINT) AS {columns.quoted(name)}"
    return selected


def _shut(connection: DuckDBPyConnection, allowed: Sequence[Path]) -> None:
    """Close every door but those to the named files, for good."""
    paths = ", ".join(literal(str(path)) for path in allowed)
    for setting in (
        f"max_temp_directory_size = '{DISK}'",
        "python_enable_replacements = false",
        f"allowed_paths = [{paths}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


def _counting(path: Path, kind: str) -> str:
    read = "read_parquet" if kind == "parquet" else "read_csv"
    options = "" if kind == "parquet" else ", header = true, all_varchar = true"
    return f"SELECT count(*) FROM {read}({literal(str(path))}{options})"


def _delivered(source: Path, path: Path) -> None:
    """Copy a finished file to where it was asked for, in one step as seen from there."""
    with disk.writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
        try:
            shutil.copyfile(source, half)
            half.replace(path)
        finally:
            half.unlink(missing_ok=True)


def _engine_error() -> type[Exception]:
    import duckdb

    return cast(type[Exception], duckdb.Error)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn what DuckDB says into one line."""
    import duckdb

    try:
        yield
    except duckdb.PermissionException:
        raise RecordError(
            "query: sees the records of the store (runs, logs) and nothing else: "
            "no files, no network, no extensions"
        ) from None
    except duckdb.OutOfMemoryException:
        raise RecordError(f"query: needs more than {MEMORY} of memory; ask for less") from None
    except duckdb.Error as fault:
        raise RecordError(f"query: {_one_line(str(fault))}") from None


def _one_line(message: str) -> str:
    """Return what is wrong, the nearest valid names if given, and not the picture of where."""
    lines = [line.strip() for line in message.split("LINE ")[0].splitlines()]
    return " ".join(line for line in lines if line)
