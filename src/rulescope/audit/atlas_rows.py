"""The atlas as data: profiles of several rules side by side, a row for each rule and measure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rulescope.audit.profile import ProfileValue, Result, Verdict
from rulescope.core import disk

SCORE = "score"
"""Unit of normalised scores: 0 is random play, 1 is optimal."""
IS_REFERENCE = "reference"
"""Note of the rows that others are compared with."""
OTHER_BUDGET = "not comparable: other budget"
OTHER_UNIT = "not comparable: other unit"
UNKNOWN_BUDGET = "not comparable: budget unknown"
"""Of a profile that was written by an earlier version; the audit, repeated, writes it anew."""
ABSENT = "not measured for the reference"
NOT_BY_SEED = "not known by seed"
NO_COMMON_SEED = "no seed in common"


class AtlasRow(msgspec.Struct, frozen=True):
    """One measure of one rule: its value, what it is beside the reference, and its history."""

    rule: str
    """As the atlas calls it (:attr:`AtlasRule.label`)."""
    axis: str
    key: str
    """Of the measure; rows of different rules with equal key, axis and world are one
    measure."""
    measure: str
    unit: str
    source: str
    """Whose estimate it is: an assay's id."""
    digits: int
    is_difference: bool
    """Whether zero means that there is no effect."""
    budget: str
    """Length and scales of the lifetimes; empty if unknown."""
    value: ProfileValue
    world: str = ""
    """The world of the audit, as typed; empty if every assay ran in its own."""
    note: str = ""
    """Why there is no difference from the reference."""
    difference: ProfileValue | None = None
    """This rule minus the reference, paired by seed. All differences of one measure share one error
    rate."""
    without: ProfileValue | None = None
    """The same rule without its history."""
    against: str = ""
    """How the history was taken away: ``pinned`` or ``frozen at iteration N``."""
    worth: ProfileValue | None = None
    """What the history is worth: with it minus without, paired by seed."""
    result: Result | None = None
    """What that says, by the rules of the answer; None where the answer does not ask."""
    reason: str = ""
    """Why it is undecided."""
    verdict: Verdict | None = None
    """Of the rule on this axis; None where the axis does not ask for the history."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of which the value is known."""
        return tuple(seed for seed, value in enumerate(self.value.seeds) if value is not None)

    @property
    def line(self) -> tuple[str, str, str]:
        """What rows of one measure have in common."""
        return self.axis, self.key, self.world

    @property
    def title(self) -> str:
        """The measure as it is read, with the world that was named for the audit."""
        named = not self.world or self.world in self.measure
        return self.measure if named else f"{self.measure}, in {self.world}"


class AxisWorth(msgspec.Struct, frozen=True):
    """What the history of a rule is worth along one axis."""

    verdict: Verdict
    places: int
    """How many were judged."""
    place: str = ""
    """The one that shows most of an asset or burden; else the one nearest to a decision."""
    worth: ProfileValue | None = None
    """At that place."""
    digits: int = 2
    reason: str = ""
    """Why it is undecided."""
    opposite_place: str = ""
    opposite: ProfileValue | None = None
    """Where it is both: the place that shows most of the other direction, and the worth there."""


class AtlasRule(msgspec.Struct, frozen=True):
    """One rule of an atlas."""

    label: str
    """Its name; with preset or folder where several profiles have the name."""
    rule: str
    preset: str
    learner: str
    """Names the world of its audit too, if one was named."""
    folder: str
    verdict: Verdict | None
    """None in profiles of early versions, which have no answer."""
    answer: str
    axes: Mapping[str, AxisWorth]
    """By axis of the answer, such as ``reward scale``."""
    other_budgets: tuple[str, ...] = ()
    """Assays whose budget is not that of the reference."""
    world: str = ""
    """The world of its audit, as typed; empty if every assay ran in its own."""
    references: str = ""
    """What scores are measured by in ``world``, in words."""


class Atlas(msgspec.Struct, frozen=True):
    """Profiles of several rules side by side."""

    reference: str
    """Label of the rule that others are compared with."""
    rules: tuple[AtlasRule, ...]
    rows: tuple[AtlasRow, ...]
    """Measure by measure; of one measure, rule by rule."""
    sentences: tuple[str, ...] = ()
    """What the intervals support."""
    notes: tuple[str, ...] = ()

    @property
    def axes(self) -> tuple[str, ...]:
        """Axes along which any rule was asked for its history."""
        return tuple(dict.fromkeys(axis for rule in self.rules for axis in rule.axes))

    def to_json(self) -> bytes:
        """Return the file of this atlas."""
        return disk.as_json(self)
