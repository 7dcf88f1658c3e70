"""Error rates of verdicts in simulated campaigns of known truth."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from rulescope.claims.calibration import (
    CAMPAIGNS,
    ERRORS,
    Draw,
    Rates,
    Scenario,
    normal,
    power_curves,
    simulate,
    skewed,
    two_humped,
)
from rulescope.claims.decision import Errors, Floats, Outcome, Reading, decide
from rulescope.claims.ledger import parts_of
from rulescope.claims.record_evidence import quantiles
from rulescope.stats import bootstrap, seed_blocks, trimmed_mean
from rulescope.stats.sequential_counts import LOOKS


def noise(rate: float, campaigns: int) -> float:
    """Return three standard errors of a rate found in so many simulated campaigns."""
    return 3.0 * math.sqrt(rate * (1.0 - rate) / campaigns)


@cache
def error_rates(name: str) -> Rates:
    """Return the outcomes of a scenario; two entries of a name differ only in what is wrong."""
    first = next(one for one in ERRORS if one.name == name)
    assert {(one.atoms, one.level, one.share) for one in ERRORS if one.name == name} == {
        (first.atoms, first.level, first.share)
    }
    return simulate(first, CAMPAIGNS)


@pytest.mark.parametrize("scenario", ERRORS, ids=lambda one: f"{one.name}: {one.wrong}")
def test_no_verdict_is_wrong_more_often_than_its_bound(scenario: Scenario) -> None:
    rate = error_rates(scenario.name).of(scenario.wrong)
    assert rate <= scenario.bound + noise(scenario.bound, CAMPAIGNS)


@pytest.mark.parametrize("kind", power_curves())
def test_the_farther_the_truth_from_the_bound_the_more_campaigns_see_it(kind: str) -> None:
    rates = [simulate(each, 300) for each in power_curves()[kind]]
    found = [rate.holds for rate in rates]
    assert found[0] <= 0.05 + noise(0.05, 300)
    assert all(later >= earlier - 0.05 for earlier, later in pairwise(found))
    assert found[-1] > 0.9
    assert rates[-1].seeds < rates[0].seeds


def test_outcomes_of_a_simulation_are_the_same_for_the_same_seed_and_sum_to_one() -> None:
    one, again, other = (simulate(ERRORS[4], 200, seed=seed) for seed in (1, 1, 2))
    assert one == again != other
    assert one.holds + one.fails + one.undecided == pytest.approx(1.0)


def outcomes_of(atom: str, values: Floats, *, level: bool) -> tuple[Outcome, Outcome]:
    """Return the outcome of seeds by count alone, and with the bootstrap of their trimmed mean."""
    [part] = parts_of([atom], "", {})
    errors = Errors.of(part, 1, 1)
    counted, both = {}, {}
    for n in LOOKS[:4]:
        seeds = values[:n]
        draws = bootstrap(seeds, seed_blocks(n, 400), trimmed_mean)
        value = float(trimmed_mean(seeds))
        counted[n] = Reading(n, value, seeds, level=level)
        both[n] = Reading(n, value, seeds, level=level, bounds=quantiles(draws))
    looks = LOOKS[:4]
    return decide(part, counted, looks, errors).outcome, decide(part, both, looks, errors).outcome


@pytest.mark.parametrize(
    ("atom", "draw", "wrong", "level"),
    [
        ("sign(a, +)", normal(0.0), "holds", False),
        ("sign(a, +)", skewed(0.0), "holds", False),
        ("near_zero(a, 1)", normal(1.0), "holds", False),
        ("above(a, 0.8)", two_humped(0.65), "holds", True),
    ],
)
def test_an_interval_beside_the_count_makes_errors_no_more_frequent(
    atom: str, draw: Draw, wrong: Outcome, level: bool
) -> None:
    rng = np.random.default_rng(7)
    found = [outcomes_of(atom, draw(rng, LOOKS[3]), level=level) for _ in range(400)]
    by_count = sum(counted == wrong for counted, _ in found)
    with_interval = sum(both == wrong for _, both in found)
    assert with_interval <= by_count
    bound = 0.05 if wrong == "holds" and atom.startswith("near_zero") else 0.025
    assert with_interval / 400 <= bound + noise(bound, 400)


def test_stopping_when_an_interval_excludes_zero_is_wrong_far_more_often() -> None:
    """The rule that verdicts do not follow: look after every seed, stop when it suits."""
    campaigns = 300
    values = np.random.default_rng(3).normal(0.0, 1.0, (campaigns, 27))
    stopped = np.zeros(campaigns, dtype=bool)
    for n in range(6, 28):
        draws = bootstrap(values[:, :n], seed_blocks(n, 200), trimmed_mean)  # [draws, campaigns]
        low, high = np.quantile(draws, [0.025, 0.975], axis=0)
        stopped |= (low > 0.0) | (high < 0.0)
    assert stopped.mean() > 3 * 0.05
