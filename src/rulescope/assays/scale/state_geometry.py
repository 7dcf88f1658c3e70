"""Geometry of the rule's terminal states: how the reward scale moves and spreads them (E1)."""

from __future__ import annotations

import numpy as np

from rulescope.assays.analysis import without_interval
from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.frame import Floats, Frame
from rulescope.stats import (
    between_fraction,
    bootstrap_between_fraction,
    bootstrap_displacement,
    displacement,
    estimate_from,
    principal_fraction,
    seed_blocks,
    unit_radius,
)

ARMS = ("live", "hold")
"""In the other arms the state is not the rule's own: pinned states are all zero."""
UNIT = 1.0
VECTORS = ("h", "c", "hc")


def estimate_geometry(frame: Frame, *, other_grid: bool) -> Estimates:
    """Estimate the geometry of terminal states, where they exist at the unit scale and others.

    ``other_grid``: whether the scales are others than the published.
    """
    found = Estimates()
    if not {"recurrent/h", "recurrent/c"} <= set(frame.states) or UNIT not in frame.axes["scale"]:
        return found
    for task in frame.axes["task"]:
        for arm in (arm for arm in ARMS if arm in frame.axes["arm"]):
            h, c = (frame.state(f"recurrent/{name}", task=task, arm=arm) for name in "hc")
            both = np.concatenate([h, c], axis=-1)
            for vector, states in zip(VECTORS, (h, c, both), strict=True):
                _add_vector(found, states, frame, {"task": task, "arm": arm}, vector, other_grid)
    return found


def _add_vector(
    found: Estimates,
    states: Floats,
    frame: Frame,
    at: dict[str, Label],
    vector: str,
    other_grid: bool,
) -> None:
    """Add all estimates about one vector, whose ``states`` are [scales, seeds, units]."""
    scales = frame.axes["scale"]
    unit = scales.index(UNIT)
    counts = np.isfinite(states).all(axis=-1).sum(axis=-1)
    if counts[unit] < 2:  # a single state has no radius
        return
    blocks = seed_blocks(states.shape[1])
    n = int(counts.min())
    shift, shifts = displacement(states, unit), bootstrap_displacement(states, unit, blocks)
    for i, scale in enumerate(scales):
        pair = int(min(counts[i], counts[unit]))
        moved = estimate_from(float(shift[i]), shifts[:, i], pair)
        found.add("displacement", moved, {**at, "scale": scale, "vector": vector})
    labels = {**at, "vector": vector}
    between = estimate_from(between_fraction(states), bootstrap_between_fraction(states, blocks), n)
    principal = without_interval(principal_fraction(states), n)
    found.add("between", between, labels, other_grid=other_grid)
    found.add("principal", principal, labels, other_grid=other_grid)
    found.add("radius", without_interval(unit_radius(states[unit]), int(counts[unit])), labels)
