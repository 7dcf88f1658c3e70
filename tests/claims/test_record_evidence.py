"""Evidence from records: whole seed blocks, planned looks, and the verdicts that follow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from claims.made_up_evidence import Scores, add_scores, claim_of
from rulescope.assays.estimates import Label
from rulescope.claims.ledger import Claim, claims
from rulescope.claims.record_evidence import RecordEvidence, planned_looks, quantiles
from rulescope.claims.verdicts import judge_claim
from rulescope.records import Store
from rulescope.stats.sequential_counts import LOOKS

COLD = claim_of("matched-prior-beats-a-cold-start")
"""One part: the score of match-clamp is above that of live."""
CLAMPED = claim_of("clamping-amplifies-mismatch")
"""One part, the sign of an interaction, in a family of eleven."""
PINNED = claim_of("pinned-window-spans-three-decades")
"""Seven parts on seven cells."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def arms(**scores: float) -> Scores:
    """Return scores by arm; a dash in its name is written as an underscore."""
    return lambda labels, _: scores[str(labels["arm"]).replace("-", "_")]


def pinned(at_thousand: float) -> Scores:
    """Return scores of pinned Disco as published, but for those at a scale of 1000."""

    def score(labels: Mapping[str, Label], _: int) -> float:
        scale = float(labels["scale"])
        return at_thousand if scale == 1000.0 else (0.95 if scale >= 1.0 else 0.05)

    return score


@pytest.mark.parametrize("claim", [claim for claim in claims() if claim.cells], ids=lambda c: c.id)
def test_looks_are_planned_up_to_the_cap(claim: Claim) -> None:
    looks = planned_looks(claim)
    if claim.n == 100:  # campaigns of random play
        assert looks == (100,)
        return
    assert looks == LOOKS[: len(looks)]
    assert looks[-1] <= 2.5 * claim.n
    later = LOOKS[len(looks) :]
    assert not later or later[0] > 2.5 * claim.n


def test_only_whole_seed_blocks_count(store: Store) -> None:
    add_scores(store, COLD, range(8), arms(match_clamp=0.9, live=0.5))
    assert RecordEvidence(store).blocks(COLD) == 8
    [cells] = COLD.cells
    plan = RecordEvidence(None).plan(cells, 8)
    holes = [run for run in plan.runs.values() if run.seed == 2]
    assert len(holes) == 2
    store.delete(holes[0].id)
    records = RecordEvidence(store)
    assert records.blocks(COLD) == 2
    assert judge_claim(COLD, records).n == 2
    assert judge_claim(COLD, records).word == "undecided"


def test_a_claim_on_two_grids_has_the_seeds_that_both_have(store: Store) -> None:
    claim = claim_of("a2c-needs-a-boundary-signal")
    add_scores(store, claim, range(4), lambda *_: 0.9)
    first = claim.cells[0]
    plan = RecordEvidence(None).plan(first, 4)
    gone = next(run for run in plan.runs.values() if run.seed == 3)
    store.delete(gone.id)
    assert RecordEvidence(store).blocks(claim) == 3


def test_donors_need_not_be_there_for_evidence_but_for_what_is_missing(store: Store) -> None:
    add_scores(store, CLAMPED, range(1), lambda *_: 0.5)
    records = RecordEvidence(store)
    assert records.blocks(CLAMPED) == 1
    assert records.missing(CLAMPED, 1) == {}
    lacking = records.missing(CLAMPED, 2)
    own = {key for key, run in lacking.items() if key in records.runs(CLAMPED, 2)}
    assert len(own) == 4
    assert len(lacking) == 4 + 2  # a donor of either scale


def test_random_campaigns_are_as_many_as_the_look_says() -> None:
    claim = claim_of("random-play-finds-what-chance-allows")
    records = RecordEvidence(None)
    lacking = records.missing(claim, 100)
    assert len(lacking) == 3 * 100
    assert {run.seed for run in lacking.values()} == set(range(100))


CASES = {
    "reproduced": (9, arms(match_clamp=0.9, cross_clamp=0.1, match_natural=0.6, cross_natural=0.6)),
    "contradicted": (
        9,
        arms(match_clamp=0.1, cross_clamp=0.9, match_natural=0.6, cross_natural=0.6),
    ),
    "undecided": (
        8,
        arms(match_clamp=0.9, cross_clamp=0.1, match_natural=0.6, cross_natural=0.6),
    ),
}


@pytest.mark.parametrize("word", CASES)
def test_a_sign_is_decided_by_nine_like_seeds_in_a_family_of_eleven(
    word: str, store: Store
) -> None:
    seeds, score = CASES[word]
    add_scores(store, CLAMPED, range(seeds), score)
    verdict = judge_claim(CLAMPED, RecordEvidence(store))
    assert (verdict.word, verdict.n) == (word, seeds)
    assert verdict.first == 9
    assert verdict.runs == 4 * seeds
    assert verdict.looks == (6, 9, 12, 18, 27)
    assert verdict.next_look == (9 if word == "undecided" else None)
    assert not verdict.at_cap
    [part] = verdict.parts
    expected = (0.9 - 0.1) if word != "contradicted" else (0.1 - 0.9)
    assert part.value == pytest.approx(expected, abs=0.01)


