"""Readouts of streams and boundaries: reward rates, first crossings of a threshold, curves.

A world without episodes has no returns. The reward per interaction exists with and without
episodes, so that lifetimes can be compared across boundaries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rulescope.assays.analysis import ATLAS_DRAWS, OPTIMAL, missing_estimate, trajectories
from rulescope.assays.estimates import Estimates
from rulescope.assays.frame import Bools, Floats, Frame
from rulescope.episode_stats import RATE_WINDOW
from rulescope.stats import Estimate, estimate, estimates, seed_blocks, tail_from, tail_mean, wilson
from rulescope.stats import threshold_steps as first_at_or_above

THRESHOLD = 0.8
"""Score of the reward rate at which a lifetime counts as having learnt."""
RATE = f"reward per interaction, over the last {RATE_WINDOW:,}"
LATE = "mean of the log rows of the last 15 % of a lifetime, integer-trimmed mean over seeds"
RATE_SCORE = f"score: {RATE}{OPTIMAL}, {LATE}"
CROSSED = (
    f"fraction: lifetimes in which a log row ever reaches {THRESHOLD:g}, 95 % Wilson intervals"
)


def late(frame: Frame) -> Floats:
    """Return [..., seeds]: the mean score over the log rows from 85 % of each lifetime on.

    (23 of 150 rows as published: the row at 85 % is included, unlike in a count of 15 % of rows.)
    """
    rows = tail_from(frame.iteration, 0.85, int(frame.iteration[-1]))
    return tail_mean(frame.log("rate_score"), rows)


def crossings(frame: Frame) -> Floats:
    """Return [..., seeds]: interactions at the first log row at the threshold; NaN for never."""
    each = frame.interactions // frame.iterations
    return first_at_or_above(frame.iteration * each, frame.log("rate_score"), THRESHOLD)


def crossed(first: Floats, completed: Bools) -> Estimate:
    """Return the share of one cell's completed lifetimes [seeds] that ever crossed."""
    return wilson(int(np.isfinite(first[completed]).sum()), int(completed.sum()))


def time_to_threshold(first: Floats, completed: Bools) -> Estimate:
    """Estimate when one cell's lifetimes [seeds] cross, of those that do, resampled by themselves.

    ``n`` counts all lifetimes; the share that crosses says how many of them the time is from. (The
    published bounds were made the same way: lifetimes that never cross are not resampled.)
    """
    times = first[np.isfinite(first)]
    found = (
        estimate(times, seed_blocks(len(times), ATLAS_DRAWS)) if len(times) else missing_estimate()
    )
    return replace(found, n=int(completed.sum()))


def estimate_exposures(frame: Frame) -> Estimates:
    """Estimate score, time to the threshold, and share that reaches it, in every cell."""
    values, first = late(frame), crossings(frame)
    scores = estimates(values, seed_blocks(len(frame.seeds), ATLAS_DRAWS))
    found = Estimates()
    for labels, place in frame.cells():
        completed = frame.completed[place]
        found.add("score", scores[place], labels, seeds=values[place] if completed.any() else None)
        if frame.normalised:
            found.add("steps", time_to_threshold(first[place], completed), labels)
            found.add("fraction", crossed(first[place], completed), labels)
    return found


def learning_curves(frame: Frame) -> dict[str, Floats]:
    """Return the score of every cell with its band, and the interactions ``steps`` [rows]."""
    steps = frame.iteration * (frame.interactions // frame.iterations)
    return {"steps": steps, **trajectories(frame, "rate_score")}
