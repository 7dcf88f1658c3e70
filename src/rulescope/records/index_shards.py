"""Shards of the index: some records as two Parquet files, in a folder named by their hash."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.records.columns import Row, cast_sql, literal, log_columns, quoted, stack_rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RUNS, LOGS = "runs.parquet", "logs.parquet"
ID, SIGNATURE = "t:id", "t:signature"
FULL = 2000
"""Records in a shard at most; fewer if their logs are long."""

_VALUES = 4 << 20
"""Log values that are collected in memory before a shard is written."""
_SMALL = 16 << 20
"""A shard with fewer bytes of logs is small, unless it is full."""
_MEMORY = "256MB"
"""Memory limit of DuckDB while a shard is written."""


class Shard(NamedTuple):
    """A folder of the index, and the signature of each record in it by run id."""

    folder: Path
    records: dict[str, str]


def connect(memory: str, temporary: Path | None = None) -> DuckDBPyConnection:
    """Return an empty in-memory DuckDB that neither loads nor downloads extensions.

    Data beyond the limit ``memory`` goes to the folder ``temporary``, or raises an error.
    """
    import duckdb  # slow to import, and most commands do not need it

    return duckdb.connect(
        ":memory:",
        config={
            "memory_limit": memory,
            "temp_directory": "" if temporary is None else str(temporary),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )


@contextmanager
def shard_connection() -> Iterator[DuckDBPyConnection]:
    """Open a connection to make shards; errors of DuckDB become :class:`RecordError`."""
    import duckdb

    connection = connect(_MEMORY)
    try:
        connection.execute("SET threads = 1; SET pandas_analyze_sample = 1000000000")
        yield connection
    except duckdb.Error as fault:
        raise RecordError(f"the index cannot be made ({str(fault).splitlines()[0]})") from None
    finally:
        connection.close()


def content_hash(folder: Path) -> str:
    """Return the hash of the two files of a shard, which is its name."""
    total = hashlib.sha256()
    for name in (RUNS, LOGS):
        if not stat.S_ISREG((folder / name).lstat().st_mode):  # reading a pipe would not end
            raise OSError(f"{name} is not a regular file")
        with (folder / name).open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def open_shard(connection: DuckDBPyConnection, folder: Path) -> Shard | None:
    """Return the shard in ``folder``, or None if it is damaged."""
    import duckdb

    query = f"SELECT {quoted(ID)}, {quoted(SIGNATURE)} FROM {parquet_sql(folder / RUNS)}"
    try:
        if folder.is_symlink() or folder.name != content_hash(folder):
            return None
        return Shard(folder, dict(connection.execute(query).fetchall()))
    except (OSError, duckdb.Error):
        return None


def is_small(shard: Shard) -> bool:
    """Return whether a shard should be merged with others."""
    return len(shard.records) < FULL and (shard.folder / LOGS).stat().st_size < _SMALL


def parquet_sql(*paths: Path) -> str:
    """Return the SQL that reads Parquet files as one table."""
    return f"read_parquet([{', '.join(literal(str(path)) for path in paths)}], union_by_name=true)"


class Batch:
    """Records to be written as one shard."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._logs: list[dict[str, NDArray[Any]]] = []
        self._values = 0

    @property
    def full(self) -> bool:
        """Whether it should be written now."""
        return len(self.rows) >= FULL or self._values >= _VALUES

    def add(self, row: Row, log: Arrays, signature: str) -> None:
        """Add one record: its row of ``runs``, its log columns [rows(, k)], and its signature."""
        converted = log_columns(log)
        self.rows.append(row | {SIGNATURE: signature})
        self._logs.append(converted)
        self._values += sum(column.size for column in log.values())

    def write(self, folder: Path) -> None:
        """Write the files of a shard."""
        lengths = [max((len(column) for column in log.values()), default=0) for log in self._logs]
        place = np.repeat(np.arange(len(self._logs), dtype=np.int32), lengths)
        runs = stack_rows(self.rows)
        with shard_connection() as connection:
            connection.register("run", runs)
            _copy(connection, f"SELECT {cast_sql(runs)} FROM run", folder / RUNS)
            names = {"place": np.arange(len(self.rows), dtype=np.int32), "id": runs[ID]}
            connection.register("named", names)
            logs = _concatenate(self._logs, lengths)
            connection.register("log", logs | {"place": place})
            selected = ", ".join([f"named.id AS {quoted(ID)}", *([cast_sql(logs)] if logs else [])])
            _copy(connection, f"SELECT {selected} FROM log JOIN named USING (place)", folder / LOGS)


def merge_shards(parts: dict[Path, list[str]], folder: Path) -> None:
    """Write one shard from the named records of several shards, given as folder to run ids."""
    with shard_connection() as connection:
        for name in (RUNS, LOGS):
            queries = []
            for place, (source, wanted) in enumerate(parts.items()):
                connection.register(f"wanted{place}", {"id": np.array(wanted, dtype=object)})
                queries.append(
                    f"SELECT * FROM {parquet_sql(source / name)} "
                    f"WHERE {quoted(ID)} IN (SELECT id FROM wanted{place})"
                )
            _copy(connection, " UNION ALL BY NAME ".join(queries), folder / name)


def _concatenate(
    logs: list[dict[str, NDArray[Any]]], lengths: list[int]
) -> dict[str, NDArray[Any]]:
    """Return the columns of all logs [total rows]: NaN (which becomes NULL) or None if absent."""
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    found: dict[str, NDArray[Any]] = {}
    for name in sorted({name for log in logs for name in log}):
        whole: NDArray[Any] = (
            np.full(starts[-1], np.nan)
            if name.startswith("f:")
            else np.full(starts[-1], None, dtype=object)
        )
        for log, start in zip(logs, starts, strict=False):
            if name in log:
                whole[start : start + len(log[name])] = log[name]
        found[name] = whole
    return found


def _copy(connection: DuckDBPyConnection, query: str, path: Path) -> None:
    connection.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)")
