"""What first-in-first-out says about ages, against a list that is appended to and cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rulescope.mechanism.fifo_ages import Fifo
from rulescope.stats import DataError

PARTS = (0.05, 0.5, 0.95)


def simulated(rule: Fifo, iterations: int) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return the ages after every iteration, by doing it."""
    stamps: list[int] = []
    found = []
    for now in range(1, iterations + 1):
        stamps = (stamps + [now] * rule.each)[-rule.capacity :]
        if now == rule.cleared:
            stamps = []
        found.append(now - np.array(stamps, dtype=np.int64))
    return found


@given(
    capacity=st.integers(1, 40),
    each=st.integers(1, 7),
    cleared=st.none() | st.integers(1, 30),
    switch=st.integers(1, 30),
)
def test_closed_forms_are_what_happens(
    capacity: int, each: int, cleared: int | None, switch: int
) -> None:
    rule = Fifo(capacity, each, cleared)
    when = np.arange(1, 31)
    ages = simulated(rule, 30)
    assert rule.stored(when).tolist() == [len(a) for a in ages]
    with np.errstate(invalid="ignore"):
        shares = [(a >= k - switch).mean() if len(a) else np.nan for k, a in enumerate(ages, 1)]
    assert rule.share_before(when, switch) == pytest.approx(shares, nan_ok=True)
    means = [a.mean() if len(a) else np.nan for a in ages]
    assert rule.mean_age(when) == pytest.approx(means, nan_ok=True)
    for part in PARTS:
        exact = [
            float(np.quantile(a, part, method="inverted_cdf")) if len(a) else np.nan for a in ages
        ]
        assert rule.age_quantile(when, part) == pytest.approx(exact, nan_ok=True)


def test_the_published_replays() -> None:
    disco, small, large = Fifo(1024, 2), Fifo(28_672, 58), Fifo(100_000, 58)
    assert disco.turnover == 512.0
    assert small.turnover == pytest.approx(494.3, abs=0.1)
    when = np.array([1500, 1750, 2012, 2400])
    assert disco.share_before(when, 1500) == pytest.approx([1.0, 262 / 512, 0.0, 0.0])
    assert large.share_before(when, 1500)[-1] == pytest.approx(1.0 - 900 * 58 / 100_000)
    assert Fifo(100_000, 58, cleared=1500).share_before(when, 1500)[1:] == pytest.approx([0, 0, 0])


def test_a_replay_that_holds_nothing_is_refused() -> None:
    with pytest.raises(DataError, match="holds nothing"):
        Fifo(0, 2)
