"""The profile of a rule: what an audit comes to, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from rulescope.errors import RecordError
from rulescope.records import disk
from rulescope.stats import Estimate
from rulescope.stats.intervals import Method

FILE = "profile.json"
RULE, WITHOUT, NULL = "rule", "without history", "null rule"
"""Columns of a profile besides the baselines: the rule as it is, the same rule with its state
pinned or frozen, and its twin that knows nothing."""


class Figure(msgspec.Struct, frozen=True):
    """An estimate with all that it rests on; None where there is no such number."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: Method
    family: int = 1

    @classmethod
    def of(cls, found: Estimate) -> Figure:
        """Return ``found`` as it is written to a file."""
        value, low, high = (_finite(x) for x in (found.value, found.low, found.high))
        return cls(value, low, high, found.n, found.method, found.family)

    def estimate(self) -> Estimate:
        """Return the estimate again."""
        value, low, high = (math.nan if x is None else x for x in (self.value, self.low, self.high))
        return Estimate(value, low, high, self.n, family=self.family, method=self.method)


class Measure(msgspec.Struct, frozen=True):
    """One line of a profile: something measured, for the rule and for those beside it."""

    key: str
    """Its own within the axis, such as ``score`` or ``interaction/0.1``."""
    title: str
    unit: str
    figures: Mapping[str, Figure]
    """By column: ``rule``, ``without history``, ``null rule``, or a baseline's name."""
    source: str
    """Whose estimates these are: an assay's id."""
    digits: Annotated[int, Meta(ge=0, le=6)] = 2
    difference: bool = False
    """Whether zero means that there is no effect."""


class Axis(msgspec.Struct, frozen=True):
    """What is asked along one axis, what was measured, and what that says."""

    name: str
    question: str
    measures: tuple[Measure, ...]
    verdict: str


class Profile(msgspec.Struct, frozen=True):
    """All that an audit has to say about a rule."""

    rule: str
    preset: str
    learner: str
    """In words: who learned under the rule."""
    axes: tuple[Axis, ...]
    notes: tuple[str, ...] = ()
    content: str = ""
    """The rule as specifications name it, if they know it by its content."""
    runs: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The science hash of every lifetime behind the profile, by run id."""

    def to_json(self) -> bytes:
        """Return the file of this profile."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


def read(path: Path) -> Profile:
    """Read what :meth:`Profile.to_json` wrote."""
    with disk.reading(path):
        content = path.read_bytes()
    try:
        return msgspec.json.decode(content, type=Profile)
    except msgspec.MsgspecError as fault:
        raise RecordError(f"{path}: not a profile ({fault})") from None


def columns(profile: Profile) -> list[str]:
    """Return the columns that any line of ``profile`` has, the rule first, baselines last."""
    found = dict.fromkeys(
        name for axis in profile.axes for measure in axis.measures for name in measure.figures
    )
    first = [name for name in (RULE, WITHOUT, NULL) if name in found]
    return [*first, *(name for name in found if name not in first)]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
