"""The places of an answer are found in what the assays of an audit really return."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from assays.lives import lived
from rulescope.assays import PRESETS
from rulescope.assays.estimates import Label
from rulescope.assays.frame import Floats
from rulescope.assays.results import Results
from rulescope.assays.subject import make_subject
from rulescope.audit import audit_plan, evidence, history_answer, optimiser_profile, profile_axes
from rulescope.audit.profile import PINNED, RULE
from rulescope.run_spec import RunSpec

WITHOUT = ("pin", "rule-pin", "rule-freeze")
"""Arms that lack the history, in part or wholly: those that score 0.1 here; others score 0.95."""


def run(preset: str, seeds: int | None = None) -> dict[str, Results]:
    """Return the results of an audit in which lifetimes without the history learn nothing.

    Until a change a frozen arm is as good as any.
    """
    draws = np.random.default_rng(0)

    def log(labels: Mapping[str, Label], _: int, rows: Floats) -> dict[str, float | Floats]:
        arm = labels["arm"]
        level = np.where(
            (arm == "rule-freeze") & (rows <= rows[-1] / 2), 0.95, 0.1 if arm in WITHOUT else 0.95
        )
        scores = level + draws.normal(0, 0.01)
        columns = ("score", "rate_score", "mean_return")
        return {**dict.fromkeys(columns, scores), "steps": 58 * rows, "episodes": 8 * rows}

    return {
        assay.id: assay.analyse(lived(assay, budget, log))
        for assay, budget in audit_plan.budgets(make_subject("sprout"), preset, seeds=seeds)
    }


@pytest.mark.parametrize(
    ("preset", "places"),
    [
        (
            "quick",
            {("competence", 1), ("reward scale", 4), ("streams", 3), ("change", 1)},
        ),
        (
            "standard",
            {("competence", 2), ("reward scale", 7), ("streams", 3), ("change", 2)},
        ),
    ],
)
def test_every_place_with_and_without_the_history_is_compared(
    preset: str, places: set[tuple[str, int]]
) -> None:
    made = evidence.comparisons(run(preset))
    axes = [one.axis for one in made]
    assert {(axis, axes.count(axis)) for axis in axes} == places
    assert {one.difference.family for one in made} == {len(made)}
    assert {one.result for one in made} == {"asset"}
    assert history_answer.answer(made).verdict == "asset"
    frozen = {one.against for one in made if one.axis == "change"}
    assert frozen == {f"frozen at iteration {333 if preset == 'quick' else 1000}"}
    assert {one.against for one in made if one.axis != "change"} == {PINNED}


def test_pinned_and_frozen_have_columns_of_their_own() -> None:
    axes = {axis.name: axis for axis in profile_axes.axes_of(run("quick"))}
    change = {name for one in axes["Change and replay"].measures for name in one.figures}
    assert "frozen at iteration 333" in change
    assert PINNED not in change
    others = {
        name
        for axis in axes.values()
        if axis.name != "Change and replay"
        for one in axis.measures
        for name in one.figures
    }
    assert PINNED in others
    assert not any(name.startswith("frozen") for name in others)
    scores = axes["Competence and pace"].measures[0]
    assert set(scores.differences) == set(scores.figures) - {RULE}


@pytest.mark.parametrize("preset", PRESETS)
def test_scores_of_every_column_are_compared_within_seeds(preset: str) -> None:
    found = run(preset, seeds=1)
    for axis in profile_axes.axes_of(found):
        for one in axis.measures:
            if one.unit == "score" and not one.difference:
                assert set(one.differences) == set(one.figures) - {RULE}, (axis.name, one.key)


def optimised(
    rates: Mapping[str, float], spread: float = 0.001, preset: str = "quick"
) -> dict[str, Results]:
    """Return the results of OPEN's audit, whose policies earn ``rates`` by arm."""
    draws = np.random.default_rng(0)
    ((assay, budget),) = audit_plan.budgets(make_subject("open"), preset)

    def state(labels: Mapping[str, Label], run: RunSpec) -> dict[str, Floats]:
        assert run.evaluation is not None
        earned = {"terminal": str(labels["arm"]), "initial": "initial", "random": "random"}
        return {
            f"evaluation.{policy}/reward": np.full(
                4, (rates[arm] + draws.normal(0, spread)) * run.evaluation.steps
            )
            for policy, arm in earned.items()
        }

    return {assay.id: assay.analyse(lived(assay, budget, lambda *_: {}, state))}