def test_an_effect_of_the_published_size_is_reproduced_also_in_size(store: Store) -> None:
    add_scores(
        store,
        CLAMPED,
        range(9),
        arms(match_clamp=0.8, cross_clamp=0.3, match_natural=0.6, cross_natural=0.6),
    )
    verdict = judge_claim(CLAMPED, RecordEvidence(store))
    assert (verdict.word, verdict.in_size) == ("reproduced", "holds")
    assert verdict.same_source in ("yes", "undecided")


def test_an_effect_below_the_detectable_contradicts_if_its_sign_is_open(store: Store) -> None:
    add_scores(store, CLAMPED, range(9), lambda *_: 0.6)
    verdict = judge_claim(CLAMPED, RecordEvidence(store))
    assert verdict.word == "contradicted"  # no interaction at all: below 0.33 on nine of nine


def test_a_claim_without_a_decision_at_the_last_look_is_undecided_at_cap(store: Store) -> None:
    def noise(labels: Mapping[str, Label], seed: int) -> float:
        """Return no difference at all, but for its sign, which changes from seed to seed."""
        return 0.5 + (0.2 if (str(labels["arm"]) == "live") == (seed % 2 == 0) else 0.0)

    add_scores(store, COLD, range(27), noise)
    verdict = judge_claim(COLD, RecordEvidence(store))
    assert (verdict.word, verdict.n, verdict.at_cap) == ("undecided", 27, True)
    assert verdict.next_look is None


def test_one_failing_part_contradicts_a_claim_of_seven(store: Store) -> None:
    add_scores(store, PINNED, range(9), pinned(0.1))
    verdict = judge_claim(PINNED, RecordEvidence(store))
    assert verdict.word == "contradicted"
    outcomes = {found.part.first.row: found.outcome for found in verdict.parts}
    assert outcomes.pop("score/catch/pin/1000") == "fails"
    assert set(outcomes.values()) == {"holds"}
    assert verdict.same_source == "no"  # 0.995 is printed there


def test_seven_parts_that_hold_reproduce_a_claim(store: Store) -> None:
    add_scores(store, PINNED, range(9), pinned(0.97))
    assert judge_claim(PINNED, RecordEvidence(store)).word == "reproduced"


def test_evidence_from_another_agent_is_kept_but_not_comparable(store: Store) -> None:
    [cells] = CLAMPED.cells
    published = RecordEvidence(None).plan(cells, 1)
    agent = published.assay.cohort.agent
    other = "legacy" if agent != "legacy" else "reference"
    score = CASES["reproduced"][1]
    add_scores(store, CLAMPED, range(9), score, agent=other)
    assert RecordEvidence(store).blocks(CLAMPED) == 0
    verdict = judge_claim(CLAMPED, RecordEvidence(store, other))
    assert (verdict.word, verdict.evidence, verdict.n) == ("not comparable", "holds", 9)
    assert other in verdict.why
    same = judge_claim(CLAMPED, RecordEvidence(store, agent))
    assert (same.word, same.n) == ("undecided", 0)


def test_a_claim_that_no_assay_measures_is_not_comparable() -> None:
    verdict = judge_claim(claim_of("pong-never-leaves-the-floor"), RecordEvidence(None))
    assert (verdict.word, verdict.n, verdict.parts) == ("not comparable", 0, ())
    assert verdict.why == "no assay measures it"


def test_readings_are_those_of_the_first_seeds_whatever_else_there_is(store: Store) -> None:
    def later_worse(labels: Mapping[str, Label], seed: int) -> float:
        return 0.9 if str(labels["arm"]) == "match-clamp" and seed < 6 else 0.5

    add_scores(store, COLD, range(12), later_worse)
    records = RecordEvidence(store)
    [part] = COLD.parts
    found = records.readings(COLD, part, planned_looks(COLD))
    assert list(found) == [6, 9, 12]
    for look, reading in found.items():
        assert reading.seeds is not None
        differences = [0.4 if seed < 6 else 0.0 for seed in range(look)]
        np.testing.assert_allclose(reading.seeds, differences, atol=1e-9)
    assert judge_claim(COLD, records).parts[0].n == 6  # and what six showed stands


def test_percentile_intervals_have_the_error_on_each_side() -> None:
    draws = np.append(np.arange(1001.0), np.nan)
    bounds = quantiles(draws)
    assert bounds is not None
    assert bounds(0.025) == pytest.approx((25.0, 975.0))
    assert quantiles(None) is None
    assert quantiles(np.full(3, np.nan)) is None
