"""The profile of a rule: the result of an audit, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from rulescope.assays.results import window_label
from rulescope.core import disk
from rulescope.render.tables import WrittenEstimate, finite
from rulescope.stats import Window, WindowKind

FILE = "profile.json"
RULE, PINNED, NULL = "rule", "pinned", "null rule"
"""Columns of a profile besides the baselines: the rule as it is, the same rule with its state set
to zero after every iteration, and the same network with random weights."""
FROZEN = "frozen at iteration "
"""How the column begins in which the rule keeps its state from some iteration on: it has a history
until then, unlike a pinned one."""

REPORTED_ENDS = "told"
"""Key of the score with reported episode ends, as stored profiles have it."""

Result = Literal["asset", "burden", "no effect", "undecided"]
Verdict = Literal["asset", "burden", "both", "neither", "undecided", "no history"]


class Groups(msgspec.Struct, frozen=True):
    """The two groups of a bimodal cell (see :mod:`rulescope.stats.centre`)."""

    below: int
    """Lifetimes in the lower group."""
    above: int
    low: float
    """Mean of the lower group."""
    high: float


class Scales(msgspec.Struct, frozen=True):
    """The class of a scale window, and its lowest and highest passing scale if there is one."""

    kind: WindowKind
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, window: Window) -> Scales:
        """Return ``window`` as it is written to a file."""
        return cls(window.kind, finite(window.low), finite(window.high))

    @property
    def label(self) -> str:
        """Class and ends as they stand in tables."""
        return window_label(self.kind, self.low or math.nan, self.high or math.nan)


class ProfileValue(WrittenEstimate, frozen=True):
    """An estimate with all that it rests on; None where there is no such number."""

    groups: Groups | None = None
    """If the lifetimes form two groups, so that the value is a score that none of them had."""
    window: Scales | None = None
    """Of a width: from which scale to which it is."""
    seeds: tuple[float, ...] = ()
    """The values of single lifetimes, where they are known."""


class Measure(msgspec.Struct, frozen=True):
    """One line of a profile: a readout of the rule, and of the columns beside it."""

    key: str
    """Its own within the axis, such as ``score`` or ``interaction/0.1``."""
    title: str
    unit: str
    figures: Mapping[str, ProfileValue]
    """By column: ``rule``, ``pinned``, ``frozen at iteration N``, ``null rule``, or a baseline."""
    source: str
    """Whose estimates these are: an assay's id."""
    digits: Annotated[int, Meta(ge=0, le=6)] = 2
    difference: bool = False
    """Whether zero means that there is no effect."""
    differences: Mapping[str, ProfileValue] = msgspec.field(default_factory=dict)
    """The rule minus each other column, paired by seed, where the readout is known by seed."""


class Axis(msgspec.Struct, frozen=True):
    """One section of a profile: the question along an axis, the measurements and the verdict.

    The reward-scale axis has two sections: windows, and the inheritance of states.
    """

    name: str
    question: str
    measures: tuple[Measure, ...]
    verdict: str


class Comparison(msgspec.Struct, frozen=True):
    """The rule with its history beside the same rule without, at one place of an axis."""

    axis: str
    """As in the answer, such as ``reward scale``."""
    place: str
    """Within the axis, such as ``at 0.001``; may be empty."""
    against: str
    """The column without the history: ``pinned``, or ``frozen at iteration N``."""
    live: ProfileValue
    """The score that tells whether the rule is competent here."""
    other: ProfileValue
    """The same of the column without the history."""
    difference: ProfileValue
    """Live minus the other, paired by seed."""
    margin: float
    """A difference within plus or minus this is no effect."""
    result: Result
    reason: str = ""
    """Why it is undecided."""
    digits: int = 2
    """Decimals of the numbers."""


class Answer(msgspec.Struct, frozen=True):
    """The one answer of an audit: is the learning history an asset or a burden?"""

    verdict: Verdict
    sentence: str
    """With the axes that decide it."""
    comparisons: tuple[Comparison, ...] = ()


class Profile(msgspec.Struct, frozen=True):
    """The result of an audit."""

    rule: str
    preset: str
    learner: str
    """The learner under the rule, in words."""
    axes: tuple[Axis, ...]
    notes: tuple[str, ...] = ()
    content: str = ""
    """The rule as specifications name it, if they know it by its content."""
    runs: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The science hash of every lifetime behind the profile, by run id."""
    answer: Answer | None = None
    """None in files that were written before profiles had one."""

    def to_json(self) -> bytes:
        """Return the file of this profile."""
        return disk.as_json(self)


def read(path: Path) -> Profile:
    """Read what :meth:`Profile.to_json` wrote."""
    return disk.read_json(path, Profile, "a profile")


def columns(profile: Profile) -> list[str]:
    """Return the columns that any line of ``profile`` has, the rule first, baselines last."""
    found = dict.fromkeys(
        name for axis in profile.axes for measure in axis.measures for name in measure.figures
    )
    frozen = [name for name in found if name.startswith(FROZEN)]
    first = [name for name in (RULE, PINNED, *frozen, NULL) if name in found]
    return [*first, *(name for name in found if name not in first)]


def divided(figure: ProfileValue, by: float) -> ProfileValue:
    """Return ``figure`` in a unit that is ``by`` times as large."""
    value, low, high = (
        None if x is None else x / by for x in (figure.value, figure.low, figure.high)
    )
    seeds = tuple(each / by for each in figure.seeds)
    return replace(figure, value=value, low=low, high=high, seeds=seeds)
