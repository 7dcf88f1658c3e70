"""The published values: rows of ``published.json``, labelled like our estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from rulescope.assays.estimates import Label, label_text


class Published(NamedTuple):
    """A printed value; where no interval is printed its bounds are NaN."""

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 12
    family: int = 1


class PublishedRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the file."""

    assay: str
    """By id; ``check`` is the numerical table."""
    quantity: str
    labels: dict[str, Label]
    value: float
    n: int
    """Seeds."""
    family: int
    """Members of the family over which the interval shares its error."""
    low: float = math.nan
    high: float = math.nan

    @property
    def name(self) -> str:
        """The row in one word, as that of our estimate: ``score/catch/live/0.001``."""
        return "/".join([self.quantity, *map(label_text, self.labels.values())])

    @property
    def printed(self) -> Published:
        """The numbers alone."""
        return Published(self.value, self.low, self.high, self.n, self.family)


@cache
def rows() -> tuple[PublishedRow, ...]:
    """Return every published value."""
    content = (resources.files("rulescope.assays") / "published.json").read_bytes()
    return msgspec.json.decode(content, type=tuple[PublishedRow, ...])


@cache
def estimates(assay: str) -> Mapping[str, Published]:
    """Return the published values of an assay (by id), by the names of our estimates."""
    return MappingProxyType({row.name: row.printed for row in rows() if row.assay == assay})
