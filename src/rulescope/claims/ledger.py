"""The ledger: the claims of the published audit as data.

``claims.json`` holds every claim in our own words, with its predicate, its margins (fixed before
any record was looked at) and the cells that it is about; ``contradictions.json`` what the published
tables say against each other.

A predicate is a list of atoms, all of which must hold. An atom is about estimates, by the printed
names of their rows; a name of another assay than the first is ``assay:name``::

    above(a, x)   below(a, x)   within(a, low, high)   near_zero(a, m)   sign(a, +)
    greater(a, b[, m])   less(a, b[, m])   equivalent(a, b, m)   order(a > b > c)

:func:`parts_of` turns atoms into :class:`Part`: one quantity, or the difference of two, and the
open interval in which its true value must lie.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from rulescope.assays.selection import Selection
from rulescope.core.errors import RulescopeError, nearest

Level = Literal["headline", "main", "appendix"]
LEVELS: tuple[Level, ...] = ("headline", "main", "appendix")
"""Where the paper makes a claim: abstract and conclusion, sections, appendix."""
CAP = 2.5
"""Seeds at most, as a multiple of the published number: so many reject an effect that the original
study could hardly have detected (Simonsohn 2015)."""


class CellsOf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Part of the published grid of an assay; an axis that is not named is whole."""

    assay: str
    tasks: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    scales: tuple[float, ...] = ()

    def selection(self, seeds: int | None = None) -> Selection:
        """Return the selection of these cells, for the first ``seeds``."""
        return Selection(
            seeds=seeds,
            tasks=self.tasks,
            conditions=self.conditions,
            arms=self.arms,
            scales=self.scales,
        )


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One claim of the published audit."""

    id: str
    level: Level
    statement: str
    where: str
    """Labels of the sections and tables that make the claim."""
    all: tuple[str, ...]
    """Atoms, every one of which must hold."""
    margin: str
    """Why the margins are what they are."""
    family: int
    """Members of the published family of comparisons; error rates come from those of its rows."""
    n: int
    """Seeds of the published cells; 0 if the claim needs none."""
    size: tuple[str, ...] = ()
    """The published intervals as atoms: whether an effect is also as large as published."""
    detectable: dict[str, float] = {}
    """By name: the effect that the original had a chance of one in three to detect."""
    epistemic: bool = False
    """Whether the claim is about evidence (something could not be distinguished), not effects."""
    exact: bool = False
    """Whether the claim needs no lifetimes: a program decides it."""
    contradictions: tuple[str, ...] = ()
    """Keys of :func:`contradictions`."""
    note: str = ""
    other_object: str = ""
    """Why ours is not the thing that the claim is about, so that the two are not comparable."""
    cells: tuple[CellsOf, ...] = ()
    """What must be run to decide the claim; empty if no assay measures it."""

    @property
    def assay(self) -> str:
        """The assay whose rows names refer to, unless they say otherwise."""
        return self.cells[0].assay if self.cells else ""

    @property
    def cap(self) -> int:
        """Seeds at which an undecided claim is given up."""
        return math.floor(CAP * self.n)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the predicate."""
        return parts_of(self.all, self.assay, self.detectable)

    @property
    def size_parts(self) -> tuple[Part, ...]:
        """The published intervals."""
        return parts_of(self.size, self.assay, {})


class Name(NamedTuple):
    """An estimate: the assay and the printed name of its row."""

    assay: str
    row: str

    @property
    def quantity(self) -> str:
        """What is estimated."""
        return self.row.partition("/")[0]


class Part(NamedTuple):
    """What one atom says: a quantity, or the difference of two, lies between two bounds."""

    atom: str
    first: Name
    second: Name | None
    """Subtracted from the first."""
    low: float
    high: float
    """Open bounds; infinite where the atom has none."""
    detectable: float = math.nan
    """For directions, the effect that the original could hardly have detected."""

    @property
    def direction(self) -> bool:
        """Whether the part claims the sign of an effect, of which the detectable size is known."""
        return not math.isnan(self.detectable)

    @property
    def equivalence(self) -> bool:
        """Whether both bounds are finite: the claim is that a value is near another."""
        return math.isfinite(self.low) and math.isfinite(self.high)


