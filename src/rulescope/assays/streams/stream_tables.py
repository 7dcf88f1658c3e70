"""The published tables of streams and boundaries, with the estimates of this run."""

from __future__ import annotations

from rulescope.assays.analysis import ATLAS_DRAWS, below
from rulescope.assays.display_names import arm_name
from rulescope.assays.estimates import Estimates
from rulescope.assays.frame import Frame
from rulescope.assays.pivot import Entry, Index, count_of, names, pivot_table
from rulescope.assays.results import Column, Table, Value
from rulescope.assays.streams.stream_readouts import CROSSED, RATE, RATE_SCORE, THRESHOLD


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
        below(
            frame,
            f"{RATE_SCORE}; steps: interactions until a log row first reaches {THRESHOLD:g}, "
            f"trimmed mean over the lifetimes that do; {CROSSED}",
            ATLAS_DRAWS,
        ),
        tells_n=False,
    )


def algorithms(frame: Frame) -> Index:
    """Return the column of arms in the order of the printed tables."""
    arms = sorted(map(str, frame.axes["arm"]))
    return Index("Algorithm", "arm", {arm: arm_name(arm, frame.subject) for arm in arms})


RAW = f"{RATE}, in rewards of the game, mean of the last 10 % of the log rows"


def masking(frame: Frame, found: Estimates) -> Table:
    """Return the reward rate with and without the terminal flag, and the effect of the flag."""
    conditions = [str(label) for label in frame.axes["condition"]]
    rows: list[tuple[Value, ...]] = []
    for arm in map(str, frame.axes["arm"]):
        rates = [found.at("rate", condition=condition, arm=arm) for condition in conditions]
        row = found.find("effect", arm=arm)
        effect = None if row is None else row.estimate
        n = min(rate.n for rate in rates) if effect is None else effect.n
        rows.append((arm_name(arm, frame.subject), n, *rates, effect))
    return Table(
        "v5:tab:app-minatar-masking",
        "MinAtar Breakout with and without the terminal flag",
        (
            Column("Algorithm"),
            Column("n"),
            *(Column(condition.capitalize(), 6, interval=False) for condition in conditions),
            Column("Masked minus episodic [95% CI]", 7),
        ),
        tuple(rows),
        below(
            frame,
            f"rates: {RAW}, integer-trimmed mean over seeds; differences: within seeds first, "
            "then trimmed",
            ATLAS_DRAWS,
        ),
        tells_n=False,
    )


def masking_paired(frame: Frame, found: Estimates) -> Table:
    """Return how much larger the effect of the flag is for the rule than for each other learner."""
    subject = frame.subject
    contrasts = {
        arm: f"masking penalty: {subject} − {arm_name(str(arm), subject)}"
        for arm in frame.axes["arm"]
    }
    return pivot_table(
        "v5:tab:app-minatar-masking-paired",
        f"The effect of masking on {subject}, minus that on other learners",
        found,
        (Index("Contrast", "arm", contrasts),),
        (
            Entry(Column("n"), "contrast", show=count_of),
            Entry(Column("Paired difference [95% CI]", 7), "contrast"),
        ),
        below(
            frame,
            f"effect: masked minus episodic, {RAW}; both differences within seeds, then trimmed",
            ATLAS_DRAWS,
        ),
        tells_n=False,
    )
