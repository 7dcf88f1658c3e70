"""Clearing of a replay, verified in the log: how much was stored before and after the switch.

The log of a DQN lifetime has the number of stored transitions. After a clearing it can only be the
number collected since then. So the record itself shows that the replay was emptied, and when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rulescope.assays.change.change_tables import ARM_NAMES, CONDITION_NAMES
from rulescope.assays.change.switch_readouts import switch_of
from rulescope.assays.estimates import Estimates, Label, join_labels
from rulescope.assays.frame import Bools, Floats, Frame
from rulescope.assays.results import Column, Table, Value
from rulescope.stats import wilson

CLEARED = ("dqn-cleared", "dqn-cleared-interactions")
"""Arms whose replay is cleared at the switch."""
COLUMN = "stored"


class ClearEvent(NamedTuple):
    """The clearing of one cell, lifetime by lifetime."""

    labels: Mapping[str, Label]
    """Of the cell."""
    at: int
    """Iteration after which the replay was to be cleared."""
    row: int
    """Iteration of the first log row after it."""
    expected: int
    """Transitions collected between the two."""
    before: Floats
    """[seeds]: transitions stored at the last log row before the switch. (The row of the switch
    itself has the number before the clearing in records of schema 1, after it in later ones.)"""
    after: Floats
    """[seeds]: transitions stored at ``row``."""

    @property
    def known(self) -> Bools:
        """[seeds]: whether the log has the size of the replay."""
        return np.isfinite(self.before) & np.isfinite(self.after)

    @property
    def verified(self) -> Bools:
        """[seeds]: whether the replay held what was collected since the switch and nothing else."""
        verified: Bools = self.known & (self.after == self.expected)
        return verified


def clear_events(frame: Frame) -> list[ClearEvent]:
    """Return the clearing of every planned cell that has one."""
    at = switch_of(frame)
    earlier, later = (
        frame.iteration[side] for side in (frame.iteration < at, frame.iteration > at)
    )
    if COLUMN not in frame.columns or not len(earlier) or not len(later):
        return []
    row, each = int(later[0]), frame.interactions // frame.iterations
    stored = frame.log(COLUMN)
    before, after = (stored[..., frame.iteration == time][..., 0] for time in (earlier[-1], row))
    return [
        ClearEvent(labels, at, row, (row - at) * each, before[place], after[place])
        for labels, place in frame.cells()
        if labels["arm"] in CLEARED
    ]


def estimates(events: Sequence[ClearEvent]) -> Estimates:
    """Return the share of lifetimes whose log shows the clearing, of those that log it."""
    found = Estimates()
    for event in events:
        if event.known.any():
            share = wilson(int(event.verified.sum()), int(event.known.sum()))
            found.add("cleared", share, event.labels)
    return found


def notes(events: Sequence[ClearEvent]) -> list[str]:
    """Return a note for each cell in which some lifetime was not cleared."""
    return [
        f"{join_labels(*event.labels.values())}: the replay of "
        f"{int((event.known & ~event.verified).sum())} of {int(event.known.sum())} lifetimes was "
        f"not cleared at iteration {event.at:,}"
        for event in events
        if (event.known & ~event.verified).any()
    ]


def table(events: Sequence[ClearEvent]) -> Table:
    """Return the clearing of every cell: what was stored before and after it, and in how many."""
    rows: list[tuple[Value, ...]] = [
        (
            CONDITION_NAMES[str(event.labels["condition"])].lower(),
            ARM_NAMES[str(event.labels["arm"])],
            event.at,
            _span(event.before),
            event.row,
            _span(event.after),
            event.expected,
            f"{int(event.verified.sum())}/{int(event.known.sum())}",
        )
        for event in events
        if event.known.any()
    ]
    return Table(
        "e3-clear-event",
        "The clearing of the replay, as the log of each lifetime shows it",
        (
            Column("Change"),
            Column("Condition"),
            Column("Cleared after iteration"),
            Column("Stored before"),
            Column("Next log row"),
            Column("Stored there"),
            Column("Collected since"),
            Column("Verified"),
        ),
        tuple(rows),
        "Stored: transitions in the replay. Verified: lifetimes in which exactly the transitions "
        "collected since the clearing are stored at the next log row: the replay was empty.",
    )


def _span(sizes: Floats) -> str:
    known = sizes[np.isfinite(sizes)]
    ends = dict.fromkeys(f"{int(size):,}" for size in (known.min(), known.max()))
    return " to ".join(ends)
