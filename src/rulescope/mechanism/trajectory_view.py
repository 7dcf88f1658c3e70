"""Trajectory view: the path of the rule's recurrent state, and whether the reward scale sets it.

The arm ``live`` has no intervention, at several reward scales and seeds. The arm ``cross`` begins
with the terminal state of a live lifetime at the opposite scale, of another seed if there are two.
The state is read after (nearly) every iteration. Coordinates are those of the hidden half h, which
is the part of the state that the targets of an update depend on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from rulescope.assays.analysis import without_interval
from rulescope.assays.estimates import Estimates
from rulescope.assays.results import Column, Results, Table, Value, scale_label
from rulescope.core.arrays import Arrays
from rulescope.lifetime import Lifetime
from rulescope.mechanism.recurrent_geometry import (
    Floats,
    LinePosition,
    between_scale_share,
    fit_components,
    mean_cosines,
    position_on_line,
    settling_moment,
)
from rulescope.mechanism.trajectory_figure import CAPTION, RING_UPDATES, draw_trajectory
from rulescope.mechanism.view_request import Observations, Observer, RunGroup, View, ViewRequest
from rulescope.run_spec import RunSpec, Transplant
from rulescope.stats import Estimate

COMPONENTS = 3
MOMENTS = 400
"""In a longer lifetime the state is not read after every iteration."""
LIVE, CROSS = "live", "cross"


def moments(first: int, iterations: int) -> tuple[int, ...]:
    """Return the iterations after which states are read: all, or evenly spaced up to the last.

    They include the last one before the ``first`` update, when a transplanted state is still the
    donor's, and those whose number of updates has a ring in the figure.
    """
    step = -(-iterations // MOMENTS)
    required = {first - 1, *(first + updates - 1 for updates in RING_UPDATES)}
    evenly = range(iterations, 0, -step)
    return tuple(sorted({*evenly, *(when for when in required if 1 <= when <= iterations)}))


def stages(request: ViewRequest) -> list[list[RunGroup]]:
    """Return the live lifetimes, then the crossed ones, whose donors are live ones."""
    when = moments(request.first_update, request.iterations)
    live = {
        run_name(LIVE, scale, seed): request.run_without_intervention(scale, seed)
        for scale in request.scales
        for seed in range(request.seeds)
    }
    cross = {
        run_name(CROSS, scale, seed): _crossed_run(request, scale, seed)
        for scale in request.scales
        if request.opposite(scale) != scale
        for seed in range(request.seeds)
    }
    return [[RunGroup({key: run}, when) for key, run in runs.items()] for runs in (live, cross)]


def run_name(arm: str, scale: float, seed: int) -> str:
    """Return the name of a lifetime in this view."""
    return f"{arm}/{scale_label(scale)}/{seed}"


def _donor_seed(request: ViewRequest, seed: int) -> int:
    return (seed + 1) % request.seeds


def _crossed_run(request: ViewRequest, scale: float, seed: int) -> RunSpec:
    donor = request.run_without_intervention(request.opposite(scale), _donor_seed(request, seed))
    transplant = Transplant(carrier="recurrent", donor=donor, mode="natural")
    return replace(request.run_without_intervention(scale, seed), interventions=(transplant,))


def attach_observer(lifetimes: Mapping[str, Lifetime]) -> Observer:
    """Return an observer that reads the recurrent carrier of each lifetime."""

    def observe(_: int) -> Arrays:
        return {
            f"{key}/{part}": array
            for key, lifetime in lifetimes.items()
            for part, array in lifetime.learner.carriers["recurrent"].get().items()
        }

    return observe


def analyse(request: ViewRequest, observations: list[Observations]) -> Results:
    """Fit principal components to live states, and project every trajectory onto them."""
    when = np.array(observations[0].group.moments, dtype=np.int64)
    states = {
        key: array.astype(np.float64) for one in observations for key, array in one.values.items()
    }
    updated = when >= request.first_update
    series: dict[str, Floats] = {
        "iteration": when.astype(np.float64),
        "first": np.array([float(request.first_update)]),
    }
    estimates = Estimates()
    for part in ("h", "c"):
        live = _live_states(request, states, part)
        components = fit_components(live[:, :, updated].reshape(-1, live.shape[-1]), COMPONENTS)
        for place, share in enumerate(components.explained, 1):
            found = without_interval(float(share), request.seeds)
            estimates.add("explained", found, {"part": part, "component": float(place)})
        same, other = mean_cosines(live)
        lines = {"same": same, "other": other, "between": between_scale_share(live)}
        for kind, line in lines.items():
            series[f"{kind}/{part}"] = line
            estimates.add(kind, without_interval(float(line[-1]), request.seeds), {"part": part})
        if part == "h":
            series["explained"] = components.explained
            for key, state in states.items():
                if key.endswith("/h"):
                    series[f"path/{key.removesuffix('/h')}"] = components.project(state)
            series["birth"] = components.project(np.zeros(live.shape[-1]))
    for key, position in _positions(request, states).items():
        series |= {f"along/{key}": position.along, f"off/{key}": position.off}
        scale, seed = key.split("/")
        labels = {"scale": float(scale), "seed": float(seed)}
        estimates.add("along", without_interval(float(position.along[-1]), 1), labels)
        estimates.add("off", without_interval(float(position.off[-1]), 1), labels)
        updates = settling_moment(when, position.along) - request.first_update + 1
        estimates.add("turned", without_interval(updates, 1), labels)
    table = _table(request, states, estimates)
    return request.results(VIEW, {"scale": request.scales}, estimates, table, series)


def _live_states(request: ViewRequest, states: Mapping[str, Floats], part: str) -> Floats:
    """Return the states of live lifetimes: [scales, seeds, moments, units]."""
    return np.stack(
        [
            np.stack([states[f"{run_name(LIVE, scale, s)}/{part}"] for s in range(request.seeds)])
            for scale in request.scales
        ]
    )


def _positions(request: ViewRequest, states: Mapping[str, Floats]) -> dict[str, LinePosition]:
    """Return where each transplanted state is between live and donor, by ``scale/seed``."""
    found = {}
    for key in states:
        arm, scale, seed, part = key.split("/")
        if arm == CROSS and part == "h":
            origin = request.opposite(float(scale))
            donor = states[f"{run_name(LIVE, origin, _donor_seed(request, int(seed)))}/h"][-1]
            live = states[f"{LIVE}/{scale}/{seed}/h"]
            found[f"{scale}/{seed}"] = position_on_line(states[key], live, donor)
    return found


def _table(request: ViewRequest, states: Mapping[str, Floats], estimates: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scale in request.scales:
        norms = (
            [
                np.linalg.norm(states[f"{run_name(LIVE, scale, seed)}/{part}"][-1])
                for seed in range(request.seeds)
            ]
            for part in ("h", "c")
        )
        rows.append(
            (
                scale_label(scale),
                *(float(np.mean(of_part)) for of_part in norms),
                *(_over_seeds(estimates, kind, scale) for kind in ("turned", "along", "off")),
            )
        )
    shares = ", ".join(
        f"{part}: "
        + " + ".join(f"{row.estimate.value:.1%}" for row in estimates.where("explained", part=part))
        for part in ("h", "c")
    )
    return Table(
        VIEW.label,
        "Terminal recurrent state, and the path of a transplanted state",
        (
            Column("Reward scale"),
            Column("|h| at the end", 2),
            Column("|c| at the end", 1),
            Column("Updates until nearer to live than to the donor, for good", 0),
            Column("Along the line at the end (0 live, 1 donor)", 3),
            Column("Off that line at the end", 3),
        ),
        tuple(rows),
        f"{request.describe()}; means over seeds; variance explained by three principal "
        f"components: {shares}{_cosine_note(estimates)}; the line connects h without the "
        "transplant to h of the donor, and its length is the unit; a dash where a scale has no "
        "opposite, or where the state of some seed does not become nearer to live.",
        tells_n=False,
    )


def _over_seeds(estimates: Estimates, kind: str, scale: float) -> Estimate | None:
    """Return mean and range over the transplants into ``scale``; None if there are none.

    NaN if the value of one of them is NaN.
    """
    values = [row.estimate.value for row in estimates.where(kind, scale=scale)]
    if not values:
        return None
    low, high = float(np.min(values)), float(np.max(values))
    return Estimate(float(np.mean(values)), low, high, n=len(values), method="range")


def _cosine_note(estimates: Estimates) -> str:
    """Return how well directions agree; a single seed or scale has no pairs to compare."""
    pairs = {"within": estimates.at("same", part="h"), "between": estimates.at("other", part="h")}
    known = [f"{one.value:.3f} {word}" for word, one in pairs.items() if not one.missing]
    if not known:
        return ""
    cosines = f"{' and '.join(known)} scales (h)"
    return f"; mean cosine between directions from the initial state, at the end: {cosines}"


VIEW = View(
    name="trajectory",
    title="Path of the rule's recurrent state",
    question="Where does the recurrent state go in a lifetime, and does the reward scale set it?",
    caption=CAPTION,
    default_request=ViewRequest("disco103", (1e-3, 1.0, 1e3), 2, 160),
    stages=stages,
    attach_observer=attach_observer,
    analyse=analyse,
    draw=draw_trajectory,
)
