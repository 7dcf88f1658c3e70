"""Families of comparisons that share one error rate, planned before estimation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from rulescope.core.errors import nearest
from rulescope.stats.array_checks import DataError
from rulescope.stats.intervals import Estimate, tail


@dataclass(frozen=True, slots=True)
class Family:
    """The planned members of a family and the estimates made so far; immutable.

    A member that could not be estimated stays in the plan: removing it would narrow the other
    intervals after the data were seen.
    """

    name: str
    members: Sequence[str]
    estimates: Mapping[str, Estimate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Copies, so that later changes of the arguments do not change the plan.
        object.__setattr__(self, "members", tuple(self.members))
        object.__setattr__(self, "estimates", MappingProxyType(dict(self.estimates)))
        if not self.members:
            raise DataError(f"family {self.name!r} has no members")
        twice = sorted({member for member in self.members if self.members.count(member) > 1})
        if twice:
            raise DataError(f"family {self.name!r} names {', '.join(twice)} more than once")
        for member, estimate in self.estimates.items():
            self._check(member, estimate)

    @property
    def size(self) -> int:
        """The number of planned members, by which the error is divided."""
        return len(self.members)

    @property
    def tail(self) -> float:
        """The error on each side of each member's interval."""
        return tail(self.size)

    @property
    def missing(self) -> tuple[str, ...]:
        """Planned members without an estimate, or whose estimate has no value."""
        return tuple(
            member
            for member in self.members
            if member not in self.estimates or self.estimates[member].missing
        )

    def with_estimate(self, member: str, estimate: Estimate) -> Family:
        """Return a family that also has the estimate of ``member``."""
        if member in self.estimates:
            raise DataError(f"{member!r} of family {self.name!r} already has an estimate")
        return Family(self.name, self.members, {**self.estimates, member: estimate})

    def __getitem__(self, member: str) -> Estimate | None:
        """Return the estimate of a planned member, or None where there is none yet."""
        self._check_planned(member)
        return self.estimates.get(member)

    def _check(self, member: str, estimate: Estimate) -> None:
        """Raise unless ``member`` is planned and its interval is for a family of this size."""
        self._check_planned(member)
        if estimate.method == "bootstrap" and estimate.family != self.size:
            raise DataError(
                f"the interval of {member!r} is for a family of {estimate.family}, "
                f"but {self.name!r} has {self.size} planned members"
            )

    def _check_planned(self, member: str) -> None:
        if member not in self.members:
            hint = nearest(member, self.members)
            raise DataError(f"{member!r} is not in family {self.name!r}{hint}")
