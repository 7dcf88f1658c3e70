"""A mechanism view, the request that it answers, and the observations that it analyses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from rulescope.assays.estimates import Estimates
from rulescope.assays.results import Results, Table, counted, scale_label
from rulescope.assays.selection import check_seeds_and_scales
from rulescope.assays.subject import apply_agent, make_subject
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.core.runtime import Identity
from rulescope.learners.disco_config import Disco, driven_by
from rulescope.lifetime import Lifetime
from rulescope.run_spec import RunSpec

LOG_EVERY = 20
"""As in the assays, so that a lifetime of both is one run in the store."""


@dataclass(frozen=True)
class ViewRequest:
    """The lifetimes that a view observes."""

    rule: str
    scales: tuple[float, ...]
    """Reward scales, ascending."""
    seeds: int
    """Number of seeds, which are consecutive from 0."""
    iterations: int
    """Length of a lifetime."""
    agent: str = "published"
    """Conventions of the learner: a name in :data:`~rulescope.learners.disco_config.AGENTS`.
    Without effect if the rule has a learner of its own."""

    @property
    def learner(self) -> Disco:
        """The learner that the rule was made for."""
        return apply_agent(driven_by(self.rule), self.applied_agent, "default")

    @property
    def applied_agent(self) -> str:
        """The agent; empty if the rule has a learner of its own."""
        return self.agent if make_subject(self.rule).has_agents else ""

    @property
    def first_update(self) -> int:
        """The iteration of the first update; until then the learner only fills its replay."""
        default = RunSpec()
        return self.learner.first_update(default.lanes, default.steps)

    def run_without_intervention(self, scale: float, seed: int) -> RunSpec:
        """Return the run of the live arm."""
        return RunSpec(
            learner=self.learner,
            scale=scale,
            iterations=self.iterations,
            log_every=LOG_EVERY,
            seed=seed,
        )

    def opposite(self, scale: float) -> float:
        """Return the scale at the mirrored place of the list; the middle one is its own opposite.

        >>> ViewRequest("random:0", (0.001, 1.0, 1000.0), 1, 100).opposite(0.001)
        1000.0
        """
        return self.scales[-1 - self.scales.index(scale)]

    def describe(self) -> str:
        """Return rule, agent, world, seeds and length as a phrase."""
        rule = f"{self.rule}, agent {self.agent}" if self.applied_agent else self.rule
        seeds = counted(self.seeds, "seed")
        return f"{rule}, Catch 8×8, {seeds}, {self.iterations:,} iterations a lifetime"

    def results(
        self,
        view: View,
        axes: Mapping[str, tuple[str | float, ...]],
        estimates: Estimates,
        table: Table,
        series: Mapping[str, NDArray[np.float64]],
    ) -> Results:
        """Return the results of ``view`` for this request."""
        return Results(
            assay=view.label,
            budget=self.describe(),
            axes=axes,
            seeds=self.seeds,
            estimates=estimates,
            tables=(table,),
            series=series,
            iterations=self.iterations,
            rule=self.rule,
            agent=self.applied_agent,
        )


def validate_request(request: ViewRequest) -> ViewRequest:
    """Return ``request``, or raise an error that names the invalid option."""
    check_seeds_and_scales(request.seeds, request.scales)
    for scale in request.scales:
        label = scale_label(scale)
        if float(label) != scale:  # arrays are named by the label, which must identify the scale
            raise SpecError(f"--scales: {scale!r} has more than six digits; nearest: {label}")
    least = max(LOG_EVERY, request.first_update + 2)
    if request.iterations < least:
        raise SpecError(
            f"--iterations: {request.iterations} is too short for two updates; nearest: {least}"
        )
    return request


class RunGroup(NamedTuple):
    """Lifetimes that advance in step, because they are observed together."""

    runs: Mapping[str, RunSpec]
    """By the name that the view gives them."""
    moments: tuple[int, ...]
    """Iterations after which they are observed, ascending."""


Observer = Callable[[int], Arrays]
"""Reads the lifetimes after the given iteration: arrays by name, with the same names and shapes at
every moment."""
AttachObserver = Callable[[Mapping[str, Lifetime]], Observer]
"""Returns the observer of lifetimes (by name) that are at their start. It must not change them."""


class Observations(NamedTuple):
    """What was observed of a group."""

    group: RunGroup
    values: Mapping[str, NDArray[Any]]
    """Each [moments, ...]."""
    logs: Mapping[str, Mapping[str, NDArray[Any]]]
    """Columns [rows] of the log of each lifetime."""
    science_hashes: Mapping[str, str]
    """Of each lifetime's record."""
    source: Identity
    """The program that ran the lifetimes."""
    runtime: Identity
    """The machine that ran them."""


@dataclass(frozen=True)
class View:
    """One way to look inside lifetimes."""

    name: str
    """As typed: trajectory, targets, replay."""
    title: str
    question: str
    caption: str
    """What the figure shows."""
    default_request: ViewRequest
    """About three minutes on one core."""
    stages: Callable[[ViewRequest], list[list[RunGroup]]]
    """Groups in order; those of a stage may need records of the stages before (donors)."""
    attach_observer: AttachObserver
    analyse: Callable[[ViewRequest, list[Observations]], Results]
    """From observations to estimates, a table and arrays to draw; a pure function."""
    draw: Callable[[Mapping[str, Results]], Figure]
    """Draws the figure from results by label."""
    version: int = 1
    """Raised when the view would observe something else of the same lifetimes."""

    @property
    def label(self) -> str:
        """Of its figure and its results."""
        return f"mechanism-{self.name}"