UNTRAINED = {"initial": 0.005, "random": 0.004, "adam": 0.05}


def test_an_optimiser_is_judged_against_its_untrained_policy() -> None:
    asset = optimised({**UNTRAINED, "live": 0.08, "zero": 0.02, "reset": 0.07})
    [one] = optimiser_profile.comparisons(asset)
    assert (one.result, one.axis, one.place) == ("asset", "Breakout", "at scale 1")
    assert history_answer.answer([one]).sentence.startswith(
        "History: asset (decided by Breakout at scale 1: live − pinned 0.06"
    )
    burden = optimised({**UNTRAINED, "live": 0.004, "zero": 0.08, "reset": 0.004})
    assert optimiser_profile.comparisons(burden)[0].result == "burden"
    dead = optimised({**UNTRAINED, "live": 0.005, "zero": 0.003, "reset": 0.005})
    [one] = optimiser_profile.comparisons(dead)
    assert (one.result, one.reason) == ("undecided", history_answer.GATE_FAILED)
    axes = {axis.name: axis for axis in optimiser_profile.axes_of(dead)}
    said = axes["Inheritance"].verdict
    assert said.startswith("Capability gate passed in 0 of 1 cells")
    assert said.endswith("The differences there are not read.")


def test_the_difference_of_an_optimiser_has_one_interval_on_its_axis_and_in_the_answer() -> None:
    """The interval of the axis left out zero where that of the answer included it."""
    found = optimised({**UNTRAINED, "live": 0.08, "zero": 0.07, "reset": 0.07}, spread=0.01)
    [one] = optimiser_profile.comparisons(found)
    axes = {axis.name: axis for axis in optimiser_profile.axes_of(found)}
    lines = {each.key: each.figures[RULE] for each in axes["Inheritance"].measures}
    line = lines["live-minus-zero/gymnax-breakout/1"]
    assert (line.low, line.high) == (one.difference.low, one.difference.high)


def test_every_difference_of_an_optimiser_is_as_wide_as_its_seeds_require() -> None:
    found = optimised({**UNTRAINED, "live": 0.08, "zero": 0.07, "reset": 0.07}, 0.01, "paper")
    measures = [
        m for axis in optimiser_profile.axes_of(found) for m in axis.measures if m.difference
    ]
    kinds = {measure.key.partition("/")[0] for measure in measures}
    assert kinds == {"learned", "interaction", "live-minus-zero", "reset-minus-live"}
    for measure in measures:
        kind, _, place = measure.key.partition("/")
        key = f"live-minus-initial/{place}/1" if kind == "learned" else measure.key
        planned, shown = found["OPEN"].estimates[key], measure.figures[RULE]
        assert shown.low is not None
        assert shown.high is not None
        assert shown.high - shown.low > planned.high - planned.low, measure.key


def test_both_arms_of_an_optimiser_pass_one_gate() -> None:
    """The pinned arm is above its untrained policy, yet not above the random one."""
    rates = {**UNTRAINED, "random": 0.05, "live": 0.004, "zero": 0.03, "reset": 0.004}
    [one] = optimiser_profile.comparisons(optimised(rates))
    assert (one.result, one.reason) == ("undecided", "neither arm passes the capability gate")


def test_a_burden_of_an_optimiser_is_read_on_its_axis_too() -> None:
    found = optimised({**UNTRAINED, "live": 0.004, "zero": 0.08, "reset": 0.004})
    axes = {axis.name: axis for axis in optimiser_profile.axes_of(found)}
    assert "Breakout, scale 1: live − pinned −0.07" in axes["Inheritance"].verdict
    assert "only live − pinned is read, where pinned passes" in axes["Inheritance"].verdict
    assert "live − pinned is read" not in axes["Competence and pace"].verdict
