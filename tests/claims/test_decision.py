"""How evidence decides a part of a claim, with readings made by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from rulescope.claims.decision import (
    Direction,
    Errors,
    PartEvidence,
    Reading,
    Side,
    decide,
    first_look,
    least_share,
)
from rulescope.claims.ledger import Part, parts_of
from rulescope.stats.sequential_counts import LOOKS, failure_limits

NONE: Mapping[str, float] = {}


def part_of(atom: str, detectable: Mapping[str, float] = NONE) -> Part:
    [part] = parts_of([atom], "E1", detectable)
    return part


def look_at(
    values: Sequence[float], *, level: bool = False, signed: bool = False
) -> dict[int, Reading]:
    """Return readings of single seeds at every planned look that ``values`` reach."""
    seeds = np.array(values, dtype=np.float64)
    return {
        n: Reading(n, float(np.nanmean(seeds[:n])), seeds[:n], level=level, signed=signed)
        for n in LOOKS
        if n <= len(seeds)
    }


def decided(
    part: Part, readings: Mapping[int, Reading], family: int = 1, parts: int = 1
) -> PartEvidence:
    return decide(part, readings, LOOKS, Errors.of(part, family, parts))


def outcome(atom: str, values: Sequence[float], *, level: bool = False) -> tuple[str, int]:
    found = decided(part_of(atom), look_at(values, level=level))
    return found.outcome, found.n


SIGN = part_of("sign(effect, +)", {"effect": 0.3})
NEGATIVE = part_of("sign(effect, -)", {"effect": -0.3})


@pytest.mark.parametrize(
    ("value", "word", "smaller"),
    [
        (0.5, "holds", False),
        (0.2, "holds", True),
        (-0.2, "fails", False),
        (-0.5, "fails", False),
    ],
)
def test_six_like_seeds_decide_a_sign(value: float, word: str, smaller: bool) -> None:
    found = decided(SIGN, look_at([value] * 6))
    assert (found.outcome, found.n, found.smaller) == (word, 6, smaller)
    mirrored = decided(NEGATIVE, look_at([-value] * 6))
    assert (mirrored.outcome, mirrored.n, mirrored.smaller) == (word, 6, smaller)


def test_an_effect_below_the_detectable_contradicts_although_its_sign_is_open() -> None:
    values = [0.1, -0.1, 0.1, 0.1, -0.1, 0.1]
    found = decided(SIGN, look_at(values))
    assert (found.outcome, found.n) == ("fails", 6)
    plain = part_of("sign(effect, +)")  # without a detectable size, zero is the bound
    assert decided(plain, look_at(values)).outcome == "undecided"


def test_six_seeds_do_not_decide_a_sign_in_a_family_of_eleven_and_nine_do() -> None:
    assert decided(SIGN, look_at([0.5] * 8), family=11).outcome == "undecided"
    found = decided(SIGN, look_at([0.5] * 9), family=11)
    assert (found.outcome, found.n) == ("holds", 9)


def test_contradicting_one_of_many_parts_takes_more_seeds_than_showing_it() -> None:
    assert decided(SIGN, look_at([0.5] * 6), parts=7).outcome == "holds"
    assert decided(SIGN, look_at([-0.5] * 6), parts=7).outcome == "undecided"
    assert decided(SIGN, look_at([-0.5] * 9), parts=7).outcome == "fails"


def test_equivalence_needs_all_seeds_inside_the_margin() -> None:
    assert outcome("near_zero(effect, 0.1)", [0.05, -0.05] * 3) == ("holds", 6)
    assert outcome("near_zero(effect, 0.1)", [0.5] * 6) == ("fails", 6)
    assert outcome("near_zero(effect, 0.1)", [-0.5] * 6) == ("fails", 6)
    assert outcome("near_zero(effect, 0.1)", [0.5, -0.5] * 3) == ("undecided", 6)


def test_an_interval_that_spans_zero_is_no_equivalence() -> None:
    seeds = np.array([0.05, -0.05] * 3)
    wide = Reading(6, 0.0, seeds, bounds=lambda _: (-0.4, 0.4))
    assert decided(part_of("near_zero(effect, 0.1)"), {6: wide}).outcome == "undecided"
    narrow = Reading(6, 0.0, seeds, bounds=lambda _: (-0.04, 0.04))
    assert decided(part_of("near_zero(effect, 0.1)"), {6: narrow}).outcome == "holds"


def test_six_that_all_learned_do_not_show_a_score_above_four_fifths_and_nine_do() -> None:
    assert outcome("above(score, 0.8)", [0.99] * 6, level=True) == ("undecided", 6)
    assert outcome("above(score, 0.8)", [0.99] * 9, level=True) == ("holds", 9)
    assert outcome("above(score, 0.8)", [0.99] * 6, level=False) == ("holds", 6)


def test_six_that_did_not_learn_contradict_a_score_above_four_fifths() -> None:
    assert outcome("above(score, 0.8)", [0.0] * 6, level=True) == ("fails", 6)


@pytest.mark.parametrize("bound", [0.05, 0.1, 0.3, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("direction", ["above", "below"])
def test_at_the_least_share_two_groups_have_their_interquartile_mean_at_the_bound(
    direction: Direction, bound: float
) -> None:
    share = least_share(bound, direction, True)
    if share == 0.5:  # then a majority suffices, and more than suffices
        return
    at_one = share if direction == "above" else 1.0 - share
    scores = np.sort(
        np.concatenate([np.ones(round(4000 * at_one)), np.zeros(4000 - round(4000 * at_one))])
    )
    assert scores[1000:3000].mean() == pytest.approx(bound, abs=1e-3)


@pytest.mark.parametrize("margin", [0.0, 0.02, 0.1, 0.3])
def test_the_difference_of_two_levels_is_treated_alike_on_either_side(margin: float) -> None:
    above, below = (
        least_share(margin, "above", True, signed=True),
        least_share(margin, "below", True, signed=True),
    )
    assert least_share(-margin, "below", True, signed=True) == above
    assert margin == 0.0 or least_share(-margin, "above", True, signed=True) == below
    part = part_of("equivalent(a, b, 0.1)")
    values = [0.0] * 7 + [1.0] * 2
    one = decided(part, look_at(values, level=True, signed=True))
    other = decided(part, look_at([-value for value in values], level=True, signed=True))
    assert one.outcome == other.outcome == "undecided"


def shares(happened: Sequence[bool]) -> dict[int, Reading]:
    return {
        n: Reading(n, float(np.mean(happened[:n])), happened=sum(happened[:n]))
        for n in LOOKS
        if n <= len(happened)
    }


def test_shares_are_decided_by_their_exact_test_alone() -> None:
    above, below = part_of("above(solved, 0.5)"), part_of("below(solved, 0.5)")
    assert decided(above, shares([True] * 6)).outcome == "holds"
    assert decided(below, shares([True] * 6)).outcome == "fails"
    assert decided(above, shares([False] * 6)).outcome == "fails"
    assert decided(below, shares([False] * 6)).outcome == "holds"
    assert decided(above, shares([True, False] * 6)).outcome == "undecided"
    assert decided(part_of("above(ever, 0.7)"), shares([True] * 9)).outcome == "undecided"
    found = decided(part_of("above(ever, 0.7)"), shares([True] * 12))
    assert (found.outcome, found.n) == ("holds", 12)


def test_a_quantity_without_seeds_needs_so_many_that_their_range_could_cover_a_median() -> None:
    part = part_of("above(between/hc, 0.9)")
    errors = Errors.of(part, 11, 1)
    for n in (6, 9):
        reading = {
            look: Reading(look, 0.99, bounds=lambda _: (0.98, 1.0)) for look in LOOKS if look <= n
        }
        assert (0.5**n > 0.9 * errors.holds) == (n == 6)
        assert decide(part, reading, LOOKS, errors).outcome == ("undecided" if n == 6 else "holds")


def test_a_quantity_without_seeds_spends_its_error_over_the_looks() -> None:
    asked: list[float] = []

    def bounds(error: float) -> tuple[float, float]:
        asked.append(error)
        return 0.5, 0.6

    readings = {n: Reading(n, 0.55, bounds=bounds) for n in LOOKS}
    assert decided(part_of("above(between/hc, 0.9)"), readings).outcome == "fails"
    assert asked[0] == pytest.approx(0.9 * 0.025)


def test_a_quantity_with_neither_seeds_nor_interval_is_never_decided() -> None:
    part = part_of("within(spanning, 7.5, 8.5)")
    readings = {n: Reading(n, 8.0) for n in LOOKS}
    assert decided(part, readings).outcome == "undecided"
    assert first_look(part, readings[6], LOOKS, Errors.of(part, 1, 1)) is None


def test_missing_values_count_against_either_side() -> None:
    values = [0.5] * 5 + [math.nan]
    assert decided(SIGN, look_at(values)).outcome == "undecided"
    assert decided(SIGN, look_at([-value for value in values])).outcome == "undecided"
    reading = look_at(values)[6]
    sides = [Side("above", 0.0, 0.025), Side("below", 0.0, 0.025)]
    assert [reading.successes(side) for side in sides] == [5, 0]


def test_an_estimate_that_exists_only_from_a_later_look_on_is_read_there() -> None:
    readings = {n: one for n, one in look_at([0.5] * 9).items() if n != 6}
    assert decided(SIGN, readings)[1:3] == ("holds", 9)


def test_evidence_is_not_looked_at_between_planned_looks() -> None:
    values = [-0.1] + [0.5] * 10  # 10 of 11 for the claim; looks at 6 and 9 tolerate none against
    assert failure_limits(0.5, 0.025, LOOKS)[:3] == (0, 0, 1)
    found = decided(SIGN, look_at(values))
    assert (found.outcome, found.n) == ("undecided", 9)
    at_twelve = decided(SIGN, look_at([*values, 0.5]))
    assert (at_twelve.outcome, at_twelve.n) == ("holds", 12)


def test_a_decision_at_an_early_look_stands() -> None:
    found = decided(SIGN, look_at([0.5] * 6 + [-0.5] * 39))
    assert (found.outcome, found.n) == ("holds", 6)
    found = decided(SIGN, look_at([-0.5] * 6 + [0.5] * 39))
    assert (found.outcome, found.n) == ("fails", 6)


def test_a_count_that_the_interval_does_not_confirm_waits_for_it() -> None:
    def reading(n: int, low: float) -> Reading:
        return Reading(n, 0.5, np.full(n, 0.5), bounds=lambda _: (low, 1.0))

    assert decided(SIGN, {6: reading(6, -0.1)}).outcome == "undecided"
    found = decided(SIGN, {6: reading(6, -0.1), 9: reading(9, 0.1)})
    assert (found.outcome, found.n) == ("holds", 9)


def test_an_interval_does_not_decide_without_the_count() -> None:
    seeds = np.array([0.5, 0.5, 0.5, 0.5, 0.5, -0.1])
    reading = Reading(6, 0.5, seeds, bounds=lambda _: (0.4, 0.6))
    assert decided(SIGN, {6: reading}).outcome == "undecided"


def test_without_readings_nothing_is_decided() -> None:
    found = decided(SIGN, {})
    assert (found.outcome, found.n) == ("undecided", 0)


@pytest.mark.parametrize(
    "atom",
    [
        "sign(effect, +)",
        "above(score, 0.8)",
        "below(score, 0.05)",
        "near_zero(score, 0.05)",
        "within(score, 0.5, 0.8)",
    ],
)
@pytest.mark.parametrize("level", [True, False])
@pytest.mark.parametrize("family", [1, 11, 34])
def test_the_first_look_is_the_least_number_of_unanimous_seeds_that_decides(
    atom: str, level: bool, family: int
) -> None:
    part = part_of(atom)
    inside = [value for value in (-0.9, 0.0, 0.01, 0.6, 0.99) if part.low < value < part.high][-1]
    errors = Errors.of(part, family, 1)
    kind = Reading(0, math.nan, np.empty(0), level=level)
    found = decide(part, look_at([inside] * LOOKS[-1], level=level), LOOKS, errors)
    assert found.outcome == "holds"
    assert first_look(part, kind, LOOKS, errors) == found.n
