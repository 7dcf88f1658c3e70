"""How evidence decides a part of a claim: holds, fails, or undecided.

The evidence for a part is a sequence of looks at planned numbers of seeds. A part *holds* when the
evidence places its quantity inside the claimed bounds, and *fails* when it places it outside. Two
tests must agree:

* **An exact count.** On how many seeds does the value lie on that side of the bound? A majority
  of seeds must, beyond chance, with an error that is exact at any number of seeds and over all
  looks (:mod:`rulescope.stats.sequential_counts`).
* **The interval of the estimate itself**, which is a trimmed mean: the percentile bootstrap at the
  same error. With few seeds it is too narrow, so it never decides alone where seeds can be counted.

Scores need more than a majority. Single lifetimes often either learn or do not, and the trimmed
mean of such a cell passes 0.8 only if at least 65 % of lifetimes learn; six that all learned do not
show that. :func:`least_share` is the share that a threshold takes.

Shares of lifetimes (solved, found, attained) are binomial themselves and have the exact test alone.
Quantities without values of single seeds (windows of reward scales, geometry of states) have the
interval alone, with its error spent over the looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.claims.ledger import Part
from rulescope.stats.intervals import LEVEL
from rulescope.stats.sequential_counts import NEVER, failure_limits, interval_errors

Floats = NDArray[np.float64]
Outcome = Literal["holds", "fails", "undecided"]
Direction = Literal["above", "below"]


class Side(NamedTuple):
    """A half-line, and the error with which evidence may place a quantity there wrongly."""

    direction: Direction
    bound: float
    error: float


@dataclass(frozen=True)
class Reading:
    """What the first ``n`` seeds show of a quantity, or of the difference of two."""

    n: int
    value: float
    seeds: Floats | None = None
    """[n]: the values of single seeds, in their order."""
    happened: int | None = None
    """For a share of lifetimes: in how many it happened."""
    level: bool = False
    """Whether single values lie between 0 (random) and 1 (optimal), perhaps in two groups."""
    signed: bool = False
    """Whether it is the difference of two levels, between -1 and 1."""
    bounds: Callable[[float], tuple[float, float]] | None = None
    """The interval of the estimate by its error on each side."""

    @property
    def countable(self) -> bool:
        """Whether seeds can be counted."""
        return self.happened is not None or self.seeds is not None

    @property
    def decidable(self) -> bool:
        """Whether there is a count or an interval that can decide anything."""
        return self.countable or self.bounds is not None

    def successes(self, side: Side) -> int:
        """Return on how many seeds the value lies on ``side``; a missing value does not."""
        if self.happened is not None:
            return self.happened if side.direction == "above" else self.n - self.happened
        assert self.seeds is not None
        if side.direction == "above":
            return int((self.seeds > side.bound).sum())
        return int((self.seeds < side.bound).sum())

    def least_share(self, side: Side) -> float:
        """Return the share of successes that must be exceeded for the quantity to lie there."""
        if self.happened is not None:
            return side.bound if side.direction == "above" else 1.0 - side.bound
        return least_share(side.bound, side.direction, self.level, signed=self.signed)

    def failure_limit(self, side: Side, look: int, looks: Sequence[int]) -> int:
        """Return how many of ``look`` seeds may lie off ``side`` for the count to show it.

        :data:`NEVER` if none may, not even zero. Every count shows a share above 0, none one
        above 1.
        """
        share = self.least_share(side)
        if share <= 0.0:
            return look
        if share >= 1.0:
            return NEVER
        return failure_limits(share, side.error, tuple(looks))[looks.index(look)]

    def interval(self, error: float) -> tuple[float, float]:
        """Return the interval with ``error`` on each side; NaN if there is none."""
        return (math.nan, math.nan) if self.bounds is None else self.bounds(error)


class Errors(NamedTuple):
    """One-sided error rates of the tests of one part."""

    holds: float
    fails: float

    @classmethod
    def of(cls, part: Part, family: int, parts: int) -> Errors:
        """Return the error rates of ``part``, of a family, in a claim of so many ``parts``.

        To be reproduced a claim needs all of its parts, each at its own level (intersection-union
        test, Berger 1982). To be contradicted it needs one, so that error is divided. Equivalence
        is shown by two one-sided tests at the whole level (Schuirmann 1987).
        """
        one_sided = LEVEL if part.equivalence else LEVEL / 2
        return cls(one_sided / family, LEVEL / 2 / family / parts)


class PartEvidence(NamedTuple):
    """The outcome of one part, and what it rests on."""

    part: Part
    outcome: Outcome
    n: int
    """Seeds that the outcome rests on: those of the deciding look, or of the last one."""
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    """The interval of the estimate at the error of the test."""
    inside: int | None = None
    """Seeds whose own value lies inside of the bounds."""
    smaller: bool = False
    """Whether an effect has the claimed sign, but is smaller than the original could detect."""
    error: float = math.nan
    """One-sided error rate with which the part may be found to hold."""


def least_share(bound: float, direction: Direction, level: bool, *, signed: bool = False) -> float:
    """Return the share of seeds beyond ``bound`` above which the centre lies beyond it too.

    A half for the median of anything. For a level, whose seeds may be a group at 0 and another at
    1, the interquartile mean is ``(share at 1 - 1/4) / (1/2)``. The difference of two levels is
    ``signed``: the other group may be at -1, so that a bound below zero mirrors one above it.

    >>> least_share(0.8, "above", True), least_share(0.8, "below", True)
    (0.65, 0.5)
    >>> round(least_share(0.05, "below", True), 3), least_share(0.05, "below", False)
    (0.725, 0.5)
    >>> least_share(-0.1, "above", True), least_share(-0.1, "above", True, signed=True)
    (0.5, 0.7)
    """
    if not level:
        return 0.5
    if signed and (bound < 0.0 or (bound == 0.0 and direction == "below")):
        mirrored: Direction = "below" if direction == "above" else "above"
        return least_share(-bound, mirrored, level)
    needed = 0.25 + 0.5 * bound if direction == "above" else 0.75 - 0.5 * bound
    return min(max(0.5, needed), 0.75)


def decide(
    part: Part, readings: Mapping[int, Reading], looks: Sequence[int], errors: Errors
) -> PartEvidence:
    """Return the outcome of ``part`` at the first of ``looks`` that decides it.

    ``readings`` holds what the first seeds show, by look; one that was not reached, or at which
    there is no estimate yet, has none.
    """
    claimed, opposite = claimed_sides(part, errors), opposite_sides(part, errors)
    counted: set[Side] = set()
    """Sides that a count has shown, at this look or before."""
    last: Reading | None = None
    for look in looks:
        if look not in readings:
            continue
        last = readings[look]
        sides = {*claimed, *opposite}
        counted |= {side for side in sides if _count_decides(last, look, side, tuple(looks))}
        shown = {side for side in counted if _interval_agrees(last, look, side, looks)}
        if shown.issuperset(claimed):
            evidence = _describe(part, "holds", last, errors, errors.holds)
            return evidence._replace(smaller=bool(part.direction and shown.intersection(opposite)))
        if shown.intersection(opposite):
            return _describe(part, "fails", last, errors, errors.fails)
    if last is None:
        return PartEvidence(part, "undecided", 0, error=errors.holds)
    return _describe(part, "undecided", last, errors, errors.holds)


def claimed_sides(part: Part, errors: Errors) -> tuple[Side, ...]:
    """Return the sides on all of which the quantity must lie for ``part`` to hold."""
    bounds: tuple[tuple[Direction, float], ...] = (("above", part.low), ("below", part.high))
    return tuple(Side(side, at, errors.holds) for side, at in bounds if math.isfinite(at))


def opposite_sides(part: Part, errors: Errors) -> tuple[Side, ...]:
    """Return the sides, each of which contradicts ``part``.

    A claimed direction is contradicted already by an effect that is smaller than one which the
    original study could hardly have detected.
    """
    bounds: tuple[tuple[Direction, float], ...] = (("below", part.low), ("above", part.high))
    sides = [Side(side, at, errors.fails) for side, at in bounds if math.isfinite(at)]
    return tuple(side._replace(bound=part.detectable) if part.direction else side for side in sides)


def first_look(part: Part, reading: Reading, looks: Sequence[int], errors: Errors) -> int | None:
    """Return the first look at which unanimous seeds show that ``part`` holds; None if none does.

    ``reading`` may be of any number of seeds: only the kind of its quantity matters.
    """
    able = [
        _first_unanimous_look(reading, side, tuple(looks)) for side in claimed_sides(part, errors)
    ]
    return None if None in able else max((look for look in able if look is not None), default=None)


def _first_unanimous_look(reading: Reading, side: Side, looks: tuple[int, ...]) -> int | None:
    """Return the first look at which unanimous seeds show ``side``."""
    if not reading.decidable:
        return None
    if not reading.countable:
        return next(iter(interval_errors(side.error, looks)), None)
    return next((n for n in looks if reading.failure_limit(side, n, looks) != NEVER), None)


def _count_decides(reading: Reading, look: int, side: Side, looks: tuple[int, ...]) -> bool:
    """Return whether the count at this look shows that the centre lies on ``side``.

    Where seeds cannot be counted, the interval decides alone.
    """
    if not reading.countable:
        return True
    return look - reading.successes(side) <= reading.failure_limit(side, look, looks)


def _interval_agrees(reading: Reading, look: int, side: Side, looks: Sequence[int]) -> bool:
    """Return whether the interval of the estimate lies on ``side`` too.

    Where it decides alone, its error is spent over the looks.
    """
    if reading.happened is not None or (reading.countable and reading.bounds is None):
        return True  # the count of a share is its exact test; some readouts have no draws
    error = side.error if reading.countable else interval_errors(side.error, looks).get(look)
    if error is None:
        return False
    low, high = reading.interval(error)
    return low > side.bound if side.direction == "above" else high < side.bound


def _describe(
    part: Part, outcome: Outcome, reading: Reading, errors: Errors, error: float
) -> PartEvidence:
    """Return the evidence for ``outcome``, with the interval at ``error`` on each side."""
    inside = None
    if reading.seeds is not None:
        inside = int(((reading.seeds > part.low) & (reading.seeds < part.high)).sum())
    low, high = reading.interval(error)
    return PartEvidence(
        part, outcome, reading.n, reading.value, low, high, inside, error=errors.holds
    )
