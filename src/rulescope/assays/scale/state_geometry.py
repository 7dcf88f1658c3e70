"""Where the rule's state ends up: how the reward scale moves and spreads terminal states (E1)."""

from __future__ import annotations

import numpy as np

from rulescope.assays.analysis import exactly
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import scale_label
from rulescope.stats import (
    Estimate,
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


def geometry(frame: Frame) -> dict[str, Estimate]:
    """Estimate the geometry of terminal states, where they exist at the unit scale and others."""
    if not {"recurrent/h", "recurrent/c"} <= set(frame.states) or UNIT not in frame.axes["scale"]:
        return {}
    found: dict[str, Estimate] = {}
    for task in frame.axes["task"]:
        for arm in ARMS:
            if arm in frame.axes["arm"]:
                h, c = (frame.state(f"recurrent/{name}", task=task, arm=arm) for name in "hc")
                both = np.concatenate([h, c], axis=-1)
                for vector, states in zip(VECTORS, (h, c, both), strict=True):
                    found |= _of_vector(f"{task}/{arm}", vector, states, frame)
    return found


def _of_vector(name: str, vector: str, states: Floats, frame: Frame) -> dict[str, Estimate]:
    """Estimate all about one vector, whose ``states`` are [scales, seeds, units]."""
    scales = frame.axes["scale"]
    unit = scales.index(UNIT)
    counts = np.isfinite(states).all(axis=-1).sum(axis=-1)
    if counts[unit] < 2:  # a single state has no radius
        return {}
    blocks = seed_blocks(states.shape[1])
    n = int(counts.min())
    shift, shifts = displacement(states, unit), bootstrap_displacement(states, unit, blocks)
    found = {
        f"displacement/{name}/{scale_label(float(scale))}/{vector}": estimate_from(
            float(shift[i]), shifts[:, i], int(min(counts[i], counts[unit]))
        )
        for i, scale in enumerate(scales)
    }
    return found | {
        f"between/{name}/{vector}": estimate_from(
            between_fraction(states), bootstrap_between_fraction(states, blocks), n
        ),
        f"principal/{name}/{vector}": exactly(principal_fraction(states), n),
        f"radius/{name}/{vector}": exactly(unit_radius(states[unit]), int(counts[unit])),
    }
