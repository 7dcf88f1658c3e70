"""What a mechanism view is asked: which rule, reward scales, seeds, and how long a lifetime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.assay import check_measures
from rulescope.assays.estimates import Estimates
from rulescope.assays.results import Results, Table, counted, scale_label
from rulescope.assays.subject import apply_agent, named
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.core.runtime import Identity
from rulescope.spec.disco_config import Disco, driven_by
from rulescope.spec.run_spec import RunSpec
from rulescope.stats import Estimate

if TYPE_CHECKING:
    from rulescope.lifetime import Lifetime

LOG_EVERY = 20
"""As in the assays, so that a lifetime which both want is one run in the store."""


@dataclass(frozen=True)
class Inquiry:
    """The lifetimes that a view is to look at."""

    rule: str
    scales: tuple[float, ...]
    """Ascending."""
    seeds: int
    """Seeds are consecutive from 0."""
    iterations: int
    agent: str = "published"
    """Conventions of the learner, by a name of
    :data:`~rulescope.spec.disco_config.AGENTS`, if the rule's learner has such names."""

    @property
    def learner(self) -> Disco:
        """The learner that the rule was made for."""
        return apply_agent(driven_by(self.rule), self.own_agent, "default")

    @property
    def own_agent(self) -> str:
        """The agent; empty if the rule has a learner of its own."""
        return self.agent if named(self.rule).has_agents else ""

    @property
    def first_update(self) -> int:
        """The iteration of the first update; until then a learner only collects."""
        usual = RunSpec()
        return self.learner.first_update(usual.lanes, usual.steps)

    def live(self, scale: float, seed: int) -> RunSpec:
        """Return the lifetime at ``scale`` in which nothing is done to the learner."""
        return RunSpec(
            learner=self.learner,
            scale=scale,
            iterations=self.iterations,
            log_every=LOG_EVERY,
            seed=seed,
        )

    def opposite(self, scale: float) -> float:
        """Return the scale as far from the other end of the list; its middle is its own.

        >>> Inquiry("random:0", (0.001, 1.0, 1000.0), 1, 100).opposite(0.001)
        1000.0
        """
        return self.scales[-1 - self.scales.index(scale)]

    def in_words(self) -> str:
        """Describe the lifetimes: rule, agent, world, seeds and length."""
        who = f"{self.rule}, agent {self.agent}" if self.own_agent else self.rule
        seeds = counted(self.seeds, "seed")
        return f"{who}, Catch 8×8, {seeds}, {self.iterations:,} iterations a lifetime"

    def results(
        self,
        view: View,
        axes: Mapping[str, tuple[str | float, ...]],
        estimates: Mapping[str, Estimate],
        table: Table,
        series: Mapping[str, NDArray[np.float64]],
    ) -> Results:
        """Return what ``view`` found in these lifetimes."""
        return Results(
            assay=view.label,
            budget=self.in_words(),
            axes=axes,
            seeds=self.seeds,
            estimates=_rows(estimates),
            tables=(table,),
            series=series,
            iterations=self.iterations,
            rule=self.rule,
            agent=self.own_agent,
        )


def _rows(found: Mapping[str, Estimate]) -> Estimates:
    """Return estimates by name (``quantity/label/label``) as rows."""
    rows = Estimates()
    for name, estimate in found.items():
        quantity, *labels = name.split("/")
        rows.add(quantity, estimate, {f"label{i}": label for i, label in enumerate(labels, 1)})
    return rows


def checked(inquiry: Inquiry) -> Inquiry:
    """Return ``inquiry`` in order, or raise an error that names the option."""
    check_measures(inquiry.seeds, inquiry.scales)
    for scale in inquiry.scales:
        label = scale_label(scale)
        if float(label) != scale:  # what is seen goes by the label, so it must say all of it
            raise SpecError(f"--scales: {scale!r} has more than six digits; nearest: {label}")
    least = max(LOG_EVERY, inquiry.first_update + 2)
    if inquiry.iterations < least:
        raise SpecError(
            f"--iterations: {inquiry.iterations} is too short to learn anything; nearest: {least}"
        )
    return inquiry


class Group(NamedTuple):
    """Lifetimes that are lived side by side, because they are looked at together."""

    runs: Mapping[str, RunSpec]
    """By what the view calls them."""
    moments: tuple[int, ...]
    """Iterations after which they are looked at, ascending."""


Look = Callable[[int], Arrays]
"""Given the iteration after which the lifetimes stand, return what is seen: arrays by name, the
same names and shapes at every moment."""
Observer = Callable[[Mapping[str, "Lifetime"]], Look]
"""Given newborn lifetimes by name, return how they are looked at. It must not change them."""


class Observed(NamedTuple):
    """What was seen of a group."""

    group: Group
    seen: Mapping[str, NDArray[Any]]
    """Each [moments, ...]."""
    logs: Mapping[str, Mapping[str, NDArray[Any]]]
    """Columns [rows] of the log of each lifetime."""
    science: Mapping[str, str]
    """Science hash of each lifetime's record."""
    source: Identity
    """The program that lived and looked,"""
    runtime: Identity
    """and the machine it did so on."""


@dataclass(frozen=True)
class View:
    """One way to look inside of lifetimes."""

    name: str
    """As typed: trajectory, targets, replay."""
    title: str
    question: str
    default: Inquiry
    """What is looked at if nothing else is asked; about three minutes on one core."""
    stages: Callable[[Inquiry], list[list[Group]]]
    """Groups in order; those of a stage may need records of the stages before (donors)."""
    observer: Observer
    analyse: Callable[[Inquiry, list[Observed]], Results]
    """Pure: from what was seen to estimates, a table and arrays to draw."""
    version: int = 1
    """Raised when the view would see something else in the same lifetimes."""

    @property
    def label(self) -> str:
        """Of its figure and its results."""
        return f"mechanism-{self.name}"
