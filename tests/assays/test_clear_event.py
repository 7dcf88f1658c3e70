"""The clearing of a replay is in the record, and E3 verifies it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rulescope.assays import ASSAYS, Selection, narrowed
from rulescope.assays.frame import Floats
from rulescope.assays.results import Results
from rulescope.learners.baseline_config import DQN, NetworkSizes
from rulescope.lifetime import Lifetime
from rulescope.run_spec import Reset, RunSpec

from .change_frames import recovering
from .lives import Labels, lived

ASSAY = ASSAYS["E3"]
BUDGET = narrowed(
    ASSAY,
    replace(ASSAY.budget("paper"), seeds=4),
    Selection(
        tasks=["catch"],
        conditions=["action-flip"],
        arms=["rule", "dqn", "dqn-cleared", "dqn-cleared-interactions"],
    ),
)


def analysed(uncleared: frozenset[int] = frozenset()) -> Results:
    """Return results in which some seeds of the cleared arm kept what they had stored."""

    def log(labels: Labels, seed: int, rows: Floats) -> dict[str, Floats]:
        found = recovering(labels, seed, rows)
        if labels["arm"] == "dqn-cleared" and seed in uncleared:
            found["stored"] = 58 * rows
        return found

    return ASSAY.analyse(lived(ASSAY, BUDGET, log))


def test_the_log_of_a_real_lifetime_shows_the_clearing() -> None:
    learner = DQN(agent=NetworkSizes(hidden=(8, 8)), batch=4, start=30)
    clear = (Reset(carrier="replay", at=4),)
    completed = [
        Lifetime(RunSpec(learner=learner, interventions=made, iterations=8, log_every=2))
        for made in (clear, ())
    ]
    for lifetime in completed:
        lifetime.run()
    cleared, kept = (lifetime.log()["stored"].tolist() for lifetime in completed)
    assert kept == [58 * row for row in (2, 4, 6, 8)]
    assert cleared == [58 * stored for stored in (2, 0, 2, 4)]


def test_the_analysis_verifies_the_clearing_of_every_lifetime() -> None:
    results = analysed()
    for arm in ("dqn-cleared", "dqn-cleared-interactions"):
        share = results.estimates[f"cleared/action-flip/catch/{arm}"]
        assert (share.value, share.n) == (1.0, 4)
    assert "cleared/action-flip/catch/dqn" not in results.estimates
    (table,) = (table for table in results.tables if table.label == "e3-clear-event")
    assert table.rows[0] == (
        "action flip",
        "DQN cleared",
        1500,
        "85,840",
        1520,
        "1,160",
        1160,
        "4/4",
    )
    assert not any("cleared" in note for note in results.notes)


def test_a_lifetime_that_was_not_cleared_is_found_out() -> None:
    results = analysed(uncleared=frozenset({1, 2}))
    share = results.estimates["cleared/action-flip/catch/dqn-cleared"]
    assert (share.value, share.n) == (0.5, 4)
    note = "the replay of 2 of 4 lifetimes was not cleared at iteration 1,500"
    assert f"action-flip/catch/dqn-cleared: {note}" in results.notes
    (table,) = (table for table in results.tables if table.label == "e3-clear-event")
    assert table.rows[0][5] == "1,160 to 88,160"
    assert table.rows[0][-1] == "2/4"


@pytest.mark.parametrize("column", [np.nan, None])
def test_a_log_without_the_size_of_the_replay_verifies_nothing(column: float | None) -> None:
    def log(labels: Labels, seed: int, rows: Floats) -> dict[str, Floats]:
        found = recovering(labels, seed, rows)
        found.pop("stored", None)
        return found if column is None else found | {"stored": np.full(len(rows), column)}

    results = ASSAY.analyse(lived(ASSAY, BUDGET, log))
    assert not any(key.startswith("cleared/") for key in results.estimates)
    assert all(table.label != "e3-clear-event" for table in results.tables)
