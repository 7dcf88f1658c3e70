"""What the assays of streams and boundaries read out of lifetimes: rates, crossings, trajectories.

A world without episodes has no returns. What is read is the reward per interaction, which exists
with and without episodes, so that lifetimes can be compared across boundaries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.analysis import ATLAS_DRAWS, absent
from rulescope.assays.frame import Bools, Floats, Frame
from rulescope.episode_stats import RATE_WINDOW
from rulescope.stats import Estimate, estimate, estimates, seed_blocks, tail_from, tail_mean, wilson
from rulescope.stats import threshold_steps as first_at_or_above

THRESHOLD = 0.8
"""Score of the reward rate at which a lifetime counts as having learnt."""
RATE = f"reward per interaction, over the last {RATE_WINDOW:,}"
RATE_SCORE = (
    f"score: {RATE} (0 random, 1 optimal), mean of the log rows of the last 15 % of a lifetime, "
    "integer-trimmed mean over seeds"
)
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


def crossed(first: Floats, lived: Bools) -> Estimate:
    """Return the share of one cell's lifetimes [seeds] that ever crossed, of all that there are."""
    return wilson(int(np.isfinite(first[lived]).sum()), int(lived.sum()))


def time_to_threshold(first: Floats, lived: Bools) -> Estimate:
    """Estimate when one cell's lifetimes [seeds] cross, of those that do, resampled by themselves.

    ``n`` counts all lifetimes; the share that crosses tells how many of them stand behind the time.
    (That those which never cross are not resampled is how the published bounds came about.)
    """
    times = first[np.isfinite(first)]
    found = estimate(times, seed_blocks(len(times), ATLAS_DRAWS)) if len(times) else absent()
    return replace(found, n=int(lived.sum()))


def exposed(frame: Frame) -> dict[str, Estimate]:
    """Estimate score, time to the threshold, and share that reaches it, in every cell."""
    scores = estimates(late(frame), seed_blocks(len(frame.seeds), ATLAS_DRAWS))
    first = crossings(frame)
    found: dict[str, Estimate] = {}
    for name, place in frame.places():
        lived = frame.lived[place]
        found[f"score/{name}"] = scores[place]
        found[f"steps/{name}"] = time_to_threshold(first[place], lived)
        found[f"fraction/{name}"] = crossed(first[place], lived)
    return found


def trajectories(frame: Frame, column: str = "rate_score") -> dict[str, Floats]:
    """Return a log column of every cell over the interactions: [value, low, high] by rows.

    At ``steps`` are the interactions [rows], at ``trajectory/{cell}`` the band [3, rows].
    """
    blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
    series = {"steps": frame.iteration * (frame.interactions // frame.iterations)}
    for name, place in frame.places():
        by_row: NDArray[np.float64] = frame.log(column)[place].T
        rows = estimates(by_row, blocks)
        series[f"trajectory/{name}"] = np.stack([rows.value, rows.low, rows.high])
    return series
