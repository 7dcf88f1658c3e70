"""Trajectory: where the rule's recurrent state goes in a lifetime, and what sets its direction.

Lifetimes of several reward scales and seeds live on their own (live) and, at scales that have an
opposite one in the list, begin with the terminal state of a lifetime of that scale (cross), of
another seed if there are two. After nearly every iteration the state is read. The hidden half h is
all of it that the targets of an update can see, so the coordinates are those of h.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rulescope.assays.analysis import exactly
from rulescope.assays.results import Column, Results, Table, Value, scale_label
from rulescope.core.arrays import Arrays
from rulescope.lifetime import Lifetime
from rulescope.mechanism.mechanism_figures import RINGS
from rulescope.mechanism.principal_components import (
    Floats,
    Place,
    alignment,
    between,
    between_scales,
    nearer_to_live,
    principal,
)
from rulescope.mechanism.view_request import Group, Inquiry, Look, Observed, View
from rulescope.spec.run_spec import RunSpec, Transplant
from rulescope.stats import Estimate

COMPONENTS = 3
MOMENTS = 400
"""A lifetime of more iterations is not read after every one of them."""
LIVE, CROSS = "live", "cross"


def moments(first: int, iterations: int) -> tuple[int, ...]:
    """Return after which iterations states are read: all, or evenly spaced up to the last.

    Always among them are the last one before the ``first`` update, when a transplanted state is
    still the donor's, and those whose number of updates has a ring in the figure.
    """
    step = -(-iterations // MOMENTS)
    needed = {first - 1, *(first + updates - 1 for updates in RINGS)}
    evenly = range(iterations, 0, -step)
    return tuple(sorted({*evenly, *(when for when in needed if 1 <= when <= iterations)}))


def stages(inquiry: Inquiry) -> list[list[Group]]:
    """Return live lifetimes, then those that begin with the state of one of them."""
    when = moments(inquiry.first_update, inquiry.iterations)
    live = {
        name(LIVE, scale, seed): inquiry.live(scale, seed)
        for scale in inquiry.scales
        for seed in range(inquiry.seeds)
    }
    cross = {
        name(CROSS, scale, seed): _crossed(inquiry, scale, seed)
        for scale in inquiry.scales
        if inquiry.opposite(scale) != scale
        for seed in range(inquiry.seeds)
    }
    return [[Group({key: run}, when) for key, run in runs.items()] for runs in (live, cross)]


def name(arm: str, scale: float, seed: int) -> str:
    """Return what a lifetime is called."""
    return f"{arm}/{scale_label(scale)}/{seed}"


def _donor_seed(inquiry: Inquiry, seed: int) -> int:
    return (seed + 1) % inquiry.seeds


def _crossed(inquiry: Inquiry, scale: float, seed: int) -> RunSpec:
    """Return a lifetime that begins with the state of another scale and (if there is) seed."""
    donor = inquiry.live(inquiry.opposite(scale), _donor_seed(inquiry, seed))
    transplant = Transplant(carrier="recurrent", donor=donor, mode="natural")
    return replace(inquiry.live(scale, seed), interventions=(transplant,))


def observer(lives: Mapping[str, Lifetime]) -> Look:
    """Return a look that reads the recurrent carrier of each lifetime."""

    def look(_: int) -> Arrays:
        return {
            f"{key}/{part}": array
            for key, life in lives.items()
            for part, array in life.learner.carriers["recurrent"].get().items()
        }

    return look


def analyse(inquiry: Inquiry, observed: list[Observed]) -> Results:
    """Find the principal coordinates of live states, and put every trajectory into them."""
    when = np.array(observed[0].group.moments, dtype=np.int64)
    states = {key: array.astype(np.float64) for one in observed for key, array in one.seen.items()}
    learned = when >= inquiry.first_update
    series: dict[str, Floats] = {
        "iteration": when.astype(np.float64),
        "first": np.array([float(inquiry.first_update)]),
    }
    found: dict[str, Estimate] = {}
    for part in ("h", "c"):
        live = _live(inquiry, states, part)
        axes = principal(live[:, :, learned].reshape(-1, live.shape[-1]), COMPONENTS)
        for turn, share in enumerate(axes.explained):
            found[f"explained/{part}/{turn + 1}"] = exactly(float(share), inquiry.seeds)
        along = alignment(live)
        shared = {"same": along.same, "other": along.other, "between": between_scales(live)}
        for kind, line in shared.items():
            series[f"{kind}/{part}"] = line
            found[f"{kind}/{part}"] = exactly(float(line[-1]), inquiry.seeds)
        if part == "h":
            series["explained"] = axes.explained
            for key, state in states.items():
                if key.endswith("/h"):
                    series[f"path/{key.removesuffix('/h')}"] = axes.coordinates(state)
            series["birth"] = axes.coordinates(np.zeros(live.shape[-1]))
    for key, place in _places(inquiry, states).items():
        series |= {f"along/{key}": place.along, f"off/{key}": place.off}
        found[f"along/{key}"] = exactly(float(place.along[-1]), 1)
        found[f"off/{key}"] = exactly(float(place.off[-1]), 1)
        turned = nearer_to_live(when, place.along) - inquiry.first_update + 1
        found[f"turned/{key}"] = exactly(turned, 1)
    return inquiry.results(
        VIEW, {"scale": inquiry.scales}, found, _table(inquiry, states, found), series
    )


def _live(inquiry: Inquiry, states: Mapping[str, Floats], part: str) -> Floats:
    """Return the states of live lifetimes: [scales, seeds, moments, units]."""
    return np.stack(
        [
            np.stack([states[f"{name(LIVE, scale, seed)}/{part}"] for seed in range(inquiry.seeds)])
            for scale in inquiry.scales
        ]
    )


def _places(inquiry: Inquiry, states: Mapping[str, Floats]) -> dict[str, Place]:
    """Return where each transplanted state is between live and donor, by ``scale/seed``."""
    found = {}
    for key in states:
        arm, scale, seed, part = key.split("/")
        if arm == CROSS and part == "h":
            origin = inquiry.opposite(float(scale))
            donor = states[f"{name(LIVE, origin, _donor_seed(inquiry, int(seed)))}/h"][-1]
            live = states[f"{LIVE}/{scale}/{seed}/h"]
            found[f"{scale}/{seed}"] = between(states[key], live, donor)
    return found


def _table(inquiry: Inquiry, states: Mapping[str, Floats], found: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scale in inquiry.scales:
        ends = {
            part: [_size(states[f"{name(LIVE, scale, s)}/{part}"]) for s in range(inquiry.seeds)]
            for part in ("h", "c")
        }
        rows.append(
            (
                scale_label(scale),
                float(np.mean(ends["h"])),
                float(np.mean(ends["c"])),
                *(_over_seeds(found, kind, scale) for kind in ("turned", "along", "off")),
            )
        )
    said = ", ".join(
        f"{part}: "
        + " + ".join(f"{found[f'explained/{part}/{turn}'].value:.1%}" for turn in (1, 2, 3))
        for part in ("h", "c")
    )
    return Table(
        VIEW.label,
        "Where the recurrent state ends, and where a donor's state goes",
        (
            Column("Reward scale"),
            Column("|h| at the end", 2),
            Column("|c| at the end", 1),
            Column("Updates until nearer to live than to the donor, for good", 0),
            Column("Along the line at the end (0 live, 1 donor)", 3),
            Column("Off that line at the end", 3),
        ),
        tuple(rows),
        f"{inquiry.in_words()}; means over seeds; variation along three principal directions: "
        f"{said}{_shared(found)}; the line is that between the states of h without the transplant "
        "and of the donor, and the unit its length; a dash where a scale has no opposite, or where "
        "a state does not become nearer to live in every seed.",
        tells_n=False,
    )


def _over_seeds(found: Mapping[str, Estimate], kind: str, scale: float) -> Estimate | None:
    """Return mean and range of what was found of transplants into ``scale``; None without any.

    Not a number if one of them has none.
    """
    start = f"{kind}/{scale_label(scale)}/"
    values = [one.value for key, one in found.items() if key.startswith(start)]
    if not values:
        return None
    low, high = float(np.min(values)), float(np.max(values))
    return Estimate(float(np.mean(values)), low, high, n=len(values), method="range")


def _shared(found: Mapping[str, Estimate]) -> str:
    """Say how well directions agree; a single seed or scale has no pairs to compare."""
    pairs = {"within": found["same/h"], "between": found["other/h"]}
    known = [f"{one.value:.3f} {word}" for word, one in pairs.items() if not one.missing]
    said = f"{' and '.join(known)} scales (h)"
    return f"; mean cosine between directions from birth at the end: {said}" if known else ""


def _size(states: NDArray[np.float64]) -> float:
    """Return the length of the last of ``states`` [moments, units]."""
    return float(np.linalg.norm(states[-1]))


VIEW = View(
    name="trajectory",
    title="Where the rule's recurrent state goes",
    question="Where does the recurrent state go in a lifetime, and does the reward scale set it?",
    default=Inquiry("disco103", (1e-3, 1.0, 1e3), 2, 160),
    stages=stages,
    observer=observer,
    analyse=analyse,
)
