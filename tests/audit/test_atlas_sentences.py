"""The sentences of an atlas claim what the intervals support, and nothing from few seeds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from audit.made_up_profiles import ASSET, BURDEN, DEAD, HALF, NEITHER, made_up
from audit.test_atlas import atlas_of, one_line
from rulescope.audit.atlas_sentences import describe
from rulescope.audit.profile import ProfileValue


@pytest.fixture(scope="module")
def sentences() -> list[str]:
    made = atlas_of(
        made_up("asset", ASSET, seed=1),
        made_up("burden", BURDEN, seed=2),
        made_up("equal", NEITHER, seed=3),
        made_up("dead", DEAD, seed=4),
        made_up("half", HALF, 8, seed=9),
        made_up("a2c", NEITHER, history=False, seed=5),
    )
    assert describe(made) == made.sentences
    return list(made.sentences)


def test_histories_are_told_by_answer_with_the_places_that_decide(sentences: list[str]) -> None:
    asset = next(s for s in sentences if s.startswith("The history is an asset for asset (comp"))
    assert "competence: 0." in asset
    assert "reward scale at" in asset
    assert next(s for s in sentences if s.startswith("The history is a burden for burden ("))
    assert "No effect of the history, wherever an arm is competent, for equal." in sentences
    undecided = next(s for s in sentences if s.startswith("What the history does is undecided for"))
    assert "dead (neither arm is competent)" in undecided
    assert "half (the interval is too wide" in undecided
    assert "Without a history that could be an asset or a burden: a2c." in sentences


def test_competence_is_told_place_by_place(sentences: list[str]) -> None:
    assert (
        "Final score, Catch 8×8: competent: asset, equal, a2c; not competent: burden, dead; "
        "competent in part of the lifetimes: half."
    ) in sentences


def test_competence_is_told_budget_by_budget_and_world_by_world() -> None:
    elsewhere = replace(made_up("there", DEAD, seed=4), world="echo")
    made = atlas_of(
        made_up("short", NEITHER, seed=3, budget="60 iterations"),
        made_up("long", NEITHER, seed=3),
        elsewhere,
    )
    assert "Final score, Catch 8×8 (60 iterations): competent: short." in made.sentences
    assert "Final score, Catch 8×8 (600 iterations): competent: long." in made.sentences
    told = [s for s in made.sentences if s.endswith("in echo: not competent: there.")]
    assert told
    assert any("there in echo (neither arm is competent)" in s for s in made.sentences)


def test_an_interval_on_both_sides_of_the_threshold_decides_nothing() -> None:
    made = atlas_of(made_up("a2c", NEITHER, history=False))
    [score] = [row for row in made.rows if row.key == "score"]
    around = ProfileValue(0.8, 0.7, 0.9, 6, "bootstrap")
    doubtful = replace(made, rows=(replace(score, value=around),))
    assert "Final score, Catch 8×8: undecided: a2c." in describe(doubtful)


def test_ranks_are_told_only_where_the_difference_excludes_zero() -> None:
    made = atlas_of(
        one_line("better", [0.9, 0.91, 0.92, 0.9, 0.91]),
        one_line("worse", [0.1, 0.12, 0.11, 0.1, 0.1]),
        one_line("alike", [0.4, 0.6, 0.52, 0.45, 0.5]),
        one_line("a2c", [0.5, 0.5, 0.49, 0.51, 0.5]),
    )
    found = [s for s in made.sentences if "within seeds" in s]
    assert [s.partition(":")[0] for s in found] == [
        f"{rule} against a2c, within seeds" for rule in ("better", "worse", "alike")
    ]
    assert "higher in Score (0.41 [" in found[0]
    assert "lower in Score (−0.39 [" in found[1]
    assert found[2].endswith("no difference detected in 1 of 1 (the interval includes 0).")
    for row in made.rows:
        one = row.difference
        if one is not None:
            assert one.low is not None
            assert one.high is not None
            excluded = one.low > 0 or one.high < 0
            told = next(s for s in found if s.startswith(f"{row.rule} "))
            assert ("higher" in told or "lower" in told) is excluded


def test_few_seeds_support_no_claim_however_clear_they_look() -> None:
    made = atlas_of(made_up("mine", ASSET, 3), made_up("a2c", DEAD, 3, history=False))
    assert list(made.sentences) == [
        "What the history does is undecided for mine (too few seeds).",
        "Without a history that could be an asset or a burden: a2c.",
        "No claim about competence: too few seeds (3, 4 are needed).",
        "No claim about differences between rules: too few seeds (3, 4 are needed).",
    ]
