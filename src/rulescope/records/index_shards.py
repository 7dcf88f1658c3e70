"""Shards of an index: some records as two Parquet files, in a folder named by their hash."""

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
from rulescope.records.columns import TYPES, Row, literal, log_columns, quoted, stacked

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RUNS, LOGS = "runs.parquet", "logs.parquet"
ID, SIGNATURE = "t:id", "t:signature"
FULL = 2000
"""Records in a shard at most; fewer if their logs are long."""

_VALUES = 4 << 20
"""Numbers that are gathered in memory before a shard is written."""
_SMALL = 16 << 20
"""Bytes of logs in a shard that is small, if it is not full."""
_MEMORY = "256MB"
"""What DuckDB may take while a shard is written."""


class Shard(NamedTuple):
    """A folder of the index, and what it holds: the signature of each record."""

    folder: Path
    records: dict[str, str]


def connect(memory: str, temporary: Path | None = None) -> DuckDBPyConnection:
    """Return an empty DuckDB in memory that loads and fetches nothing by itself.

    What does not fit into ``memory`` goes to a folder ``temporary``, or is an error.
    """
    import duckdb  # takes a while, and most verbs need none of it

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
def workshop() -> Iterator[DuckDBPyConnection]:
    """Lend a connection to make shards with; what fails in it is a :class:`RecordError`."""
    import duckdb

    connection = connect(_MEMORY)
    try:
        connection.execute("SET threads = 1; SET pandas_analyze_sample = 1000000000")
        yield connection
    except duckdb.Error as fault:
        raise RecordError(f"the index cannot be made ({str(fault).splitlines()[0]})") from None
    finally:
        connection.close()


def seal(folder: Path) -> str:
    """Return the name that a folder of two such files must have."""
    total = hashlib.sha256()
    for name in (RUNS, LOGS):
        if not stat.S_ISREG((folder / name).lstat().st_mode):  # a pipe or a link may never end
            raise OSError(f"{name} is no regular file")
        with (folder / name).open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def opened(connection: DuckDBPyConnection, folder: Path) -> Shard | None:
    """Return the shard in ``folder`` with what it holds, or None if it is not what it was."""
    import duckdb

    query = f"SELECT {quoted(ID)}, {quoted(SIGNATURE)} FROM {parquet(folder / RUNS)}"
    try:
        if folder.is_symlink() or folder.name != seal(folder):
            return None
        return Shard(folder, dict(connection.execute(query).fetchall()))
    except (OSError, duckdb.Error):
        return None


def is_small(shard: Shard) -> bool:
    """Tell whether a shard could as well be joined with others."""
    return len(shard.records) < FULL and (shard.folder / LOGS).stat().st_size < _SMALL


def parquet(*paths: Path) -> str:
    """Return the SQL that reads Parquet files as one table."""
    return f"read_parquet([{', '.join(literal(str(path)) for path in paths)}], union_by_name=true)"


class Batch:
    """Records on their way into a shard."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._logs: list[dict[str, NDArray[Any]]] = []
        self._values = 0

    @property
    def full(self) -> bool:
        """Whether it is time to write."""
        return len(self.rows) >= FULL or self._values >= _VALUES

    def add(self, row: Row, log: Arrays, signature: str) -> None:
        """Take in one record, of which ``row`` is the line in ``runs``."""
        made = log_columns(log)
        self.rows.append(row | {SIGNATURE: signature})
        self._logs.append(made)
        self._values += sum(column.size for column in log.values())

    def write(self, folder: Path) -> None:
        """Write the files of a shard."""
        lengths = [max((len(column) for column in log.values()), default=0) for log in self._logs]
        place = np.repeat(np.arange(len(self._logs), dtype=np.int32), lengths)
        runs = stacked(self.rows)
        with workshop() as connection:
            connection.register("run", runs)
            _copy(connection, f"SELECT {_cast(runs)} FROM run", folder / RUNS)
            names = {"place": np.arange(len(self.rows), dtype=np.int32), "id": runs[ID]}
            connection.register("named", names)
            logs = _joined(self._logs, lengths)
            connection.register("log", logs | {"place": place})
            said = ", ".join([f"named.id AS {quoted(ID)}", *([_cast(logs)] if logs else [])])
            _copy(connection, f"SELECT {said} FROM log JOIN named USING (place)", folder / LOGS)


def join(parts: dict[Path, list[str]], folder: Path) -> None:
    """Write one shard of the records named for each of some shards."""
    with workshop() as connection:
        for name in (RUNS, LOGS):
            queries = []
            for place, (source, wanted) in enumerate(parts.items()):
                connection.register(f"wanted{place}", {"id": np.array(wanted, dtype=object)})
                queries.append(
                    f"SELECT * FROM {parquet(source / name)} "
                    f"WHERE {quoted(ID)} IN (SELECT id FROM wanted{place})"
                )
            _copy(connection, " UNION ALL BY NAME ".join(queries), folder / name)


def _joined(logs: list[dict[str, NDArray[Any]]], lengths: list[int]) -> dict[str, NDArray[Any]]:
    """Return log columns one below the other: NaN (which becomes NULL) or None where absent."""
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


def _cast(columns: dict[str, NDArray[Any]]) -> str:
    return ", ".join(
        f"CAST({quoted(name)} AS {TYPES[name[0]]}) AS {quoted(name)}" for name in columns
    )


def _copy(connection: DuckDBPyConnection, query: str, path: Path) -> None:
    connection.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)")
