"""Made-up records of claims: lifetimes of the published length whose score is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import numpy as np

from made_up_records import made_up
from rulescope.assays.estimates import Label
from rulescope.claims.ledger import Claim, select
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.episode_stats import HEADLINES
from rulescope.records import Record, Store
from rulescope.run_spec import RunSpec

Scores = Callable[[Mapping[str, Label], int], float]
"""The score of a lifetime from the labels of its cell and its seed."""
WIDE = 0.001
"""Differences between seeds, so that no interval is a point."""


def claim_of(name: str) -> Claim:
    [claim] = select([name])
    return claim


def scored(spec: RunSpec, score: float, seconds: float = 60.0) -> Record:
    """Return a made-up record of ``spec`` whose log has ``score`` in every row."""
    model = made_up(spec)
    rows = len(model.log["iteration"])
    flat = {name: np.full(rows, score) for name in HEADLINES}
    return Record.make(
        spec,
        {**model.log, **flat},
        model.state,
        source={"version": "made up", "commit": None, "dirty": None},
        runtime={"made up": True},
        rule=None,
        started=datetime(2000, 1, 1, tzinfo=UTC),
        seconds=seconds,
    )


def add_scores(
    store: Store, claim: Claim, seeds: range, score: Scores, agent: str | None = None
) -> None:
    """Put a record of every lifetime of ``claim`` with one of ``seeds`` into ``store``."""
    plans = RecordEvidence(None, agent)
    for cells in claim.cells:
        for cell in plans.plan(cells, seeds.stop).cells:
            for run in cell.runs:
                if run.seed in seeds and run.id not in store:
                    value = score(cell.labels, run.seed) + WIDE * (run.seed % 5)
                    store.commit(scored(run, value))
