"""The printed tables as they are.

``paper_tables.json`` holds the printed tables as they are: numbers and headings, nothing rounded or
repaired. An estimate is ``[value, low, high]``, an interval ``[low, high]``, a count ``"k/n"``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rulescope.assays.published import Published

SEEDS = 12
"""Seeds of each cell, where nothing else is said."""


@dataclass(frozen=True)
class PublishedTable:
    """A printed table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    meta: Mapping[str, Any]
    """What its caption says: n, kind of interval, units."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as mappings from heading to cell."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


@lru_cache(maxsize=1)
def tables() -> Mapping[str, PublishedTable]:
    """Return every printed table by its label, such as ``tab:e1-all``."""
    return MappingProxyType(
        {
            label: PublishedTable(
                tuple(table["columns"]), tuple(tuple(row) for row in table["rows"]), table["meta"]
            )
            for label, table in _content()["tables"].items()
        }
    )


def scalars() -> Mapping[str, Any]:
    """Return the numbers that are printed in the text only."""
    return MappingProxyType(_content()["scalars"])


@lru_cache(maxsize=1)
def _content() -> dict[str, Any]:
    source = Path(__file__).with_name("paper_tables.json")
    content: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    return content


def bounds(cell: Sequence[float]) -> tuple[float, float]:
    """Return a printed interval."""
    low, high = cell
    return low, high


def with_interval(cell: Sequence[float], n: int = SEEDS, family: int = 1) -> Published:
    """Return a printed estimate that has its interval beside it."""
    value, low, high = cell
    return Published(value, low, high, n, family)
