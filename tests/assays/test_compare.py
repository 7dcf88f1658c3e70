"""Ours beside the published: judged only where both are of one rule, disagreements first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from named_rows import rows
from rulescope.assays import ASSAYS
from rulescope.assays.comparison import compare, remarks, table, tally
from rulescope.assays.published_agreement import AGREEMENT_RULE
from rulescope.assays.results import Results
from rulescope.stats import Estimate

KEY = "score/catch/live/0.001"  # published: 0.828 [0.553, 0.931], 12 seeds
UNIT = "score/catch/live/1"  # published: 0.994 [0.985, 0.999], 12 seeds
OURS = Results(
    assay="E1",
    budget="somebody's",
    axes={},
    seeds=12,
    estimates=rows("E1", {KEY: Estimate(0.9, 0.8, 0.95, 12)}),
    tables=(),
    iterations=ASSAYS["E1"].budget("paper").iterations,
)


def test_estimates_of_the_published_rule_are_judged() -> None:
    [row] = compare(OURS)
    assert (row.verdict, row.same_budget) == ("undecided", True)
    assert remarks(OURS, [row]) == [
        f"Of 1 comparison 0 are contradicted, 1 is undecided, 0 are reproduced. {AGREEMENT_RULE}"
    ]
    [higher] = compare(replace(OURS, estimates=rows("E1", {KEY: Estimate(0.99, 0.98, 1.0, 12)})))
    assert higher.verdict == "contradicted"


def test_disagreements_come_first_and_the_rule_stands_below() -> None:
    near, far = Estimate(0.994, 0.985, 0.999, 12), Estimate(0.2, 0.1, 0.3, 12)
    found = {UNIT: near, KEY: Estimate(0.9, 0.8, 0.95, 12), "score/catch/pin/1": far}
    compared = compare(replace(OURS, estimates=rows("E1", found)))
    assert [(row.key, row.verdict) for row in compared] == [
        ("score/catch/pin/1", "contradicted"),
        (KEY, "undecided"),
        (UNIT, "reproduced"),
    ]
    assert tally(compared) == {"contradicted": 1, "undecided": 1, "reproduced": 1}
    shown = table(OURS, compared)
    assert [row[0] for row in shown.rows] == [row.key for row in compared]
    assert [row[-1] for row in shown.rows] == [row.verdict for row in compared]
    assert AGREEMENT_RULE in shown.note


def test_the_seeds_of_a_cell_tell_whether_it_is_two_humped() -> None:
    key, seeds = "score/catch/pin/1000", np.array([0.0, 0.0, 0.0, 0.98, 0.99, 0.0, 1.0, 0.0])
    found = {key: Estimate(0.25, 0.0, 0.9956, 8)}
    [row] = compare(replace(OURS, estimates=rows("E1", found, {f"seeds/{key}": seeds})))
    assert row.verdict == "contradicted"
    [unknown] = compare(replace(OURS, estimates=rows("E1", found)))
    assert unknown.verdict == "undecided"


def test_shorter_lifetimes_are_not_judged() -> None:
    [row] = compare(replace(OURS, iterations=600))
    assert row.verdict == "other budget"
    assert not any(tally([row]).values())


def test_another_agent_is_no_replication() -> None:
    [row] = compare(replace(OURS, agent="historical"))
    assert row.verdict == "other agent"
    assert not any(tally([row]).values())


def test_baselines_have_no_agent_and_are_judged_under_any() -> None:
    values = {"auc/action-flip/catch/dqn": 0.049, "auc/action-flip/catch/rule": 0.563}
    ours = {key: Estimate(value, value - 0.01, value + 0.01, 18) for key, value in values.items()}
    ours["contrast/action-flip/100k"] = Estimate(0.5, 0.4, 0.6, 18, family=11)
    found = Results(
        "E3",
        "",
        {"condition": ("action-flip",), "task": ("catch",)},
        18,
        rows("E3", ours),
        (),
        iterations=3000,
        agent="historical",
    )
    verdicts = {row.key: row.verdict for row in compare(found)}
    assert verdicts == {
        "auc/action-flip/catch/dqn": "reproduced",
        "auc/action-flip/catch/rule": "other agent",
        "contrast/action-flip/100k": "other agent",
    }


def test_another_rule_is_no_replication() -> None:
    other = replace(OURS, rule="sprout", agent="")
    [row] = compare(other)
    assert (row.verdict, row.same_budget) == ("other rule", False)
    assert remarks(other, [row]) == [
        "The published values are of disco103, agent published.",
        "Ours do not have the published budget.",
    ]
    assert "disco103" in table(other, [row]).note
