"""The one answer of an audit: its rules one by one, and whether it is ever untrue."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from msgspec.structs import replace

import rulescope.assays.scale.scale as e1
from named_rows import rows
from rulescope.assays import ASSAYS
from rulescope.assays.results import Results
from rulescope.assays.streams import stream_readouts
from rulescope.audit import evidence, history_answer, profile_axes
from rulescope.audit.profile import PINNED, Answer, Comparison, ProfileValue, Result, Verdict
from rulescope.stats import COMPETENT, intervals, paired_estimate

from .made_up_audits import Truth, around, audit, change_of, curves, frame, humped, scales_alone


def figure(value: float, low: float, high: float, n: int = 8) -> ProfileValue:
    return ProfileValue(value, low, high, n, "bootstrap")


def flat(value: float, n: int = 8) -> ProfileValue:
    return figure(value, value, value, n)


def place(
    axis: str, live: float, other: float, difference: ProfileValue, where: str = ""
) -> Comparison:
    result, reason = history_answer.judge(live >= COMPETENT, other >= COMPETENT, difference)
    scores = flat(live), flat(other)
    return Comparison(
        axis, where, PINNED, *scores, difference, history_answer.MARGIN, result, reason
    )


@pytest.mark.parametrize(
    ("live", "other", "difference", "result", "reason"),
    [
        (True, False, figure(0.8, 0.7, 0.95), "asset", ""),
        (False, True, figure(-0.8, -0.9, -0.7), "burden", ""),
        (True, True, figure(-0.15, -0.2, -0.05), "burden", ""),
        (True, True, figure(0.01, -0.02, 0.04), "no effect", ""),
        (True, True, figure(0.05, 0.02, 0.08), "no effect", ""),
        (True, True, figure(0.08, 0.02, 0.14), "undecided", history_answer.TOO_WIDE),
        (True, True, figure(-0.08, -0.14, -0.02), "undecided", history_answer.TOO_WIDE),
        (True, True, figure(0.05, -0.2, 0.3), "undecided", history_answer.TOO_WIDE),
        (False, False, figure(0.3, 0.2, 0.4), "undecided", history_answer.INCOMPETENT),
        (False, False, figure(0.0, -0.01, 0.01), "undecided", history_answer.INCOMPETENT),
        (False, True, figure(0.3, 0.2, 0.4), "undecided", history_answer.WORSE_COMPETENT),
        (True, False, figure(0.8, 0.7, 0.95, n=3), "undecided", history_answer.TOO_FEW),
        (
            True,
            False,
            ProfileValue(0.8, None, None, 8, "none"),
            "undecided",
            history_answer.TOO_FEW,
        ),
    ],
)
def test_a_place_is_judged_by_competence_seeds_and_margin(
    live: bool, other: bool, difference: ProfileValue, result: Result, reason: str
) -> None:
    assert history_answer.judge(live, other, difference) == (result, reason)


GOOD = place("competence", 0.95, 0.15, figure(0.8, 0.7, 0.95))
BAD = place("streams", 0.1, 0.9, figure(-0.8, -0.9, -0.7), "in Tracking")
SAME = place("reward scale", 0.95, 0.95, figure(0.0, -0.03, 0.02), "at 1")
WIDE = place("reward scale", 0.9, 0.85, figure(0.05, -0.3, 0.4), "at 10")
DEAD = place("reward scale", 0.1, 0.05, figure(0.05, 0.01, 0.08), "at 0.1")
FEW = place("competence", 0.95, 0.1, figure(0.85, 0.7, 0.9, n=3))
REVERSED = place("competence", 0.5, 0.85, figure(0.3, 0.2, 0.4))
UNKNOWN = replace(
    place("streams", 0.1, 0.1, figure(0.0, -0.1, 0.1)),
    live=ProfileValue(None, None, None, 0, "none"),
    other=ProfileValue(None, None, None, 0, "none"),
)


@pytest.mark.parametrize(
    ("places", "verdict", "sentence"),
    [
        (
            [GOOD, SAME],
            "asset",
            "History: asset (decided by competence: live − pinned 0.80 [0.70, 0.95]).",
        ),
        (
            [BAD, DEAD],
            "burden",
            "History: burden (decided by streams in Tracking: live − pinned −0.80 [−0.90, −0.70]).",
        ),
        (
            [GOOD, BAD],
            "both",
            "History: both: an asset (decided by competence: live − pinned 0.80 [0.70, 0.95]) and "
            "a burden (decided by streams in Tracking: live − pinned −0.80 [−0.90, −0.70]).",
        ),
        (
            [SAME, DEAD],
            "neither",
            "History: neither (no effect at every place with a competent arm: reward scale at 1: "
            "live − pinned 0.00 [−0.03, 0.02]; 1 other place has no competent arm).",
        ),
        (
            [SAME],
            "neither",
            "History: neither (no effect at every place with a competent arm: reward scale at 1: "
            "live − pinned 0.00 [−0.03, 0.02]).",
        ),
        (
            [DEAD, FEW, WIDE],
            "undecided",
            "History: undecided: competence: too few seeds (3, 4 are needed); reward scale at 10: "
            "the interval is too wide (live − pinned 0.05 [−0.30, 0.40]).",
        ),
        (
            [SAME, FEW],
            "undecided",
            "History: undecided: competence: too few seeds (3, 4 are needed).",
        ),
        (
            [REVERSED],
            "undecided",
            "History: undecided: competence: the better arm is not competent (live − pinned 0.30 "
            "[0.20, 0.40]).",
        ),
        (
            [UNKNOWN],
            "undecided",
            "History: undecided: the rule is competent nowhere, with its history or without (0.8 "
            "is competent).",
        ),
        (
            [SAME, WIDE],
            "undecided",
            "History: undecided: reward scale at 10: the interval is too wide (live − pinned 0.05 "
            "[−0.30, 0.40]).",
        ),
        (
            [FEW],
            "undecided",
            "History: undecided: too few seeds (competence: 3; at least 4 are needed: --seeds 4).",
        ),
        (
            [DEAD],
            "undecided",
            "History: undecided: the rule is competent nowhere, with its history or without (best "
            "score 0.10, 0.8 is competent).",
        ),
        ([], "undecided", "History: undecided: no axis was run with the history and without."),
    ],
)
def test_the_answer_names_what_decides_it(
    places: list[Comparison], verdict: Verdict, sentence: str
) -> None:
    assert history_answer.answer(places) == Answer(verdict, sentence, tuple(places))


def test_several_places_of_an_axis_are_counted_and_the_largest_is_shown() -> None:
    low = place("reward scale", 0.9, 0.1, figure(0.8, 0.6, 0.9), "at 0.1")
    lower = place("reward scale", 0.95, 0.0, figure(0.95, 0.9, 1.0), "at 0.01")
    said = history_answer.answer([low, lower]).sentence
    assert "reward scale at 0.01: live − pinned 0.95 [0.90, 1.00], and 1 more)" in said


def test_a_rule_without_carriers_has_no_history() -> None:
    made = history_answer.answer([], has_history=False)
    assert made.verdict == "no history"
    assert made.sentence == "History: none. No carrier of the learner counts as history."


def test_two_groups_of_lifetimes_are_named_where_they_leave_a_place_undecided() -> None:
    scores = np.array([0.02, 0.01, 0.03, 0.97, 0.98, 0.99, 0.96, 0.97])
    axes: dict[str, tuple[str | float, ...]] = {"scale": (1.0,)}
    keys = ("score/catch/live/1", "score/catch/pin/1")
    seeds = {f"seeds/{keys[0]}": scores, f"seeds/{keys[1]}": np.full(8, 0.9)}
    made = evidence.comparisons(
        {"E1": Results("E1", "", axes, 8, rows("E1", {}, seeds), (), seeds)}
    )
    assert history_answer.answer(made).sentence.endswith(
        "; live: 5 of 8 lifetimes learned (mean 0.97); 3 stayed near 0)."
    )


def test_competence_and_difference_are_of_the_same_seeds() -> None:
    """Four pinned lifetimes are missing: where live has a partner it is not competent."""
    live = np.array([0.4, 0.41, 0.39, 0.4, 0.99, 0.99, 0.99, 0.99])
    pinned = np.array([0.1, 0.11, 0.1, 0.09, *[np.nan] * 4])
    axes: dict[str, tuple[str | float, ...]] = {"scale": (1.0,)}
    seeds = {"seeds/score/catch/live/1": live, "seeds/score/catch/pin/1": pinned}
    [one] = evidence.comparisons(
        {"E1": Results("E1", "", axes, 8, rows("E1", {}, seeds), (), seeds)}
    )
    assert (one.live.n, one.other.n, one.difference.n) == (4, 4, 4)
    assert one.live.value == pytest.approx(0.4, abs=0.01)


def test_the_widths_of_a_single_scale_are_not_compared() -> None:
    scores = np.full((1, 2, 1, 8), 0.95) + np.random.default_rng(0).normal(0, 0.01, (1, 2, 1, 8))
    axes: dict[str, tuple[str | float, ...]] = {
        "task": ("catch",),
        "arm": ("live", "pin"),
        "scale": (1.0,),
    }
    axis = profile_axes.scale({"E1": ASSAYS["E1"].analyse(frame(axes, "score", scores))})
    assert not any(measure.difference for measure in axis.measures)
    assert "width of this range" not in axis.verdict


def test_frozen_is_not_pinned_and_is_judged_by_competence_before_the_change() -> None:
    found = {"E3": change_of(pre=(0.97, 0.97), after=(0.9, 0.1))}
    [one] = evidence.comparisons(found)
    assert (one.axis, one.against) == ("change", "frozen at iteration 80")
    assert one.live.value == pytest.approx(0.97, abs=0.02)
    assert one.result == "asset"
    columns = {name for measure in profile_axes.change(found).measures for name in measure.figures}
    assert columns == {"rule", "frozen at iteration 80"}
    dead = {"E3": change_of(pre=(0.1, 0.1), after=(0.5, 0.1))}
    assert evidence.comparisons(dead)[0].reason == history_answer.INCOMPETENT


def test_a_change_after_which_the_history_is_a_burden_is_one_on_its_axis_too() -> None:
    """The answer said burden, the axis that recovery is not judged."""
    found = {"E3": change_of(pre=(0.1, 0.95), after=(0.1, 0.9))}
    assert history_answer.answer(evidence.comparisons(found)).verdict == "burden"
    assert (
        "worse than itself with its state frozen at iteration 80."
        in profile_axes.change(found).verdict
    )


def test_a_rule_that_needs_its_history_completely_is_an_asset() -> None:
    """The sentence was: its history narrows the range (−3.00 [−3.00, −3.00])."""
    found = curves(live=[0.05, 0.97, 0.06, 0.05], pinned=[0.06, 0.05, 0.07, 0.06])
    assert profile_axes.scale(found).verdict == (
        "It is competent (score ≥ 0.8) at 1 alone (0.0 [0.0, 0.0] decades), and at no scale with "
        "its state pinned. It is competent only with its history (0.87 [0.85, 0.90]). It keeps "
        "half of its best score (0.95) at 1 alone (0.0 [0.0, 0.0] decades), pinned at no scale."
    )
    assert history_answer.answer(evidence.comparisons(found)).verdict == "asset"


def test_a_rule_that_learned_nothing_keeps_no_half_of_its_best() -> None:
    """The sentence was: it keeps half of its best score (0.09) over 3.0 decades."""
    found = curves(live=[0.08, 0.06, 0.09, 0.07], pinned=[0.05, 0.06, 0.05, 0.04])
    said = profile_axes.scale(found).verdict
    assert said.startswith("It is competent at no reward scale (best score: it 0.09 and pinned ")
    assert said.endswith("so it has no window, and nothing is attributed to its history.")
    assert history_answer.answer(evidence.comparisons(found)).verdict == "undecided"


TRUTHS: dict[str, tuple[Truth, set[Verdict], float]] = {
    "live good, pinned dead": (
        Truth(around(0.95, 0.03), around(0.06, 0.05)),
        {"asset"},
        0.0,
    ),
    "live dead, pinned good": (
        Truth(around(0.06, 0.05), around(0.95, 0.03)),
        {"burden"},
        0.0,
    ),
    "pinned better": (
        Truth(around(0.75, 0.08), around(0.95, 0.03)),
        {"burden", "undecided"},
        0.0,
    ),
    "both dead": (Truth(around(0.08, 0.05), around(0.05, 0.05)), {"undecided"}, 0.0),
    "equal": (Truth(around(0.93, 0.03), around(0.93, 0.03)), {"neither", "undecided"}, 0.0),
    "equal and noisy, at the threshold": (
        Truth(around(0.8, 0.15), around(0.8, 0.15)),
        {"neither", "undecided"},
        0.06,
    ),
    "equal, learning in part of the lifetimes": (
        Truth(humped(0.7), humped(0.7)),
        {"neither", "undecided"},
        0.05,
    ),
    "live learns in part of the lifetimes, pinned never": (
        Truth(humped(0.7), around(0.03, 0.03)),
        {"asset", "undecided"},
        0.0,
    ),
}
"""By what is true: the rule, the answers that do not contradict it, and how often chance may."""
WRONG_WORDS = {
    "asset": ("narrows",),
    "burden": ("widens",),
    "undecided": ("widens", "narrows"),
    "neither": ("widens", "narrows"),
}
"""What the sentence on the reward scale must not say, by the first answer that is true."""


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bootstrap with fewer draws than an audit has: the intervals are coarser, not narrower."""
    monkeypatch.setattr(e1, "CORE_DRAWS", 150)
    monkeypatch.setattr(stream_readouts, "ATLAS_DRAWS", 100)
    monkeypatch.setattr(intervals, "MIN_TAIL_DRAWS", 0.5)
    monkeypatch.setattr(profile_axes, "paired_estimate", partial(paired_estimate, draws=150))


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.usefixtures("few_draws")
def test_no_answer_contradicts_what_is_true(name: str) -> None:
    truth, allowed, chance = TRUTHS[name]
    draws = np.random.default_rng(7)
    answers: Counter[str] = Counter()
    wrong_words = 0
    for turn in range(1000):
        found = scales_alone(truth, (4, 5, 8, 12)[turn % 4], draws)
        answers[history_answer.answer(evidence.comparisons(found, draws=150)).verdict] += 1
        said = profile_axes.scale(found).verdict
        first = min(allowed, key=["asset", "burden", "neither", "undecided"].index)
        wrong_words += any(word in said for word in WRONG_WORDS[first])
    wrong = sum(count for verdict, count in answers.items() if verdict not in allowed)
    print(f"{name}: {dict(answers)}, contradicted {wrong}, wrong sentences {wrong_words} of 1000")
    assert wrong <= 1000 * chance, answers
    assert wrong_words <= 1000 * chance


@pytest.mark.parametrize("name", TRUTHS)
def test_two_seeds_decide_nothing(name: str) -> None:
    draws = np.random.default_rng(3)
    for _ in range(3):
        found = audit(TRUTHS[name][0], 2, draws)
        made = history_answer.answer(evidence.comparisons(found))
        assert made.sentence == (
            "History: undecided: too few seeds (competence: 2; at least 4 are needed: --seeds 4)."
        )


@pytest.mark.usefixtures("few_draws")
def test_an_asset_on_one_axis_and_a_burden_on_another_are_both() -> None:
    good, dead = around(0.95, 0.03), around(0.05, 0.05)
    truth = Truth(good, dead, streams=(dead, good))
    draws = np.random.default_rng(5)
    for n in (4, 8, 12):
        made = history_answer.answer(evidence.comparisons(audit(truth, n, draws), draws=150))
        assert made.verdict == "both"
        assert {one.axis for one in made.comparisons} == {"competence", "reward scale", "streams"}
