"""What is said about numbers, and what is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rulescope.audit import axis_sentences, history_answer
from rulescope.audit.profile import NULL, PINNED, RULE, Groups, Measure, ProfileValue, Scales

FREEZE = "frozen at iteration 1000"
DEAD, SINGLE = Scales("none"), Scales("singleton", 1.0, 1.0)


def around(value: float, half: float = 0.02, n: int = 6) -> ProfileValue:
    return ProfileValue(value, value - half, value + half, n, "bootstrap")


def alone(value: float, n: int = 1) -> ProfileValue:
    return ProfileValue(value, None, None, n, "none")


def line(
    key: str, figures: dict[str, ProfileValue], differences: dict[str, ProfileValue] | None = None
) -> Measure:
    unit = "decades" if key.startswith("contrast/") else "score"
    return Measure(key, key, unit, figures, "E1", differences=differences or {})


def lines(**figures: dict[str, ProfileValue]) -> dict[str, Measure]:
    return {key: line(key, found) for key, found in figures.items()}


def test_competence_is_told_with_paired_differences() -> None:
    """Marginal intervals of the first two overlap; their difference within seeds does not."""
    score = line(
        "score",
        {
            RULE: around(0.9, 0.1),
            PINNED: around(0.85, 0.1),
            NULL: around(0.0),
            "A2C": around(0.99, 0.01),
        },
        {PINNED: around(0.05, 0.01), NULL: around(0.9, 0.1), "A2C": around(-0.09, 0.1)},
    )
    assert axis_sentences.competence({"score": score}) == (
        "It becomes competent on Catch 8×8 (0.90 [0.80, 1.00]), better than its null rule, "
        "indistinguishable from A2C, no effect relative to itself with its state pinned."
    )


@pytest.mark.parametrize(
    ("live", "pinned", "difference", "words"),
    [
        (0.95, 0.5, around(0.45), "better than itself"),
        (0.5, 0.95, around(-0.45), "worse than itself"),
        (0.9, 0.85, around(0.05, 0.02), "no effect relative to itself"),
        (0.9, 0.82, around(0.08, 0.06), "undecided relative to itself"),
        (0.7, 0.85, around(0.2), "undecided relative to itself"),
        (0.9, 0.85, around(0.05, 0.3), "indistinguishable from itself"),
    ],
)
def test_a_rule_is_compared_with_itself_by_the_margin_of_the_answer(
    live: float, pinned: float, difference: ProfileValue, words: str
) -> None:
    """The sentence was "better than itself" beside the answer "neither"."""
    score = line("score", {RULE: around(live), PINNED: around(pinned)}, {PINNED: difference})
    said = axis_sentences.competence({"score": score})
    assert f", {words} with its state pinned." in said
    result, _ = history_answer.judge(live >= 0.8, pinned >= 0.8, difference)
    assert ("better" in said, "worse" in said) == (result == "asset", result == "burden")


def test_a_verdict_is_made_of_the_measures_that_were_run() -> None:
    """Above measured numbers stood "Not measured."."""
    long = lines(long={RULE: around(0.9)})
    assert axis_sentences.competence(long) == (
        "It becomes competent on Catch 24×24 (0.90 [0.88, 0.92])."
    )
    stream = lines(stream={RULE: around(0.1)})
    assert axis_sentences.boundaries(stream) == (
        "In a world that never resets it does not become competent (0.10 [0.08, 0.12])."
    )


def test_a_dead_rule_is_not_compared_with_its_dead_pinned_self() -> None:
    score = line(
        "score",
        {RULE: around(0.1), PINNED: around(0.05), "A2C": around(0.9)},
        {PINNED: around(0.05, 0.01), "A2C": around(-0.8)},
    )
    assert axis_sentences.competence({"score": score}) == (
        "It does not become competent on Catch 8×8 (0.10 [0.08, 0.12]), worse than A2C."
    )


@pytest.mark.parametrize(
    ("score", "verb"),
    [
        (around(0.5), "does not become competent"),
        (around(0.8, 0.1), "may or may not become competent on Catch 8×8 (0.80 [0.70, 0.90])"),
        (alone(0.9), "reaches 0.90 on Catch 8×8, in too few seeds for an interval."),
    ],
)
def test_a_doubtful_score_is_told_with_its_doubt(score: ProfileValue, verb: str) -> None:
    assert verb in axis_sentences.competence(lines(score={RULE: score}))


def test_few_seeds_rank_nothing() -> None:
    figures = {RULE: around(1.0, n=3), NULL: around(0.0, n=3)}
    score = line("score", figures, {NULL: around(1.0, n=3)})
    assert axis_sentences.competence({"score": score}).endswith(
        "with too few seeds for comparisons (3, 4 are needed)."
    )


def test_two_groups_of_lifetimes_are_named_instead_of_their_mean() -> None:
    humped = replace(around(0.36, 0.3, n=8), groups=Groups(5, 3, 0.02, 0.97))
    said = axis_sentences.competence(lines(score={RULE: humped}))
    assert said == (
        "It learns in part of its lifetimes on Catch 8×8: 3 of 8 lifetimes learned (mean 0.97); "
        "5 stayed near 0."
    )
    after = {"pre/flip": line("pre/flip", {RULE: around(0.9)})}
    after["auc/flip"] = line("auc/flip", {RULE: replace(humped, groups=Groups(5, 3, 0.3, 0.7))})
    assert (
        "averages 0.36 (3 of 8 lifetimes reached 0.70; 5 stayed at 0.30)"
        in axis_sentences.change(after)
    )


def scales(
    best: tuple[float, float], fixed: tuple[Scales, Scales], contrast: ProfileValue
) -> dict[str, Measure]:
    columns = (RULE, PINNED)
    widths = {
        c: replace(around(2.0, 0.3) if w.kind == "interval" else around(0.0, 0.0), window=w)
        for c, w in zip(columns, fixed, strict=True)
    }
    figures = {c: around(b) for c, b in zip(columns, best, strict=True)}
    return {
        "best": line("best", figures),
        "0.8": line("0.8", widths),
        "half-best": line("half-best", widths),
        "contrast/0.8": line("contrast/0.8", {RULE: contrast}),
    }


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        (around(1.0, 0.5), "Its history widens this range (1.00 [0.50, 1.50])."),
        (
            replace(around(1.0, 0.5, n=8), family=11),
            "There are too few seeds to judge an effect of the history on the width of this range "
            "(8, 9 are needed).",
        ),
        (around(-1.0, 0.5), "Its history narrows this range"),
        (around(0.1, 0.5), "No effect of the history on the width of this range was detected"),
        (
            around(2.0, 0.1, n=3),
            "There are too few seeds to judge an effect of the history on the width of this range "
            "(3, 6 are needed).",
        ),
    ],
)
def test_the_fixed_criterion_leads_and_an_effect_leaves_out_zero(
    effect: ProfileValue, words: str
) -> None:
    wide = Scales("interval", 0.1, 10.0)
    said = axis_sentences.scale(scales((0.9, 0.85), (wide, SINGLE), effect))
    assert said.startswith(
        "It is competent (score ≥ 0.8) from 0.1 to 10 (2.0 [1.7, 2.3] decades), and at 1 alone "
        "(0.0 [0.0, 0.0] decades) with its state pinned. "
    )
    assert words in said
    assert said.endswith(
        "It keeps half of its best score (0.90) from 0.1 to 10 (2.0 [1.7, 2.3] decades), pinned at "
        "1 alone (0.0 [0.0, 0.0] decades)."
    )


def test_a_pinned_arm_that_learns_nothing_has_no_window() -> None:
    """The sentence was: its history narrows the range (−3.00 [−3.00, −3.00])."""
    found = scales((0.95, 0.08), (SINGLE, DEAD), around(0.0, 0.0))
    found["best"] = line("best", dict(found["best"].figures), {PINNED: around(0.87)})
    said = axis_sentences.scale(found)
    assert "at 1 alone (0.0 [0.0, 0.0] decades), and at no scale with its state pinned" in said
    assert "It is competent only with its history (0.87 [0.85, 0.89])." in said
    burden = scales((0.08, 0.95), (DEAD, SINGLE), around(0.0, 0.0))
    burden["best"] = line("best", dict(burden["best"].figures), {PINNED: around(-0.87)})
    assert (
        "It is competent only without its history (−0.87 [−0.89, −0.85])."
        in axis_sentences.scale(burden)
    )


def test_two_arms_at_the_threshold_are_not_told_apart_by_it() -> None:
    """The sentence was: it is competent only with its history (0.02 [0.02, 0.02])."""
    found = scales((0.81, 0.79), (SINGLE, DEAD), around(0.0, 0.0))
    found["best"] = line("best", dict(found["best"].figures), {PINNED: around(0.02, 0.0)})
    assert (
        "Both arms lie at the threshold (best score 0.81, pinned 0.79; difference 0.02 [0.02, "
        "0.02]), so nothing is attributed to its history."
    ) in axis_sentences.scale(found)
    found["best"] = line("best", dict(found["best"].figures), {PINNED: around(0.2, 0.5)})
    assert "is undecided: the interval is too wide (0.20 [−0.30, 0.70])." in axis_sentences.scale(
        found
    )
    found["best"] = line("best", dict(found["best"].figures), {PINNED: around(0.2, 0.1, n=3)})
    assert "too few seeds to judge an effect of the history on the best" in axis_sentences.scale(
        found
    )


def test_a_width_of_one_seed_says_so() -> None:
    one = replace(alone(2.0), window=Scales("interval", 0.1, 10.0))
    found = {"best": line("best", {RULE: alone(0.9)}), "0.8": line("0.8", {RULE: one})}
    assert axis_sentences.scale(found) == (
        "It is competent (score ≥ 0.8) from 0.1 to 10 (2.0 decades, 1 seed)."
    )


def test_nothing_is_said_of_the_history_of_a_rule_without_a_pinned_arm() -> None:
    """The sentence was: the difference could not be estimated."""
    found = lines(best={RULE: around(0.1)}, **{"0.8": {RULE: around(0.0, 0.0)}})
    assert "history" not in axis_sentences.scale(found)
    found["best"] = line("best", {RULE: around(0.9)})
    said = axis_sentences.scale(found)
    assert "history" not in said
    assert "could not be estimated" not in said


def test_a_rule_that_is_competent_nowhere_has_no_window_and_no_history_verdict() -> None:
    said = axis_sentences.scale(scales((0.09, 0.05), (DEAD, DEAD), alone(0.0)))
    assert said == (
        "It is competent at no reward scale (best score: it 0.09 and pinned 0.05; 0.8 is "
        "competent), so it has no window, and nothing is attributed to its history."
    )


def test_boundaries_are_judged_where_the_rule_is_competent() -> None:
    told = lines(
        told={RULE: around(0.9)},
        masked={RULE: around(0.5)},
        ends={RULE: around(0.4)},
        stream={RULE: around(0.1)},
    )
    assert axis_sentences.boundaries(told) == (
        "It does worse when episode ends are not reported (0.40 [0.38, 0.42]). In a world that "
        "never resets it does not become competent (0.10 [0.08, 0.12])."
    )
    dead = lines(told={RULE: around(0.2)}, masked={RULE: around(0.1)}, ends={RULE: around(0.1)})
    assert axis_sentences.boundaries(dead) == (
        "It is not competent (score ≥ 0.8) with reported episode ends (0.20) or without (0.10), so "
        "no effect of them is judged."
    )


def test_recovery_is_judged_only_of_a_rule_that_was_competent_before() -> None:
    columns = {"DQN": around(0.2), "DQN, replay cleared": around(0.2), FREEZE: around(0.1)}
    after = line(
        "auc/action-flip",
        {RULE: around(0.4), **columns},
        {name: around(0.2) for name in columns},
    )
    found = {"auc/action-flip": after, "pre/action-flip": line("pre", {RULE: around(0.95)})}
    assert axis_sentences.change(found) == (
        "After the action flip it averages 0.40 [0.38, 0.42], better than DQN, DQN with its replay "
        "cleared and itself with its state frozen at iteration 1000."
    )
    before = {RULE: around(0.1), FREEZE: around(0.1), "DQN": around(0.9)}
    found["pre/action-flip"] = line("pre", before)
    assert axis_sentences.change(found) == (
        "Before the action flip it is not competent (0.10 [0.08, 0.12]; 0.8 is competent), so its "
        "recovery is not judged."
    )


def test_a_planned_difference_is_judged_by_the_interval_that_is_printed_of_it() -> None:
    after = line("auc/flip", {RULE: around(0.4), "DQN": around(0.2)}, {"DQN": around(0.2)})
    found = {"auc/flip": after, "pre/flip": line("pre", {RULE: around(0.95)})}
    assert "better than DQN" in axis_sentences.change(found)
    found["100k/flip"] = line("100k/flip", {RULE: around(0.2, 0.5)})  # its interval includes zero
    assert "indistinguishable from DQN" in axis_sentences.change(found)


def test_a_change_is_judged_where_only_the_frozen_arm_was_competent() -> None:
    """The answer says burden there; the axis said that recovery is not judged."""
    scores = {RULE: around(0.2), FREEZE: around(0.7), "DQN": around(0.5)}
    after = line("auc/flip", scores, {FREEZE: around(-0.5), "DQN": around(-0.3)})
    before = line("pre/flip", {RULE: around(0.1), FREEZE: around(0.9), "DQN": around(0.9)})
    assert axis_sentences.change({"auc/flip": after, "pre/flip": before}) == (
        "Before the flip it is not competent (0.10 [0.08, 0.12]; 0.8 is competent); with its state "
        "frozen at iteration 1000 it is (0.90 [0.88, 0.92]). After the flip it averages 0.20 "
        "[0.18, 0.22], worse than itself with its state frozen at iteration 1000."
    )


def test_exploration_and_inheritance_say_what_they_saw() -> None:
    sea = {"found/8": line("found/8", {RULE: ProfileValue(2 / 3, 0.2, 0.9, 3, "wilson")})}
    assert axis_sentences.exploration(sea) == "In DeepSea 8, 2 of 3 have the goal in the log."

    def held(effect: ProfileValue, natural: float, clamp: float) -> str:
        keys = {"interaction/0.1": effect, "live/0.1": around(0.9)}
        keys |= {"match-natural/0.1": around(natural), "match-clamp/0.1": around(clamp)}
        return axis_sentences.inheritance(
            {key: line(key, {RULE: one}) for key, one in keys.items()}
        )

    assert "hurts more when it is held" in held(around(0.3, 0.1), 0.9, 0.9)
    assert held(around(0.3, 0.1), 0.6, 0.9) == (
        "At scale 0.1: the arm that starts from a donor of its scale (0.60) is not competent "
        "(score ≥ 0.8), so nothing is attributed to the state."
    )
    assert "was detected: the interval includes 0" in held(around(0.0, 0.1), 0.9, 0.9)
    assert "the interval lies within ±0.1" in held(around(0.05, 0.01), 0.9, 0.9)
    assert held(around(0.3, 0.1), 0.1, 0.2) == (
        "At scale 0.1: the arm that starts from a donor of its scale (0.10) and the arm held at a "
        "donor of its scale (0.20) are not competent (score ≥ 0.8), so nothing is attributed to "
        "the state."
    )


def test_what_was_not_measured_is_not_judged() -> None:
    for verdict in (
        axis_sentences.competence,
        axis_sentences.scale,
        axis_sentences.inheritance,
        axis_sentences.boundaries,
        axis_sentences.change,
        axis_sentences.exploration,
    ):
        assert verdict({}) == axis_sentences.NOTHING
    assert axis_sentences.effects({}, {"a": "A − B"}) == axis_sentences.NOTHING


def test_effects_are_counted_and_named() -> None:
    titles = {"zero": "Freeway: live − pinned", "rest": "Breakout: live − untrained"}
    found = lines(zero={RULE: around(-0.3)}, rest={RULE: around(0.0)}, level={RULE: around(1)})
    assert axis_sentences.effects(found, titles) == (
        "1 of 2 differences have an interval without 0: Freeway: live − pinned −0.3000 "
        "[−0.3200, −0.2800]."
    )
    few = {key: line(key, {RULE: around(0.3, n=3)}) for key in titles}
    assert axis_sentences.effects(few, titles) == (
        "There are too few seeds to judge any difference (3, 4 are needed)."
    )
