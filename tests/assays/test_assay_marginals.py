"""Contrasts of cells that are centred each on its own, against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rulescope.assays.marginals import Marginals, common_draws
from rulescope.stats import TailWarning, bootstrap, exact_iqm, seed_blocks, trimmed_mean

from .frames import bounds, drawn_seeds

LIVE, ZERO = np.arange(1, 9) / 100, np.arange(8) / 100


def middle(values: list[float]) -> float:
    """Return the mean of ranks 3 to 6 of eight."""
    return sum(sorted(values)[2:6]) / 4


def test_worked_examples() -> None:
    cells = Marginals.of({"live": LIVE, "zero": ZERO}, exact_iqm, draws=1000)
    assert cells.contrast(["live"], ["zero"]).value == pytest.approx(0.045 - 0.035)
    late, early = np.array([0, 0, 0, 1, 1, 1, 1, 1.0]), np.array([0, 0, 1, 1, 1, 1, 1, 1.0])
    cells = Marginals.of({"live": late, "zero": early}, exact_iqm, draws=1000)
    assert cells.contrast(["live"], ["zero"]).value == -0.25


def test_intervals_rest_on_common_draws_of_seeds() -> None:
    generator = np.random.default_rng(3)
    cells = {name: generator.normal(size=8) for name in "abcd"}
    made = Marginals.of(cells, exact_iqm, draws=4000)
    with pytest.warns(TailWarning):
        found = made.contrast(["a", "d"], ["b", "c"], family=34)

    def of(block: list[int]) -> float:
        a, b, c, d = (middle([float(values[i]) for i in block]) for values in cells.values())
        return a + d - b - c

    assert found.value == pytest.approx(of(list(range(8))))
    samples = [of(block) for block in drawn_seeds(8, draws=4000)]
    assert (found.low, found.high) == pytest.approx(bounds(samples, family=34))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15, 16, 18])
@pytest.mark.parametrize("statistic", [exact_iqm, trimmed_mean])
def test_draws_are_those_of_the_bootstrap_to_the_bit(n: int, statistic: object) -> None:
    values = np.random.default_rng(n).normal(size=(3, n))
    values[1, 0] = np.nan
    assert callable(statistic)
    plain = bootstrap(values, seed_blocks(n, 500), statistic)
    np.testing.assert_array_equal(common_draws(values, 500, statistic), plain.T)


def test_what_is_missing_has_no_value_and_few_seeds_have_a_range() -> None:
    nothing = np.full(8, np.nan)
    cells = Marginals.of(
        {"live": LIVE, "gone": nothing, "few": LIVE * [1, 1, *[np.nan] * 6]}, exact_iqm
    )
    for absent in ("gone", "never planned"):
        found = cells.contrast(["live"], [absent], family=34)
        assert math.isnan(found.value)
        assert (found.n, found.family) == (0, 34)
    few = cells.level("few")
    assert (few.low, few.high, few.n, few.method) == (0.01, 0.02, 2, "range")
    assert cells.contrast(["live"], ["few"]).method == "none"
    assert cells.level("live").method == "bootstrap"
    assert Marginals.of({}, exact_iqm).n("live") == 0
