"""DeepSea flags and depths, Wilson intervals, and chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats  # type: ignore[import-untyped]

from rulescope.stats import (
    DataError,
    deepest_majority,
    found_goal,
    majority,
    random_discovery,
    solved,
    updates_for_depth,
    wilson,
)

NAN = math.nan


def flags(yes: int, n: int, missing: int = 0) -> list[float]:
    return [1.0] * yes + [0.0] * (n - yes) + [NAN] * missing


def test_solved_is_a_mean_tail_return_of_at_least_495() -> None:
    returns = [0.495, np.nextafter(0.495, 0), 0.99, -0.1, NAN]
    np.testing.assert_array_equal(solved(returns), [1, 0, 1, 0, NAN])


def test_a_goal_is_found_if_anything_is_above_zero() -> None:
    one_success = (1 + 99 * -0.005) / 100
    assert one_success == pytest.approx(0.00505)
    rows = [[-0.005, one_success, -0.005], [-0.005, 0.0, NAN], [NAN] * 3, [0.0, 0.0, 1.0]]
    np.testing.assert_array_equal(found_goal(rows), [1, 0, NAN, 1])


@pytest.mark.parametrize(
    ("yes", "n", "missing", "expected"),
    [
        (8, 15, 0, True),
        (7, 15, 0, False),
        (5, 10, 0, True),
        (4, 10, 0, False),
        (5, 10, 5, True),
        (0, 0, 3, False),
        (0, 5, 0, False),
    ],
)
def test_majority(yes: int, n: int, missing: int, expected: bool) -> None:
    assert bool(majority(flags(yes, n, missing))) is expected


def test_deepest_majority_is_the_largest_depth_whatever_lies_between() -> None:
    depths = [8, 10, 12, 14, 16]
    shares = [15, 7, 8, 9, 7]
    assert deepest_majority(depths, [flags(k, 15) for k in shares]) == 14
    assert deepest_majority(depths[::-1], [flags(k, 15) for k in shares[::-1]]) == 14
    assert math.isnan(deepest_majority(depths, [flags(7, 15)] * 5))


def test_deepest_majority_of_draws() -> None:
    stack = np.random.default_rng(0).integers(0, 2, (50, 3, 5)).astype(float)
    depths = [4, 8, 16]
    found_depths = deepest_majority(depths, stack)
    assert found_depths.shape == (50,)
    for draw in range(50):
        passing = [d for d, row in zip(depths, stack[draw], strict=True) if row.mean() >= 0.5]
        np.testing.assert_array_equal(found_depths[draw], max(passing, default=NAN))
    with pytest.raises(DataError, match="do not hold 2 depths"):
        deepest_majority([4, 8], stack)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (11, 15, 0.480496, 0.891025),
        (0, 15, 0.0, 0.203883),
        (15, 15, 0.796117, 1.0),
        (75, 100, 0.656955, 0.824548),
        (32, 100, 0.236691, 0.416626),
    ],
)
def test_worked_wilson_intervals(k: int, n: int, low: float, high: float) -> None:
    share = wilson(k, n)
    assert share.value == k / n
    assert share.low == pytest.approx(low, abs=5e-7)
    assert share.high == pytest.approx(high, abs=5e-7)
    assert (share.n, share.draws, share.family, share.method) == (n, 0, 1, "wilson")


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_scipys(counts: tuple[int, int]) -> None:
    k, n = counts
    theirs = scipy_stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
    share = wilson(k, n)
    assert share.low == pytest.approx(theirs.low, abs=1e-7)
    assert share.high == pytest.approx(theirs.high, abs=1e-7)
    assert 0.0 <= share.low <= share.value <= share.high <= 1.0
    if k == 0:
        assert share.low == 0.0
    if k == n:
        assert share.high == 1.0


def test_wilson_without_runs() -> None:
    nothing = wilson(0, 0)
    assert nothing.method == "none"
    assert np.isnan([nothing.value, nothing.low, nothing.high]).all()
    for k, n in ((3, 2), (-1, 5)):
        with pytest.raises(DataError, match=f"{k} of {n} runs"):
            wilson(k, n)


@pytest.mark.parametrize(("depth", "chance"), [(12, 0.9972), (14, 0.7689), (16, 0.3066)])
def test_worked_random_discovery(depth: int, chance: float) -> None:
    assert random_discovery(depth, 12_000) == pytest.approx(chance, abs=5e-5)
    assert random_discovery(depth) == random_discovery(depth, 12_000)


def test_random_discovery_at_the_edges() -> None:
    assert random_discovery(1, 5) == 1.0
    assert random_discovery(2, 1) == pytest.approx(0.5)
    assert random_discovery(12, 0) == 0.0
    assert random_discovery(80, 1000) == pytest.approx(1000 * 2.0**-79, rel=1e-9, abs=0)
    with pytest.raises(DataError, match="depth must be at least 1, not 0"):
        random_discovery(0)


@pytest.mark.parametrize(
    ("depth", "updates"),
    [(8, 1655), (10, 2069), (12, 2483), (14, 2897), (16, 3310), (4, 828)],
)
def test_updates_for_depth(depth: int, updates: int) -> None:
    assert updates_for_depth(depth) == updates


def test_updates_need_a_depth() -> None:
    with pytest.raises(DataError, match="depth must be at least 1, not -2"):
        updates_for_depth(-2)
