"""E-A4x and E-A4m: grids, printed levels in and out, lifetimes that agree until the switch."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, Assay, Selection, gather, narrowed, published
from rulescope.assays.change.mapping import analyse
from rulescope.assays.change.switch_readouts import readouts
from rulescope.assays.comparison import compare
from rulescope.assays.frame import Floats
from rulescope.assays.subject import make_subject
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import ActionFlip, MinAtar, ObservationFlip, RewardSign
from rulescope.learners.baseline_config import A2C, PPO
from rulescope.learners.disco_config import AgentSizes, Disco
from rulescope.lifetime import Lifetime
from rulescope.run_spec import Freeze, RunSpec
from rulescope.stats import Estimate

from .change_frames import recovering
from .frames import bounds, drawn_seeds, our_name, trim
from .lives import Labels, lived

MAPPING, BREAKOUT = ASSAYS["E-A4x"], ASSAYS["E-A4m"]
BOTH = pytest.mark.parametrize("assay", [MAPPING, BREAKOUT], ids=["E-A4x", "E-A4m"])


@pytest.mark.parametrize(
    ("assay", "cells", "runs", "interactions"),
    [(MAPPING, 9, 108, 108 * 174_000), (BREAKOUT, 8, 144, 144 * 464_000)],
    ids=["E-A4x", "E-A4m"],
)
def test_the_paper_preset_has_the_published_size(
    assay: Assay, cells: int, runs: int, interactions: int
) -> None:
    made = assay.grid(assay.budget("paper"))
    whole = [run for cell in made for run in cell.runs]
    assert (len(made), len(whole), len({run.id for run in whole})) == (cells, runs, runs)
    assert sum(run.iterations * run.lanes * run.steps for run in whole) == interactions


def firsts(assay: Assay) -> dict[tuple[object, object], RunSpec]:
    cells = assay.grid(assay.budget("paper"))
    return {(cell.labels["condition"], cell.labels["arm"]): cell.runs[0] for cell in cells}


def test_changes_and_arms_of_the_mapping_assay() -> None:
    runs = firsts(MAPPING)
    assert runs["observation-flip", "rule"].change == ObservationFlip(at=1500)
    assert runs["reward-sign", "a2c"].change == RewardSign(at=1500)
    assert runs["none", "rule"].change is None
    assert runs["none", "rule-freeze"].interventions == (Freeze(carrier="recurrent", at=1000),)
    assert isinstance(runs["none", "a2c"].learner, A2C)
    assert {run.log_every for run in runs.values()} == {20}


def test_changes_and_arms_of_the_breakout_assay() -> None:
    runs = firsts(BREAKOUT)
    assert {run.environment for run in runs.values()} == {MinAtar(game="breakout")}
    assert runs["action-flip", "ppo"].change == ActionFlip(at=4000)
    frozen = runs["action-flip", "rule-freeze"]
    assert frozen.interventions == (Freeze(carrier="recurrent", at=2000),)
    for run in runs.values():
        assert isinstance(run.learner, Disco | A2C | PPO)
        assert run.learner.agent.torso == "channel"
        assert (run.iterations, run.log_every) == (8000, 40)


def test_what_nothing_changes_for_is_lived_once() -> None:
    """Disco without a change, live and frozen, is in E3 and in E-A4x."""
    e3 = ASSAYS["E3"]
    ids = [
        {run.id for cell in assay.grid(assay.budget("paper")) for run in cell.runs}
        for assay in (e3, MAPPING)
    ]
    assert len(ids[0] & ids[1]) == 2 * 12


@BOTH
def test_short_lifetimes_and_other_scales_are_refused(assay: Assay) -> None:
    budget = assay.budget("paper")
    few = narrowed(assay, budget, Selection(iterations=budget.log_every))
    with pytest.raises(SpecError, match=f"nearest: {2 * budget.log_every}"):
        assay.grid(few)
    with pytest.raises(SpecError, match=f"--scales: {assay.id}"):
        assay.grid(narrowed(assay, budget, Selection(scales=[0.1])))


def shaped(pre: float, area: float, end: float, rows: Floats) -> Floats:
    """Return a log with this level before the switch, this area after it and this last row."""
    last, every = rows[-1], rows[0]
    half = last / 2
    weights = np.where(rows >= half, every, 0.0)
    weights[rows == half] = weights[rows == last] = every / 2
    between = (rows > half) & (rows < last)
    rest = area * half - pre * weights[rows == half].sum() - end * weights[rows == last].sum()
    level = rest / weights[between].sum()
    return np.where(rows <= half, pre, np.where(rows == last, end, level))


@BOTH
def test_printed_levels_come_back_as_they_are(assay: Assay) -> None:
    known = published.estimates(assay.id)
    (column,) = assay.columns

    def log(labels: Labels, _seed: int, rows: Floats) -> dict[str, Floats]:
        name = f"{labels['condition']}/{labels['arm']}"
        levels = [known[f"{kind}/{name}"].value for kind in ("pre", "auc", "endpoint")]
        return {column: shaped(levels[0], levels[1], levels[2], rows)}

    results = assay.analyse(lived(assay, assay.budget("paper"), log))
    compared = compare(results)
    assert {one.key for one in compared} == set(known)
    for one in compared:
        assert one.same_budget, one.key
        assert one.ours.value == pytest.approx(one.published.value), one.key
    (table,) = results.tables
    printed = printed_tables.tables()[table.label]
    assert len(table.rows) == len(printed.rows)
    for row, theirs in zip(table.rows, printed, strict=True):
        assert row[:2] == (theirs["Change"], our_name(theirs["Condition"]))
        mine = [cell.value for cell in row if isinstance(cell, Estimate)]
        assert mine == pytest.approx(
            [theirs["Pre"], theirs["Post-switch AUC [95% CI]"][0], theirs["Endpoint [95% CI]"][0]]
        )


def test_printed_endpoints_are_whole_episodes_of_one_row() -> None:
    """Six of twelve seeds are kept, a window has 100 episodes, the references span 1.75."""
    unit = 0.02 / 1.75 / 6
    ends = printed_tables.scalars()["mapping_endpoints"]
    for change in ends.values():
        for value in change.values():
            assert (1 - value) / unit == pytest.approx(round((1 - value) / unit), abs=0.03)


def test_printed_levels_before_the_switch_do_not_depend_on_what_comes_after_it() -> None:
    known = published.estimates("E-A4x")
    for arm in ("rule", "rule-freeze", "a2c"):
        levels = {known[f"pre/{condition}/{arm}"].value for condition in CHANGES}
        assert len(levels) == 1


CHANGES = ("observation-flip", "reward-sign", "none")


@BOTH
def test_estimates_are_those_of_plain_loops(assay: Assay) -> None:
    budget = replace(assay.budget("paper"), seeds=5, iterations=800)
    frame = lived(assay, budget, recovering)
    results = assay.analyse(frame)
    (column,) = assay.columns
    arm, condition = budget.arms[-1], budget.conditions[0]
    log = frame.log(column, condition=condition, arm=arm)
    after = frame.iteration > 400
    before = frame.iteration <= 400
    each = {
        "pre": [float(np.mean(run[before][-5:])) for run in log],
        "trough": [float(run[after].min()) for run in log],
        "endpoint": [float(run[-1]) for run in log],
    }
    for name, values in each.items():
        ours = results.estimates[f"{name}/{condition}/{arm}"]
        assert ours.value == pytest.approx(trim(values))
        every = [trim([values[i] for i in block]) for block in drawn_seeds(5)]
        assert (ours.low, ours.high) == pytest.approx(bounds(every))
    assert results.series["switch"].item() == 400
    assert results.series[f"trajectory/{condition}/{arm}"].shape == (3, len(frame.iteration))


@pytest.mark.parametrize("name", ["E3", "E-A4x", "E-A4m"])
def test_nothing_at_all_can_be_analysed_too(name: str) -> None:
    assay = ASSAYS[name]
    results = assay.analyse(lived(assay, assay.budget("smoke"), lambda *_: None))
    assert results.estimates
    assert all(np.isnan(found.value) for found in results.estimates.values())
    assert "lifetimes are missing" in results.notes[0]


def tiny(run: RunSpec) -> RunSpec:
    """Return ``run`` with a learner that learns from its second iteration on, and fast."""
    if not isinstance(run.learner, Disco):
        return run
    sizes = AgentSizes(hidden=(16, 16), model=8, head=8)
    learner = msgspec.structs.replace(run.learner, agent=sizes, batch=4)
    return msgspec.structs.replace(run, learner=learner)


def test_lifetimes_are_the_same_to_the_bit_until_the_switch() -> None:
    """And so is, exactly, their level before it; after it they go their own ways."""
    arms = ("rule", "a2c")
    budget = replace(
        MAPPING.budget("paper"),
        seeds=1,
        iterations=8,
        log_every=1,
        arms=arms,
        subject=make_subject("random:3"),
    )
    cells = [
        cell._replace(runs=tuple(tiny(run) for run in cell.runs)) for cell in MAPPING.grid(budget)
    ]
    records = {}
    for run in (run for cell in cells for run in cell.runs):
        life = Lifetime(run)
        life.run()
        records[run.id] = life.record()
    frame = gather(cells, records.get, columns=("score", "gradient_norm"), states=())
    levels = readouts(frame)["pre"]
    for arm in arms:
        for column in ("score", "gradient_norm"):
            logs = [frame.log(column, condition=change, arm=arm)[0] for change in CHANGES]
            assert np.isfinite(logs[0][1:]).all()
            for other in logs[1:]:
                assert other[:4].tobytes() == logs[0][:4].tobytes()
        for first, second in ((0, 1), (0, 2), (1, 2)):
            assert logs[first][4:].tolist() != logs[second][4:].tolist()
        place = frame.axes["arm"].index(arm)
        assert len(set(levels[:, place, 0].tolist())) == 1
    assert analyse(frame).estimates["pre/none/a2c"].value == levels[2, 1, 0]
