"""The published tables of streams and boundaries, with our numbers in them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rulescope.assays.analysis import ATLAS_DRAWS, below
from rulescope.assays.display_names import arm_name
from rulescope.assays.frame import Frame
from rulescope.assays.results import Column, Table, Value
from rulescope.assays.streams.continuity import STEPS, structural_check
from rulescope.assays.streams.stream_readouts import CROSSED, RATE, RATE_SCORE, THRESHOLD
from rulescope.stats import Estimate

Found = Mapping[str, Estimate]


@cache
def resets() -> str:
    """Return the result of the check of resets, in words; ``rulescope check worlds`` records it."""
    said = (
        f"{name} {found.terminals} ends, {found.snaps} paddle resets, {found.jumps} ball jumps"
        for name, found in structural_check().items()
    )
    return f"{STEPS} steps without drift, the paddle left off centre: {'; '.join(said)}"


def exposures(frame: Frame, found: Found) -> Table:
    """Return scores and crossings by exposure."""
    return _by_condition(
        "v5:tab:app-streams-exposures",
        "Episode ends signalled (episodic), never signalled (masked), none (natural: Tracking)",
        frame,
        found,
    )


def synthetics(frame: Frame, found: Found) -> Table:
    """Return scores and crossings by the interval of the signal."""
    return _by_condition(
        "v5:tab:app-streams-synthetic",
        "Catch in which an end is signalled at every 7th, 29th or 100th step",
        frame,
        found,
    )


def _by_condition(label: str, title: str, frame: Frame, found: Found) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            condition,
            arm_name(arm, frame.subject),
            found[f"fraction/{condition}/{arm}"].n,
            *(found[f"{kind}/{condition}/{arm}"] for kind in ("score", "steps", "fraction")),
        )
        for condition in sorted(str(label) for label in frame.axes["condition"])
        for arm in _arms(frame)
    ]
    return Table(
        label,
        title,
        (
            Column("Exposure"),
            Column("Algorithm"),
            Column("n"),
            Column("Reward-rate score [95% CI]", 5),
            Column("Threshold steps [95% CI]", 0),
            Column("Fraction reaching threshold"),
        ),
        tuple(rows),
        below(
            frame,
            f"{RATE_SCORE}; steps: interactions until a log row first reaches {THRESHOLD:g}, "
            f"trimmed mean over the lifetimes that do; {CROSSED}",
            ATLAS_DRAWS,
        ),
        tells_n=False,
    )


def resetfree(frame: Frame, found: Found) -> Table:
    """Return scores in CatchStream, and how many lifetimes ever reach the threshold."""
    rows: list[tuple[Value, ...]] = [
        (name, found[f"ever/{arm}"].n, found[f"score/{arm}"], found[f"ever/{arm}"])
        for arm, name in ((arm, arm_name(arm, frame.subject)) for arm in _arms(frame))
    ]
    return Table(
        "v5:tab:app-resetfree",
        "CatchStream: the reward rate of learners in a world that goes on",
        (
            Column("Algorithm"),
            Column("n"),
            Column("Reward-rate score [95% CI]", 5),
            Column(f"Ever reaches {THRESHOLD:g}"),
        ),
        tuple(rows),
        below(frame, f"{RATE_SCORE}; {CROSSED}; {resets()}", ATLAS_DRAWS),
        tells_n=False,
    )


RAW = f"{RATE}, in rewards of the game, mean of the last 10 % of the log rows"


def masking(frame: Frame, found: Found) -> Table:
    """Return the reward rate with and without the terminal flag, and what the flag is worth."""
    conditions = [str(label) for label in frame.axes["condition"]]
    rows: list[tuple[Value, ...]] = []
    for arm in map(str, frame.axes["arm"]):
        rates = [found[f"rate/{condition}/{arm}"] for condition in conditions]
        effect = found.get(f"effect/{arm}")
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


def masking_paired(frame: Frame, found: Found) -> Table:
    """Return how much more the flag is worth to the rule than to each other learner."""
    rows: list[tuple[Value, ...]] = [
        (f"masking penalty: {frame.subject} − {arm_name(arm, frame.subject)}", one.n, one)
        for arm in map(str, frame.axes["arm"])
        if (one := found.get(f"contrast/{arm}")) is not None
    ]
    return Table(
        "v5:tab:app-minatar-masking-paired",
        f"The effect of masking on {frame.subject}, minus that on other learners",
        (Column("Contrast"), Column("n"), Column("Paired difference [95% CI]", 7)),
        tuple(rows),
        below(
            frame,
            f"effect: masked minus episodic, {RAW}; both differences within seeds, then trimmed",
            ATLAS_DRAWS,
        ),
        tells_n=False,
    )


def _arms(frame: Frame) -> list[str]:
    """Return the arms in the order of the printed tables."""
    return sorted(str(arm) for arm in frame.axes["arm"])
