"""Records as flat columns: what a query can name, and of which type each column is.

A column is known by a kind and a name, such as ``f:score``. Kinds never mix in one column, so
records that disagree about a name (a number here, text there) cannot get in each other's way.
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
from rulescope.spec.run_spec import Intervention, RunSpec

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
"""The kinds, and what DuckDB calls them; ``n`` is of a field that is empty (its value says so)."""

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
"""The columns that ``runs`` always has, and begins with."""
LOGS = {"id": "t", "iteration": "f", "steps": "f"}
"""The columns that ``logs`` always has, and begins with."""

MAX_COLUMNS = 1000
"""Of one log; no learner has more than a few dozen."""
MAX_VALUES = 8 << 20
"""Numbers and texts in one log, each of which takes tens of bytes on its way into the index."""

Row = dict[str, Any]
"""Values of one record by column, such as ``{"i:seed": 3}``."""


def run_row(logged: Logged, size: int) -> Row:
    """Return the columns of ``runs`` for a record whose files have ``size`` bytes."""
    manifest = logged.manifest
    named = {
        **_of_spec(logged.spec),
        "id": manifest.id,
        "science_hash": manifest.science_hash,
        "schema": manifest.schema,
        "seconds": manifest.seconds,
        "rows": max((len(column) for column in logged.log.values()), default=0),
        "bytes": size,
        **{f"source_{_escaped(name)}": value for name, value in manifest.source.items()},
        **{f"runtime_{_escaped(name)}": value for name, value in manifest.runtime.items()},
        **_of_rule(manifest),
    }
    row = {
        f"{_kind(value)}:{name}": True if value is None else value for name, value in named.items()
    }
    row["p:parents"] = list(manifest.parents)
    started = _moment(manifest.started)
    return row if started is None else row | {"s:started": started}


def _of_rule(manifest: Manifest) -> dict[str, Any]:
    rule = manifest.rule
    if rule is None:
        return {}
    return {"rule": rule.name, "rule_sha256": rule.sha256, "rule_digest": rule.digest}


def _of_spec(spec: RunSpec) -> dict[str, Any]:
    """Return every field of ``spec`` that holds one value, by a name such as ``learner_batch``."""
    # What donors and origins were is not spelt out: they have rows of their own, found by
    # ``parents``.
    plain = expanded(msgspec.structs.replace(spec, interventions=(), origin=None))
    named = dict(_flat(plain))
    named["interventions"] = "; ".join(map(describe, spec.interventions))
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


def describe(item: Intervention) -> str:
    """Return an intervention in one line, such as ``freeze(recurrent, at=300)``."""
    said = [item.carrier]
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if isinstance(value, RunSpec):
            said.append(f"{name}={value.id[:12]}")
        elif isinstance(value, tuple):
            said.append(f"{name}={'+'.join(donor.id[:12] for donor in value)}")
        elif name != "carrier":
            said.append(str(value) if isinstance(value, str) else f"{name}={value}")
    return f"{item.operation}({', '.join(said)})"


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
            found[f"f:{_own(name)}"] = column.astype(np.float64)
            continue
        values = np.empty(len(column), dtype=object)
        for place, row in enumerate(_rows(name, column)):
            values[place] = row
        found[f"{'t' if text else 'l'}:{_own(name)}"] = values
    return found


def _rows(name: str, column: NDArray[Any]) -> Iterable[Any]:
    """Return the rows of a column of text or lists as Python's own."""
    if column.dtype.kind != "U":
        return cast(Iterable[Any], column.astype(np.float64).tolist())
    try:
        rows = column.tolist()
    except ValueError:
        raise RecordError(f"log column {name!r} is not text") from None
    said = rows if column.ndim == 1 else [json.dumps(row) for row in rows]
    return [row.encode("utf-8", "replace").decode() for row in said]  # halves of pairs are no text


def _own(name: str) -> str:
    """Return the column for ``name`` of a log, of which ``id`` would not be the record's id."""
    return "%69;d" if name == "id" else _escaped(name)


def _escaped(name: str) -> str:
    """Return ``name`` without capitals, which SQL does not tell apart; :func:`_plain` undoes it."""
    return "".join(mark if mark == mark.lower() != "%" else f"%{ord(mark):x};" for mark in name)


def _plain(name: str) -> str:
    return re.sub("%([0-9a-f]+);", lambda found: chr(int(found[1], 16)), name)


def stacked(rows: Sequence[Row]) -> dict[str, NDArray[Any]]:
    """Return ``rows`` as columns that DuckDB takes; what a row lacks is masked or None."""
    names = sorted({name for row in rows for name in row})
    return {name: _column([row.get(name) for row in rows], name[0]) for name in names}


def _column(values: list[Any], kind: str) -> NDArray[Any]:
    if kind in "bifn":
        dtype = np.float64 if kind == "f" else np.int64
        absent = [value is None for value in values]
        filled = np.array([0 if value is None else value for value in values], dtype=dtype)
        return np.ma.masked_array(filled, mask=absent)
    if kind == "s":
        return np.array(values, dtype="datetime64[us]")  # None is "not a time"
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


def _moment(text: str) -> datetime | None:
    """Return a time as UTC without a zone, as DuckDB's TIMESTAMP; None if it is no time."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def selected(physical: Iterable[str], always: Mapping[str, str]) -> list[str]:
    """Return the SQL that gives every column of a shard its plain name, ``always`` ones first.

    Where kinds differ, numbers become DOUBLE, and anything beside text becomes text.
    """
    kinds: dict[str, list[str]] = {name: [] for name in always}
    for column in physical:
        kinds.setdefault(column[2:], []).append(column[0])
    ordered = [*always, *sorted(name for name in kinds if name not in always)]
    taken: set[str] = set()
    made = []
    for name in ordered:
        plain = _unused(_plain(name), taken)
        there = sorted(kind for kind in kinds[name] if kind != "n")
        made.append(f"{_expression(name, there, always)} AS {quoted(plain)}")
    return made


def _unused(name: str, taken: set[str]) -> str:
    """Return ``name``, numbered if SQL, which ignores case, would take it for another one."""
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
    """Return ``name`` as an SQL identifier, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return ``text`` as an SQL string, whatever is in it."""
    return "'" + text.replace("'", "''") + "'"
