"""Tables of typed rows: their columns and types in a query, and as a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from rulescope.records import Store, query
from rulescope.records.typed_tables import TypedTable, parquet_bytes

from .sample_record import sample

COLUMNS = {"name": "t", "value": "f", "n": "i", "known": "b", "values": "l", "absent": "i"}
ROWS: list[dict[str, Any]] = [
    {"t:name": "a", "f:value": 0.5, "i:n": 3, "b:known": True, "l:values": [1.0, None]},
    {"t:name": "b", "f:value": None, "b:known": False, "t:extra": "x"},
    {"t:name": "c", "f:value": 2.0, "i:n": 2**53 + 1, "f:extra": 1.5},
]
EXPECTED = [
    ("a", 0.5, 3, True, [1.0, None], None, None),
    ("b", None, None, False, None, None, "x"),
    ("c", 2.0, 2**53 + 1, None, None, None, "1.5"),
]
TYPES = ["VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "DOUBLE[]", "BIGINT", "VARCHAR"]


def test_a_table_beside_the_records_has_typed_columns_in_their_order(store: Store) -> None:
    store.commit(sample(0))
    tables = {"things": TypedTable(COLUMNS, ROWS), "nothing": TypedTable(COLUMNS, [])}
    with query.open_database(store, tables=tables) as database:
        found = database.query("FROM things ORDER BY name")
        assert found.columns == [*COLUMNS, "extra"]
        assert list(found.rows) == EXPECTED
        types = database.query("SELECT column_type FROM (DESCRIBE things)").rows
        assert [row[0] for row in types] == TYPES
        nothing = database.query("FROM nothing")
        assert (nothing.columns, list(nothing.rows)) == ([*COLUMNS], [])


def test_a_parquet_file_has_the_rows_and_types_of_its_table(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_bytes(parquet_bytes(TypedTable(COLUMNS, ROWS)))
    found = duckdb.read_parquet(str(path))
    assert (found.columns, [str(each) for each in found.types]) == ([*COLUMNS, "extra"], TYPES)
    assert found.fetchall() == EXPECTED


def test_the_same_table_gives_the_same_bytes() -> None:
    rows = [{"t:name": str(i % 7), "f:value": i / 3, "i:n": i} for i in range(5000)]
    table = TypedTable(COLUMNS, rows)
    assert parquet_bytes(table) == parquet_bytes(table)
    assert parquet_bytes(TypedTable(COLUMNS, [])) == parquet_bytes(TypedTable(COLUMNS, []))
