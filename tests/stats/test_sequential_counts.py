"""Exact tests of a share at planned looks, against the enumeration of all sequences."""

from __future__ import annotations

from itertools import pairwise, product

import pytest

from rulescope.stats.array_checks import DataError
from rulescope.stats.sequential_counts import (
    FIRST_SPENT,
    LOOKS,
    NEVER,
    failure_limits,
    interval_errors,
)

SMALL = [(3, 5, 8), (2, 3, 4, 6), (6, 9), (5,)]
SHARES = (0.5, 0.65, 0.725)
ERRORS = (0.3, 0.1, 0.025)
CASES = list(product(SHARES, ERRORS, SMALL))


def decided_by(limits: tuple[int, ...], looks: tuple[int, ...], share: float) -> dict[int, float]:
    """Return the probability of a first decision at each look, sequence by sequence."""
    found = dict.fromkeys(looks, 0.0)
    for outcomes in product((True, False), repeat=looks[-1]):
        chance = 1.0
        for success in outcomes:
            chance *= share if success else 1.0 - share
        for look, limit in zip(looks, limits, strict=True):
            if outcomes[:look].count(False) <= limit:
                found[look] += chance
                break
    return found


@pytest.mark.parametrize(("share", "error", "looks"), CASES)
def test_a_wrong_decision_has_at_most_the_error_at_every_share_up_to_the_bound(
    share: float, error: float, looks: tuple[int, ...]
) -> None:
    limits = failure_limits(share, error, looks)
    for true_share in (0.2, 0.5 * share, share):
        assert sum(decided_by(limits, looks, true_share).values()) <= error * (1 + 1e-12)


@pytest.mark.parametrize(("share", "error", "looks"), CASES)
def test_one_more_failure_at_any_look_would_spend_more_than_is_released_by_then(
    share: float, error: float, looks: tuple[int, ...]
) -> None:
    limits = failure_limits(share, error, looks)
    for place, look in enumerate(looks):
        later = len(looks) - 1
        released = error * (FIRST_SPENT + (1 - FIRST_SPENT) * (place / later if later else 0))
        until = (*limits[:place], limits[place], *[NEVER] * (later - place))
        more = (*limits[:place], limits[place] + 1, *[NEVER] * (later - place))
        assert sum(decided_by(until, looks, share).values()) <= released * (1 + 1e-12)
        if limits[place] < look:
            assert sum(decided_by(more, looks, share).values()) > released * (1 - 1e-12)


@pytest.mark.parametrize("error", [0.025 / 34, 0.025 / 11, 0.025 / 2, 0.025, 0.05])
@pytest.mark.parametrize("share", [0.5, 0.65, 0.725, 0.75])
def test_later_looks_tolerate_at_least_as_many_failures(share: float, error: float) -> None:
    assert all(a <= b for a, b in pairwise(failure_limits(share, error, LOOKS)))


def test_six_like_signs_decide_and_nine_in_a_family_of_eleven() -> None:
    assert failure_limits(0.5, 0.025, LOOKS)[:2] == (0, 0)
    assert failure_limits(0.5, 0.025 / 11, LOOKS)[:2] == (NEVER, 0)


@pytest.mark.parametrize("family", [1, 11, 34])
def test_the_errors_of_intervals_are_spent_over_the_looks_that_can_have_one(family: int) -> None:
    error = 0.025 / family
    found = interval_errors(error, LOOKS)
    assert sum(found.values()) <= error * (1 + 1e-12)
    assert list(found) == sorted(found)
    # The range of n values covers a median on one side with at most 1 - 2^-n.
    assert all(0.5**look <= one for look, one in found.items())
    assert next(iter(found)) == min(look for look in LOOKS if 0.5**look <= 0.9 * error)


def test_no_interval_is_possible_where_every_look_is_too_small() -> None:
    assert interval_errors(1e-9, (6, 9, 12)) == {}


@pytest.mark.parametrize(
    ("share", "error", "looks", "message"),
    [
        (0.0, 0.025, LOOKS, "share of 0 cannot"),
        (1.0, 0.025, LOOKS, "share of 1 cannot"),
        (0.5, 0.0, LOOKS, "0 is no error rate"),
        (0.5, 1.0, LOOKS, "1 is no error rate"),
        (0.5, 0.025, (), "do not ascend"),
        (0.5, 0.025, (6, 6), "do not ascend"),
        (0.5, 0.025, (9, 6), "do not ascend"),
        (0.5, 0.025, (0, 6), "do not ascend"),
    ],
)
def test_bad_input_is_an_error_that_names_it(
    share: float, error: float, looks: tuple[int, ...], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        failure_limits(share, error, looks)
