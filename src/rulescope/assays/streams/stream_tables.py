"""The published tables of streams and boundaries, with the estimates of this run."""

from __future__ import annotations

from rulescope.assays.analysis import ATLAS_DRAWS, table_note
from rulescope.assays.estimates import Estimates
from rulescope.assays.frame import Frame
from rulescope.assays.pivot import Entry, Index, count_of, names, pivot_table
from rulescope.assays.results import Column, Table
from rulescope.assays.streams.stream_readouts import CROSSED, RATE_SCORE, THRESHOLD
from rulescope.render.arm_styles import arm_name
from rulescope.render.display_names import in_printed_order


def exposure_table(label: str, title: str, frame: Frame, found: Estimates) -> Table:
    """Return scores and crossings by condition."""
    return pivot_table(
        label,
        title,
        found,
        (
            Index("Exposure", "condition", names(sorted(map(str, frame.axes["condition"])))),
            algorithms(frame),
        ),
        (
            Entry(Column("n"), "fraction", show=count_of),
            Entry(Column("Reward-rate score [95% CI]", 5), "score"),
            Entry(Column("Threshold steps [95% CI]", 0), "steps"),
            Entry(Column("Fraction reaching threshold"), "fraction"),
        ),
        table_note(
            frame,
            f"{RATE_SCORE}; steps: interactions until a log row first reaches {THRESHOLD:g}, "
            f"trimmed mean over the lifetimes that do; {CROSSED}",
            ATLAS_DRAWS,
        ),
        tells_n=False,
    )


def algorithms(frame: Frame) -> Index:
    """Return the column of arms in the order of the printed tables."""
    arms = in_printed_order(map(str, frame.axes["arm"]))
    return Index("Algorithm", "arm", {arm: arm_name(arm, frame.subject) for arm in arms})
