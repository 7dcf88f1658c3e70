"""The published tables of streams and boundaries, with the estimates of this run."""

from __future__ import annotations

from rulescope.assays.analysis import ATLAS_DRAWS, table_note
from rulescope.assays.estimates import Estimates
from rulescope.assays.frame import Frame
from rulescope.assays.pivot import Entry, Index, count_of, names, pivot_table
from rulescope.assays.results import Column, Table
from rulescope.assays.streams.stream_readouts import CROSSED, LATE, RATE_SCORE, THRESHOLD
from rulescope.render.arm_styles import arm_name
from rulescope.render.display_names import in_printed_order


def exposure_table(label: str, title: str, frame: Frame, found: Estimates) -> Table:
    """Return scores, and crossings where scores have a scale, by condition."""
    name, words = "Reward-rate score", RATE_SCORE
    if frame.worlds:
        name, words = "Score", f"score: {LATE}"
    entries = [
        Entry(Column("n"), "score", show=count_of),
        Entry(Column(f"{name} [95% CI]", 5), "score"),
    ]
    if frame.normalised:
        entries = [
            Entry(Column("n"), "fraction", show=count_of),
            entries[1],
            Entry(Column("Threshold steps [95% CI]", 0), "steps"),
            Entry(Column("Fraction reaching threshold"), "fraction"),
        ]
        words += (
            f"; steps: interactions until a log row first reaches {THRESHOLD:g}, trimmed mean over "
            f"the lifetimes that do; {CROSSED}"
        )
    return pivot_table(
        label,
        title,
        found,
        (
            Index("Exposure", "condition", names(sorted(map(str, frame.axes["condition"])))),
            algorithms(frame),
        ),
        entries,
        table_note(frame, words, ATLAS_DRAWS),
        tells_n=False,
    )


def algorithms(frame: Frame) -> Index:
    """Return the column of arms in the order of the printed tables."""
    arms = in_printed_order(map(str, frame.axes["arm"]))
    return Index("Algorithm", "arm", {arm: arm_name(arm, frame.subject) for arm in arms})
