"""Tables of the discovery assay, with our numbers in them and only what was run."""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import CORE_DRAWS, below
from rulescope.assays.display_names import arm_name
from rulescope.assays.exploration.staircase_tables import counted
from rulescope.assays.frame import Frame
from rulescope.assays.results import Column, Table, Value
from rulescope.stats import Estimate

CHANCE = "random"
"""The arm that plays at random."""
CLOCKS = ("episodes", "interactions", "iterations")
FOUND = (
    "found: the goal was reached in at least one episode until the horizon (E-A5's \"goal in the "
    'log" misses goals between log rows), with 95 % Wilson intervals'
)


def tables(frame: Frame, made: Mapping[str, Estimate]) -> tuple[Table, ...]:
    """Return the published table and one of first goals, if they have a row."""
    cells = [
        (key.rsplit("/", 1)[1], key.split("/")[1])
        for key, found in made.items()
        if key.startswith("found/") and found.n
    ]
    return tuple(
        table for table in (_profile(frame, made, cells), _times(frame, made, cells)) if table.rows
    )


def _profile(frame: Frame, made: Mapping[str, Estimate], cells: list[tuple[str, str]]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for depth, arm in cells:
        found = made[f"found/{arm}/{depth}"]
        chance = made.get(f"chance/{depth}") if arm == CHANCE else None
        rows.append(
            (
                int(depth),
                arm_name(arm, frame.subject),
                counted(found),
                found,
                made[f"success/{arm}/{depth}"],
                chance,
            )
        )
    return Table(
        "tab:deepsea",
        "DeepSea: who finds the goal, and who reaches it in the end",
        (
            Column("Depth"),
            Column("Learner"),
            Column("Found"),
            Column("Share [Wilson CI]"),
            Column("Tail success [95% CI]"),
            Column("By chance, exact", 4),
        ),
        tuple(rows),
        below(
            frame,
            f"{FOUND}; tail success: share of episodes with a goal in the last fifth of a "
            "lifetime, integer-trimmed mean over seeds; by chance: 1 − (1 − 2^(1−N))^E at depth "
            "N, in the E episodes of a lifetime",
            CORE_DRAWS,
        ),
        tells_n=False,
    )


def _times(frame: Frame, made: Mapping[str, Estimate], cells: list[tuple[str, str]]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for depth, arm in cells:
        clocks = (made[f"first/{arm}/{depth}/{clock}"] for clock in CLOCKS)
        exact = made.get(f"chance-first/{depth}") if arm == CHANCE else None
        n = made[f"found/{arm}/{depth}"].n
        rows.append((int(depth), arm_name(arm, frame.subject), n, *clocks, exact))
    return Table(
        "deepsea-first-goals",
        "DeepSea: when the goal is first reached",
        (
            Column("Depth"),
            Column("Learner"),
            Column("n"),
            *(Column(f"{clock.capitalize()} [95% CI]", 0) for clock in CLOCKS),
            Column("Episodes by chance, exact", 0),
        ),
        tuple(rows),
        below(
            frame,
            "restricted mean: arithmetic mean over lifetimes, in which one without a goal counts "
            "with the horizon",
            CORE_DRAWS,
        ),
        tells_n=False,
    )
