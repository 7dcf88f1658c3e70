"""The queue of a campaign: what a step costs, whom it serves, and which look it goes for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from claims.made_up_evidence import add_scores, claim_of
from rulescope.assays.estimates import Label
from rulescope.claims.compute_cost import UNKNOWN_PACE, Pace
from rulescope.claims.ledger import Claim, claims, select
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.claims.replication_queue import Step, decision_chance, order_steps, predicted
from rulescope.claims.verdicts import judge_claim
from rulescope.records import Store
from rulescope.stats.sequential_counts import NEVER

COLD = claim_of("matched-prior-beats-a-cold-start")
NESTED = [
    claim_of(name)
    for name in (
        "history-widens-catch-window",
        "live-window-spans-six-decades",
        "pinned-window-spans-three-decades",
        "history-enables-small-rewards",
    )
]
"""The cells of the first hold those of the others."""


def queue(chosen: Sequence[Claim], records: RecordEvidence, pace: Pace) -> list[Step]:
    verdicts = [judge_claim(claim, records) for claim in chosen if not claim.exact]
    return order_steps(verdicts, records, pace)


def steps_of(names: list[str], store: Store | None = None) -> list[Step]:
    records = RecordEvidence(store)
    return queue(select(names), records, Pace(store))


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return steps_of([])


def test_every_claim_that_can_be_decided_has_a_step_and_no_other(steps: list[Step]) -> None:
    found = {step.verdict.claim.id for step in steps}
    futile = {"no-direction-can-be-singled-out"}  # a count of intervals has no interval
    assert found == {claim.id for claim in claims() if claim.cells} - futile


def test_the_price_is_minutes_for_each_expected_decision(steps: list[Step]) -> None:
    for step in steps:
        iterations = sum(spec.iterations - spec.start for spec in step.missing.values())
        assert step.minutes == pytest.approx(iterations * UNKNOWN_PACE / 60)
        assert 0.0 < step.chance <= 1.0
        assert step.price == pytest.approx(step.minutes / step.decisions)
    prices = [step.price for step in steps]
    assert prices == sorted(prices)


def test_a_step_counts_every_claim_whose_lifetimes_are_among_its_own(steps: list[Step]) -> None:
    for step in steps:
        served = []
        for other in steps:
            if all(key in step.missing for key in other.missing):
                served.append(other)
        assert set(step.served) == {other.verdict.claim.id for other in served}
        assert step.decisions == pytest.approx(sum(other.chance for other in served))
    shared = [step for step in steps if len(step.served) > 1]
    assert shared


def test_claims_on_the_same_lifetimes_make_a_step_cheaper() -> None:
    [alone] = steps_of([NESTED[0].id])
    together = {step.verdict.claim.id: step for step in steps_of([one.id for one in NESTED])}
    wide = together[NESTED[0].id]
    assert wide.missing == alone.missing
    assert set(wide.served) > {NESTED[0].id}
    assert wide.price < alone.price


def test_a_step_runs_all_arms_of_every_seed_up_to_its_look(steps: list[Step]) -> None:
    plans = RecordEvidence(None)
    for step in steps:
        assert set(plans.runs(step.verdict.claim, step.look)) <= step.missing.keys()
        seeds = [spec.seed for spec in step.missing.values()]
        assert seeds == sorted(seeds)


def test_the_queue_is_the_same_each_time(steps: list[Step]) -> None:
    again = steps_of([])
    assert [(step.verdict.claim.id, step.look) for step in again] == [
        (step.verdict.claim.id, step.look) for step in steps
    ]
    assert [list(step.missing) for step in again] == [list(step.missing) for step in steps]


def one_against(labels: Mapping[str, Label], seed: int) -> float:
    better = str(labels["arm"]) == "match-clamp"
    return 0.9 if better == (seed != 0) else 0.5


def test_with_one_seed_against_the_look_that_tolerates_none_is_not_chosen(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    add_scores(store, COLD, range(6), one_against)
    records, pace = RecordEvidence(store), Pace(store)
    verdict = judge_claim(COLD, records)
    assert (verdict.word, verdict.next_look) == ("undecided", 9)
    prices = {}
    for look in (9, 12, 18, 27):
        chance = decision_chance(verdict, look, records)
        minutes = pace.minutes(records.missing(COLD, look).values())
        prices[look] = minutes / chance if chance else np.inf
    assert prices[9] == np.inf
    [step] = queue([COLD], records, pace)
    assert step.look == min(prices, key=lambda look: prices[look])
    assert step.chance == decision_chance(verdict, step.look, records)


def test_published_numbers_that_decide_a_claim_make_its_decision_likelier() -> None:
    records = RecordEvidence(None)
    verdict = judge_claim(NESTED[2], records)
    unpublished = claim_of("compatible-clamp-stays-competent")
    other = judge_claim(unpublished, records)
    assert decision_chance(verdict, 9, records) > decision_chance(other, 9, records)


@pytest.mark.parametrize(
    ("successes", "failures", "look", "limit", "prior"),
    [(0, 0, 6, 0, 0), (0, 0, 9, 1, 8), (5, 1, 12, 1, 0), (5, 1, 12, 3, 0), (3, 3, 27, 6, 2)],
)
def test_the_predicted_chance_is_that_of_a_share_drawn_from_its_posterior(
    successes: int, failures: int, look: int, limit: int, prior: int
) -> None:
    rng = np.random.default_rng(11)
    draws = 40_000
    shares = rng.beta(successes + prior + 1, failures + 1, draws)
    later = rng.binomial(look - successes - failures, 1.0 - shares)
    simulated = float(np.mean(failures + later <= limit))
    found = predicted(successes, failures, look, limit, prior)
    assert found == pytest.approx(simulated, abs=4 * np.sqrt(0.25 / draws))


def test_the_predicted_chance_is_none_where_too_many_failed_or_no_count_decides() -> None:
    assert predicted(3, 2, 9, 1) == 0.0
    assert predicted(6, 0, 9, NEVER) == 0.0
    assert predicted(8, 1, 9, 1) == 1.0
    assert predicted(0, 0, 3, 3) == 1.0
