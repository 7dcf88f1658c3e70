"""The printed tables as they are.

``published.json`` holds the printed tables as they are: numbers and headings, nothing rounded or
repaired. An estimate is ``[value, low, high]``, an interval ``[low, high]``, a count ``"k/n"``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from types import MappingProxyType
from typing import Any, NamedTuple

SEEDS = 12
"""Seeds of each cell, where nothing else is said."""


class Published(NamedTuple):
    """A printed value; where no interval is printed its bounds are NaN."""

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = SEEDS
    family: int = 1


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
    source = resources.files("rulescope.assays.published") / "published.json"
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
