"""Records as flat, typed columns for queries.

A column is identified by a kind and a name, such as ``f:score``. A column has one kind, so records
with different types under one name (a number here, text there) use different columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.core.structs import expanded
from rulescope.records.record import Logged, Manifest
from rulescope.run_spec import Intervention, RunSpec

TYPES = {
    "b": "BOOLEAN",
    "i": "BIGINT",
    "f": "DOUBLE",
    "t": "VARCHAR",
    "s": "TIMESTAMP",
    "p": "VARCHAR[]",
    "l": "DOUBLE[]",
    "n": "BOOLEAN",
}
"""Kind to DuckDB type; ``n`` marks a field whose value is None."""

RUNS = {
    "id": "t",
    "learner": "t",
    "environment": "t",
    "scale": "f",
    "seed": "i",
    "iterations": "i",
    "interventions": "t",
    "change": "t",
    "boundary": "t",
    "rule": "t",
    "science_hash": "t",
    "started": "s",
    "seconds": "f",
    "rows": "i",
    "bytes": "i",
    "parents": "p",
    "source_version": "t",
    "source_commit": "t",
}
"""The first columns of ``runs``, which are always present."""
LOGS = {"id": "t", "iteration": "f", "steps": "f"}
"""The first columns of ``logs``, which are always present."""

MAX_COLUMNS = 1000
"""Columns of one log at most; learners have a few dozen."""
MAX_VALUES = 8 << 20
"""Values of one log at most; each takes tens of bytes while it is indexed."""

Row = dict[str, Any]
"""Values of one record by column, such as ``{"i:seed": 3}``."""


def run_row(logged: Logged, size: int) -> Row:
    """Return the columns of ``runs`` for a record whose files have ``size`` bytes."""
    manifest = logged.manifest
    named = {
        **_spec_fields(logged.spec),
        "id": manifest.id,
        "science_hash": manifest.science_hash,
        "schema": manifest.schema,
        "seconds": manifest.seconds,
        "rows": max((len(column) for column in logged.log.values()), default=0),
        "bytes": size,
        **{f"source_{escaped(name)}": value for name, value in manifest.source.items()},
        **{f"runtime_{escaped(name)}": value for name, value in manifest.runtime.items()},
        **_rule_fields(manifest),
    }
    row = {
        f"{_kind(value)}:{name}": True if value is None else value for name, value in named.items()
    }
    row["p:parents"] = list(manifest.parents)
    started = _parse_time(manifest.started)
    return row if started is None else row | {"s:started": started}


def _rule_fields(manifest: Manifest) -> dict[str, Any]:
    rule = manifest.rule
    if rule is None:
        return {}
    return {"rule": rule.name, "rule_sha256": rule.sha256, "rule_digest": rule.digest}


def _spec_fields(spec: RunSpec) -> dict[str, Any]:
    """Return every field of ``spec`` that holds one value, by a name such as ``learner_batch``."""
    # Donors and origins are omitted: they have rows of their own, found by ``parents``.
    plain = expanded(msgspec.structs.replace(spec, interventions=(), origin=None))
    named = dict(_flat(plain))
    named["interventions"] = "; ".join(map(describe_intervention, spec.interventions))
    named["boundary"] = named.pop("boundary_terminals")
    named["spec_schema"] = named.pop("schema")
    return named


def _flat(plain: Mapping[str, Any], path: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in plain.items():
        # The kind of a part stands for the part: ``learner``, not ``learner_kind``.
        full = path.rstrip("_") if name == "kind" and path else f"{path}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{full}_")
        elif isinstance(value, list):
            yield full, ", ".join(map(str, value))
        else:
            yield full, value


def describe_intervention(item: Intervention) -> str:
    """Return an intervention in one line, such as ``freeze(recurrent, at=300)``."""
    parts = [item.carrier]
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if isinstance(value, RunSpec):
            parts.append(f"{name}={value.id[:12]}")
        elif isinstance(value, tuple):
            parts.append(f"{name}={'+'.join(donor.id[:12] for donor in value)}")
        elif name != "carrier":
            parts.append(str(value) if isinstance(value, str) else f"{name}={value}")
    return f"{item.operation}({', '.join(parts)})"


def log_columns(log: Arrays) -> dict[str, NDArray[Any]]:
    """Return the columns of a log: numbers as float64 [rows], text and lists as objects [rows]."""
    if len(log) > MAX_COLUMNS:
        raise RecordError(f"has {len(log):,} log columns, more than {MAX_COLUMNS:,}")
    count = sum(column.size for column in log.values())
    if count > MAX_VALUES:
        raise RecordError(f"has {count:,} log values, more than {MAX_VALUES:,}")
    found: dict[str, NDArray[Any]] = {}
    for name, column in log.items():
        text = column.dtype.kind == "U"
        if column.ndim == 1 and not text:
            found[f"f:{_log_name(name)}"] = column.astype(np.float64)
            continue
        values = np.empty(len(column), dtype=object)
        for place, row in enumerate(_rows(name, column)):
            values[place] = row
        found[f"{'t' if text else 'l'}:{_log_name(name)}"] = values
    return found


def _rows(name: str, column: NDArray[Any]) -> Iterable[Any]:
    """Return the rows of a column of text, or of shape [rows, k], as Python objects."""
    if column.dtype.kind != "U":
        return cast(Iterable[Any], column.astype(np.float64).tolist())
    try:
        rows = column.tolist()
    except ValueError:
        raise RecordError(f"log column {name!r} is not text") from None
    texts = rows if column.ndim == 1 else [json.dumps(row) for row in rows]
    return [text.encode("utf-8", "replace").decode() for text in texts]  # lone surrogates


def _log_name(name: str) -> str:
    """Return the column name of a log column; one named ``id`` must not clash with the run id."""
    return "%69;d" if name == "id" else escaped(name)


def escaped(name: str) -> str:
    """Return ``name`` without capitals, since SQL ignores case; :func:`_plain` undoes it."""
    return "".join(c if c == c.lower() != "%" else f"%{ord(c):x};" for c in name)


def _plain(name: str) -> str:
    return re.sub("%([0-9a-f]+);", lambda found: chr(int(found[1], 16)), name)


def stack_rows(rows: Sequence[Row]) -> dict[str, NDArray[Any]]:
    """Return ``rows`` as columns [rows] for DuckDB; missing values are masked or None."""
    names = sorted({name for row in rows for name in row})
    return {name: _column([row.get(name) for row in rows], name[0]) for name in names}


def _column(values: list[Any], kind: str) -> NDArray[Any]:
    if kind in "bifn":
        dtype = np.float64 if kind == "f" else np.int64
        absent = [value is None for value in values]
        filled = np.array([0 if value is None else value for value in values], dtype=dtype)
        return np.ma.masked_array(filled, mask=absent)
    if kind == "s":
        return np.array(values, dtype="datetime64[us]")  # None becomes NaT
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _kind(value: Any) -> str:
    if value is None:
        return "n"
    if isinstance(value, bool):
        return "b"
    if isinstance(value, int):
        return "i" if -(2**63) <= value < 2**63 else "f"
    return "f" if isinstance(value, float) else "t"


def _parse_time(text: str) -> datetime | None:
    """Return a time as UTC without a zone, as DuckDB's TIMESTAMP; None if it is invalid."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def select_columns(physical: Iterable[str], always: Mapping[str, str]) -> list[str]:
    """Return SQL expressions that give every column its plain name, ``always`` ones first.

    Numbers of different kinds become DOUBLE; any other mixture of kinds becomes text.
    """
    kinds: dict[str, list[str]] = {name: [] for name in always}
    for column in physical:
        kinds.setdefault(column[2:], []).append(column[0])
    ordered = [*always, *sorted(name for name in kinds if name not in always)]
    taken: set[str] = set()
    expressions = []
    for name in ordered:
        plain = _unused(_plain(name), taken)
        present = sorted(kind for kind in kinds[name] if kind != "n")
        expressions.append(f"{_expression(name, present, always)} AS {quoted(plain)}")
    return expressions


