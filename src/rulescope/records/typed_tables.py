"""Tables of typed rows: in memory for a query, or as the bytes of a Parquet file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rulescope.core.errors import RecordError
from rulescope.records.columns import Row, cast_sql, literal, quoted, select_columns, stack_rows
from rulescope.records.index_shards import connect

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MEMORY = "256MB"
"""Memory limit of DuckDB while a file is written."""


class TypedTable(NamedTuple):
    """Rows whose columns are identified by a kind and a name, such as ``f:value``."""

    columns: Mapping[str, str]
    """The first columns, which are always present, in their order: name to kind."""
    rows: Sequence[Row]


def create_table(connection: DuckDBPyConnection, name: str, table: TypedTable) -> None:
    """Create ``table`` in the database of ``connection``; its rows keep their order."""
    stacked = stack_rows(table.rows)
    selected = ", ".join(select_columns(stacked, table.columns))
    if not stacked:
        connection.execute(f"CREATE TABLE {quoted(name)} AS SELECT {selected} WHERE false")
        return
    # Otherwise DuckDB guesses the type of a column from some of its values.
    connection.execute("SET pandas_analyze_sample = 1000000000")
    connection.register("stacked_rows", stacked)
    connection.execute(
        f"CREATE TABLE {quoted(name)} AS "
        f"SELECT {selected} FROM (SELECT {cast_sql(stacked)} FROM stacked_rows)"
    )
    connection.unregister("stacked_rows")


def parquet_bytes(table: TypedTable) -> bytes:
    """Return ``table`` as a Parquet file; the same rows and DuckDB give the same bytes."""
    import duckdb

    connection = connect(_MEMORY)
    try:
        connection.execute("SET threads = 1")  # several may write rows in another order
        create_table(connection, "exported", table)
        with tempfile.TemporaryDirectory(prefix="rulescope-table-") as folder:
            path = Path(folder) / "exported.parquet"
            connection.execute(
                f"COPY exported TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)"
            )
            return path.read_bytes()
    except duckdb.Error as fault:
        raise RecordError(f"a Parquet file cannot be made ({str(fault).splitlines()[0]})") from None
    finally:
        connection.close()
