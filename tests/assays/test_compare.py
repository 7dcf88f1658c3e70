"""Ours beside the published: intervals are judged only where both are of one rule."""

from __future__ import annotations

from dataclasses import replace

from rulescope.assays import ASSAYS
from rulescope.assays.compare import compare, remarks, table
from rulescope.assays.results import Results
from rulescope.stats import Estimate

KEY = "score/catch/live/0.001"  # published: 0.828 [0.553, 0.931], 12 seeds
OURS = Results(
    assay="E1",
    budget="somebody's",
    axes={},
    seeds=12,
    estimates={KEY: Estimate(0.9, 0.8, 0.95, 12)},
    tables=(),
    iterations=ASSAYS["E1"].budget("paper").iterations,
)


def test_intervals_of_the_published_rule_are_judged() -> None:
    [row] = compare(OURS)
    assert (row.overlap, row.same_budget) == (True, True)
    assert remarks(OURS, [row]) == ["1 of 1 pairs of intervals overlap."]
    [higher] = compare(replace(OURS, estimates={KEY: Estimate(0.99, 0.98, 1.0, 12)}))
    assert higher.overlap is False


def test_another_rule_is_no_replication() -> None:
    other = replace(OURS, rule="sprout", profile="")
    [row] = compare(other)
    assert (row.overlap, row.same_budget) == (None, False)
    assert remarks(other, [row]) == [
        "The published values are of disco103, profile published.",
        "Ours do not have the published budget.",
    ]
    assert "disco103" in table(other, [row]).note
