"""Frames of made-up lifetimes: each logs what a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import cast

import numpy as np

from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.estimates import Label
from rulescope.assays.frame import Floats, Frame, gather
from rulescope.records import Record
from rulescope.run_spec import RunSpec

Labels = Mapping[str, Label]


def lived(
    assay: Assay,
    budget: Budget,
    log: Callable[[Labels, int, Floats], Mapping[str, float | Floats] | None],
    state: Callable[[Labels, RunSpec], Mapping[str, Floats]] = lambda _labels, _run: {},
) -> Frame:
    """Return the frame of ``assay`` in which ``log`` says what lifetimes logged.

    It is given the labels of the cell, the seed and the iterations of the rows [rows], and returns
    columns; a number stands in every row. None: the lifetime is missing. ``state`` says what
    records hold besides.
    """
    cells = assay.grid(budget)
    known: dict[str, tuple[Labels, RunSpec]] = {
        run.id: (cell.labels, run) for cell in cells for run in cell.runs
    }

    def read(key: str) -> Record | None:
        labels, run = known[key]
        rows = np.arange(run.log_every, run.iterations + 1, run.log_every, dtype=np.float64)
        columns = log(labels, run.seed, rows)
        if columns is None:
            return None
        whole = {name: np.broadcast_to(values, rows.shape) for name, values in columns.items()}
        log_of = {"iteration": rows, **whole}
        return cast("Record", SimpleNamespace(log=log_of, state=state(labels, run)))

    return gather(
        cells,
        read,
        columns=assay.columns,
        episodes=budget.episodes,
        states=assay.states,
        rule=budget.subject.rule,
        agent=budget.agent,
    )