@cache
def claims() -> tuple[Claim, ...]:
    """Return every claim, most important first."""
    content = (resources.files("rulescope.claims") / "claims.json").read_bytes()
    return msgspec.json.decode(content, type=tuple[Claim, ...])


@cache
def contradictions() -> Mapping[str, str]:
    """Return what the published tables say against each other, by a short key such as ``C1``."""
    content = (resources.files("rulescope.claims") / "contradictions.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, str])


def select(names: Sequence[str]) -> list[Claim]:
    """Return the claims of these ids, levels or assays, in the order of the ledger; all if empty.

    >>> [claim.id for claim in select(["clamping-amplifies-mismatch"])]
    ['clamping-amplifies-mismatch']
    >>> len(select(["headline"]))
    7
    """
    known = claims()
    assays = {cells.assay for claim in known for cells in claim.cells}
    valid = [*LEVELS, "exact", *sorted(assays), *(claim.id for claim in known)]
    for name in names:
        if name not in valid:
            raise RulescopeError(f"--claims: no {name!r}{nearest(name, valid)}")
    wanted = set(names)
    return [claim for claim in known if not wanted or wanted & _names_of(claim)]


def _names_of(claim: Claim) -> set[str]:
    exact = {"exact"} if claim.exact else set()
    return {claim.id, claim.level, *exact, *(cells.assay for cells in claim.cells)}


def parts_of(atoms: Sequence[str], assay: str, detectable: Mapping[str, float]) -> tuple[Part, ...]:
    """Return the parts of ``atoms``; names without an assay are rows of ``assay``.

    >>> part = parts_of(["greater(score/live, score/pin, 0.3)"], "E1", {})[0]
    >>> part.first.row, part.second.row, part.low, part.high
    ('score/live', 'score/pin', 0.3, inf)
    """
    return tuple(part for atom in atoms for part in _parts(atom, assay, detectable))


def _parts(atom: str, assay: str, detectable: Mapping[str, float]) -> Iterator[Part]:
    found = re.fullmatch(r"(\w+)\((.+)\)", atom)
    if found is None:
        raise RulescopeError(f"{atom!r} is not an atom")
    operator, inside = found.groups()
    if operator == "order":
        names = [_name(text, assay) for text in inside.split(" > ")]
        for larger, smaller in pairwise(names):
            yield Part(atom, larger, smaller, 0.0, math.inf)
        return
    first, *rest = inside.split(", ")
    a = _name(first, assay)
    match operator, rest:
        case "above", [x]:
            yield Part(atom, a, None, float(x), math.inf)
        case "below", [x]:
            yield Part(atom, a, None, -math.inf, float(x))
        case "within", [low, high]:
            yield Part(atom, a, None, float(low), float(high))
        case "near_zero", [margin]:
            yield Part(atom, a, None, -float(margin), float(margin))
        case "sign", ["+"]:
            yield Part(atom, a, None, 0.0, math.inf, detectable.get(first, math.nan))
        case "sign", ["-"]:
            yield Part(atom, a, None, -math.inf, 0.0, detectable.get(first, math.nan))
        case "greater", [b, *margin]:
            yield Part(atom, a, _name(b, assay), _number(margin), math.inf)
        case "less", [b, *margin]:
            yield Part(atom, a, _name(b, assay), -math.inf, -_number(margin))
        case "equivalent", [b, margin]:
            yield Part(atom, a, _name(b, assay), -float(margin), float(margin))
        case _:
            raise RulescopeError(f"{atom!r} is not an atom")


def _name(text: str, assay: str) -> Name:
    """Return the name of an estimate; ``x:`` names are measured by a program, not by an assay."""
    where, colon, row = text.strip().partition(":")
    return Name(where, row) if colon else Name(assay, where)


def _number(margin: Sequence[str]) -> float:
    return float(margin[0]) if margin else 0.0
