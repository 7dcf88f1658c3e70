"""What is said about numbers, and what is not."""

from __future__ import annotations

import math

import pytest

from rulescope.audit import verdicts
from rulescope.audit.profile import NULL, RULE, WITHOUT
from rulescope.stats import Estimate


def around(value: float, half: float = 0.02, n: int = 6) -> Estimate:
    return Estimate(value, value - half, value + half, n=n)


def alone(value: float) -> Estimate:
    return Estimate(value, math.nan, math.nan, n=1, method="none")


def test_competence_is_told_with_those_it_can_be_told_from() -> None:
    said = verdicts.competence(
        {
            "score": {
                RULE: around(0.95),
                WITHOUT: around(0.94),
                NULL: around(0.0),
                "A2C": around(0.99, 0.01),
            }
        }
    )
    assert said == (
        "It becomes competent on Catch 8×8 (0.95 [0.93, 0.97]), better than its null rule, not to "
        "be told from itself without its history, worse than A2C."
    )


@pytest.mark.parametrize(
    ("score", "verb"),
    [
        (around(0.5), "does not become competent"),
        (around(0.8, 0.1), "may or may not become competent on Catch 8×8 (0.80 [0.70, 0.90])"),
        (alone(0.9), "reaches 0.90 on Catch 8×8, in too few seeds for an interval."),
    ],
)
def test_a_doubtful_score_is_told_with_its_doubt(score: Estimate, verb: str) -> None:
    assert verb in verdicts.competence({"score": {RULE: score}})


def test_without_intervals_no_arm_is_better_than_another() -> None:
    said = verdicts.competence({"score": {RULE: alone(1.0), NULL: alone(0.0)}})
    assert "than" not in said


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        (around(1.0, 0.5), "Its history widens the range (1.00 [0.50, 1.50])."),
        (around(-1.0, 0.5), "Its history narrows the range"),
        (around(0.1, 0.5), "No effect of the history can be told from chance"),
        (
            alone(2.0),
            "There are too few seeds to tell an effect of the history from chance (2.00).",
        ),
    ],
)
def test_an_effect_is_one_if_its_interval_leaves_out_zero(effect: Estimate, words: str) -> None:
    widths = {RULE: around(3.0), WITHOUT: around(2.0)}
    found = {"best": {RULE: alone(0.9)}, "half-best": widths, "contrast": {RULE: effect}}
    said = verdicts.scale(found)
    assert said.startswith(
        "It keeps at least half of its best score (0.90) over 3.0 decades of reward scale, over "
        "2.0 with its state pinned."
    )
    assert words in said


def test_who_learns_at_no_scale_has_no_range() -> None:
    found = {"best": {RULE: alone(math.nan)}, "half-best": {RULE: around(0.0)}}
    assert verdicts.scale(found).startswith("It scores above random play at no reward scale")


def test_boundaries_change_and_exploration_say_what_they_saw() -> None:
    told = {
        "told": {RULE: around(0.9)},
        "masked": {RULE: around(0.5)},
        "stream": {RULE: around(0.1)},
    }
    assert verdicts.boundaries(told) == (
        "It does worse when it is not told of episode ends. In a world that never resets it does "
        "not become competent (0.10 [0.08, 0.12])."
    )
    others = {name: around(0.2) for name in ("DQN", "DQN, replay cleared")}
    assert verdicts.change({"auc/action-flip": {RULE: around(0.4), **others}}) == (
        "After the action flip it averages 0.40 [0.38, 0.42], better than DQN and DQN with its "
        "replay cleared."
    )
    sea = {"found/8": {RULE: Estimate(2 / 3, 0.2, 0.9, n=3, method="wilson")}}
    assert verdicts.exploration(sea) == "In DeepSea 8, 2 of 3 found the goal."
    held = {"interaction/0.1": {RULE: around(0.3, 0.1)}}
    assert "hurts more when it is held" in verdicts.inheritance(held)
    doubtful = {"interaction/0.1": {RULE: around(0.0, 0.1)}}
    assert "No effect of holding a state" in verdicts.inheritance(doubtful)


def test_what_was_not_measured_is_not_judged() -> None:
    for verdict in (
        verdicts.competence,
        verdicts.scale,
        verdicts.inheritance,
        verdicts.boundaries,
        verdicts.change,
        verdicts.exploration,
    ):
        assert verdict({}) == verdicts.NOTHING
    assert verdicts.effects({}, {"a": "A − B"}) == verdicts.NOTHING


def test_effects_are_counted_and_named() -> None:
    titles = {"zero": "Freeway: live − without history", "rest": "Breakout: live − untrained"}
    found = {"zero": {RULE: around(-0.3)}, "rest": {RULE: around(0.0)}, "level": {RULE: around(1)}}
    assert verdicts.effects(found, titles) == (
        "1 of 2 differences can be told from chance: Freeway: live − without history −0.3000 "
        "[−0.3200, −0.2800]."
    )
    few = {key: {RULE: alone(0.3)} for key in titles}
    assert verdicts.effects(few, titles).startswith("There are too few seeds")
