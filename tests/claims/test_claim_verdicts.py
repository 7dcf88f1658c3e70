"""Verdicts: what the published numbers say of the published claims, and how parts combine."""

from __future__ import annotations

from itertools import product

import pytest

from claims.made_up_evidence import claim_of
from rulescope.assays import published
from rulescope.assays.published_agreement import SPANS
from rulescope.claims.decision import Outcome
from rulescope.claims.ledger import Claim, claims, parts_of
from rulescope.claims.verdicts import combine, errors_of, judge_published, names_of

EMPIRICAL = [claim for claim in claims() if not claim.exact]
OUTCOMES: tuple[Outcome, ...] = ("holds", "fails", "undecided")


def test_the_published_numbers_decide_39_of_61_claims_and_contradict_none() -> None:
    words = [judge_published(claim).word for claim in EMPIRICAL]
    assert len(words) == 61
    assert words.count("reproduced") == 39
    assert words.count("undecided") == 61 - 39


@pytest.mark.parametrize(
    "claim", [each for each in EMPIRICAL if each.cells], ids=lambda each: each.id
)
def test_the_published_numbers_hold_where_their_printed_interval_is_inside(claim: Claim) -> None:
    verdict = judge_published(claim)
    assert verdict.n == claim.n
    assert [found.part for found in verdict.parts] == list(claim.parts)
    for found in verdict.parts:
        if found.part.second is not None or found.n == 0:
            continue
        printed = published.estimates(found.part.first.assay)[found.part.first.row]
        assert found.value == pytest.approx(printed.value, abs=1e-5)
        inside = found.part.low < found.low and found.high < found.part.high
        assert (found.outcome == "holds") == inside


def test_two_claims_that_the_published_numbers_reproduce_exclude_each_other() -> None:
    """Contradiction C1: the same cell is competent in one table and far from it in another."""
    gap = claim_of("convention-gap-at-thousand")
    window = claim_of("pinned-window-spans-three-decades")
    assert "C1" in gap.contradictions
    assert "C1" in window.contradictions
    assert judge_published(gap).word == judge_published(window).word == "reproduced"
    [apart] = [one for one in gap.parts if one.first.row == "gap/catch-1000/reference"]
    [level] = [one for one in window.parts if one.first.row == "score/catch/pin/1000"]
    # No score is above 1, so that live is less than 1 - 0.8 of the span above pinned.
    assert apart.low / SPANS["catch-1000"] > 1.0 - level.low


def test_size_atoms_are_printed_intervals() -> None:
    for claim in EMPIRICAL:
        for part in claim.size_parts:
            if part.second is None:
                printed = published.estimates(part.first.assay)[part.first.row]
                assert part.low <= printed.low <= printed.high <= part.high


@pytest.mark.parametrize("outcomes", list(product(OUTCOMES, repeat=3)))
def test_one_failing_part_contradicts_and_all_must_hold(outcomes: tuple[Outcome, ...]) -> None:
    expected: Outcome = "holds"
    for outcome in outcomes:
        if outcome == "undecided" and expected == "holds":
            expected = "undecided"
    if any(outcome == "fails" for outcome in outcomes):
        expected = "fails"
    assert combine(outcomes) == expected


def test_without_parts_nothing_is_chance_of_showing() -> None:
    assert combine([]) == "undecided"


def test_errors_are_those_of_the_published_family() -> None:
    [alone] = parts_of(["above(score/catch/live/1, 0.8)"], "E1", {})
    [member] = parts_of(["sign(interaction/0.001, +)"], "E2", {})
    [near] = parts_of(["near_zero(interaction/1000, 0.02)"], "E2", {})
    assert tuple(errors_of(alone, 7)) == pytest.approx((0.025, 0.025 / 7))
    assert tuple(errors_of(member, 1)) == pytest.approx((0.025 / 11, 0.025 / 11))
    assert tuple(errors_of(near, 9)) == pytest.approx((0.05 / 11, 0.025 / 11 / 9))


def test_every_estimate_of_a_claim_is_named_once() -> None:
    for claim in EMPIRICAL:
        found = names_of(claim)
        assert len(found) == len(set(found))
    found = names_of(claim_of("averages-carry-scale-too"))
    assert [name.row for name in found] == [
        "width/catch/live/0.8",
        "width/catch/hold/0.8",
        "width/catch/pin/0.8",
        "width/catch/both/0.8",
    ]
