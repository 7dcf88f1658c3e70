"""Draws are recorded inside the context, and nowhere else."""

from __future__ import annotations

import numpy as np

from rulescope.stats import estimate, estimate_from, estimates, recording_draws, seed_blocks

BLOCKS = seed_blocks(5, 1000)
VALUES = np.arange(15.0).reshape(3, 5) ** 2


def test_draws_of_cells_and_of_derived_statistics_are_recorded() -> None:
    with recording_draws() as recorded:
        cells = estimates(VALUES, BLOCKS)
        one = cells[1]
        difference = estimate_from(3.0, cells.samples[:, 2] - cells.samples[:, 0], n=5)
    samples = recorded.of(one)
    assert samples is not None
    assert samples.tolist() == cells.samples[:, 1].tolist()
    assert (one.low, one.high) == tuple(np.quantile(samples, [0.025, 0.975]))
    apart = recorded.of(difference)
    assert apart is not None
    assert apart.tolist() == (cells.samples[:, 2] - cells.samples[:, 0]).tolist()


def test_equal_estimates_have_their_own_draws() -> None:
    with recording_draws() as recorded:
        first, second = (
            estimate_from(1.0, samples, n=5) for samples in (np.ones(900), np.ones(1000))
        )
    sizes = [len(found) for one in (first, second) if (found := recorded.of(one)) is not None]
    assert sizes == [900, 1000]


def test_estimates_from_outside_or_without_draws_have_none() -> None:
    before = estimate(VALUES[0], BLOCKS)
    with recording_draws() as recorded:
        few = estimate([1.0, np.nan, np.nan, np.nan, 2.0], BLOCKS)
    after = estimate(VALUES[0], BLOCKS)
    assert [recorded.of(one) for one in (before, few, after)] == [None, None, None]