def _unused(name: str, taken: set[str]) -> str:
    """Return ``name``, with a number if it is taken; SQL ignores case."""
    number, plain = 1, name
    while plain.lower() in taken:
        number += 1
        plain = f"{name}_{number}"
    taken.add(plain.lower())
    return plain


def _expression(name: str, kinds: Sequence[str], always: Mapping[str, str]) -> str:
    if not kinds:
        return f"CAST(NULL AS {TYPES[always.get(name, 't')]})"
    columns = [quoted(f"{kind}:{name}") for kind in kinds]
    if len(kinds) == 1:
        return columns[0]
    common = "DOUBLE" if set(kinds) <= {"i", "f"} else "VARCHAR"
    return f"COALESCE({', '.join(f'CAST({column} AS {common})' for column in columns)})"


def quoted(name: str) -> str:
    """Return ``name`` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def cast_sql(columns: Iterable[str]) -> str:
    """Return the SQL that selects ``columns``, such as ``f:score``, with the types of their kinds.

    >>> cast_sql(["f:score"])
    'CAST("f:score" AS DOUBLE) AS "f:score"'
    """
    return ", ".join(
        f"CAST({quoted(name)} AS {TYPES[name[0]]}) AS {quoted(name)}" for name in columns
    )


def literal(text: str) -> str:
    """Return ``text`` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
