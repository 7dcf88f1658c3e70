"""Tables of the DeepSea assays, with our numbers in them and only what was run."""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import ATLAS_DRAWS, below
from rulescope.assays.display_names import arm_name
from rulescope.assays.frame import Frame
from rulescope.assays.results import Column, Table, Value
from rulescope.stats import Estimate

GOAL_IN_LOG = "goal-in-log"
"""Kind of the estimate that the published table calls "ever found"."""
READOUTS = (
    "tail return: mean logged return of the last fifth of a lifetime, integer-trimmed mean over "
    "seeds; solved: a tail return of at least 0.495; goal in the log: a logged mean return ever "
    "above 0 (goals between log rows may be missed: the assay discovery counts the goals "
    "themselves); "
    "deepest majority solved: the deepest sea that at least half of the lifetimes solved"
)


def staircase(
    label: str, frame: Frame, made: Mapping[str, Estimate], depths: Mapping[str, int]
) -> Table:
    """Return the table of a staircase: a row for every learner and depth (by task) that was run."""
    rows: list[tuple[Value, ...]] = []
    for arm in sorted(str(arm) for arm in frame.axes["arm"]):
        for depth in sorted(depths.values()):
            tail = made[f"return/{arm}/{depth}"]
            shares = (made[f"{kind}/{arm}/{depth}"] for kind in ("solved", GOAL_IN_LOG))
            if tail.n:
                name = arm_name(arm, frame.subject)
                rows.append((name, depth, tail.n, *shares, tail, _deepest(made[f"deepest/{arm}"])))
    return Table(
        label,
        "DeepSea by depth: who solves it, who has a goal in the log, and final returns",
        (
            Column("Algorithm"),
            Column("Depth"),
            Column("n"),
            Column("Solved fraction", 3, interval=False),
            Column("Goal in the log", 3, interval=False),
            Column("Tail return [95% CI]", 5),
            Column("Deepest majority solved"),
        ),
        tuple(rows),
        below(frame, READOUTS, ATLAS_DRAWS),
        tells_n=False,
    )


def counted(part: Estimate) -> Value:
    """Return a share as a count of lifetimes, such as ``11/15``."""
    return None if part.missing else f"{round(part.value * part.n)}/{part.n}"


def _deepest(found: Estimate) -> Value:
    """Return a depth as it is printed; that no depth was solved is an answer too."""
    return "none" if found.missing else int(found.value)
