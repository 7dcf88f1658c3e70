"""Exact tests of a share of lifetimes, at planned sample sizes.

A claim about a centre is decided by counting: on how many lifetimes does the value lie on the
claimed side of a threshold? Counts of independent lifetimes are binomial whatever the distribution
of the values, so the error rates are exact at any sample size.

Looking at the data after every lifetime, and stopping when it suits, inflates errors. The tests
look only at the sizes in :data:`LOOKS`. The error that a test may have spent by each look is fixed
in advance (Lan and DeMets 1983), and the probability of spending it is computed exactly, by
recursion over the looks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rulescope.stats.array_checks import DataError

LOOKS = (6, 9, 12, 18, 27, 45)
"""Sample sizes at which data are looked at."""
FIRST_SPENT = 0.9
"""Share of the error that the first look may spend; the rest is released evenly over the others.

The first look must be allowed nearly all: six like signs have a probability of 0.016 of 0.025.
"""
NEVER = -1
"""Boundary of a look at which no count is decisive."""


@lru_cache(maxsize=4096)
def failure_limits(share: float, error: float, looks: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many failures each look tolerates: [looks]; :data:`NEVER` where none.

    The test of ``P(success) <= share`` rejects at the first look with at most so many failures.
    The probability that it ever does is at most ``error`` for every share up to ``share``.

    >>> failure_limits(0.5, 0.025, (6, 9, 12, 18, 27))
    (0, 0, 1, 3, 6)
    >>> failure_limits(0.65, 0.025, (6, 9, 12, 18, 27))
    (-1, 0, 0, 1, 2)
    """
    _check(share, error, looks)
    limits: list[int] = []
    spent, last = 0.0, 0
    undecided = np.ones(1)  # [successes + 1]: probability of each count without a decision so far
    for place, look in enumerate(looks):
        undecided = np.convolve(undecided, _binomial(look - last, share))
        allowed = error * (FIRST_SPENT + (1.0 - FIRST_SPENT) * place / max(len(looks) - 1, 1))
        limit = _most_failures(undecided, allowed - spent)
        if limit != NEVER:
            spent += float(undecided[look - limit :].sum())
            undecided[look - limit :] = 0.0
        limits.append(limit)
        last = look
    return tuple(limits)


def _binomial(n: int, share: float) -> NDArray[np.float64]:
    """Return the probability of 0, 1, ..., ``n`` successes: [n + 1]."""
    chances = [math.comb(n, k) * share**k * (1.0 - share) ** (n - k) for k in range(n + 1)]
    return np.array(chances)


def _most_failures(undecided: NDArray[np.float64], affordable: float) -> int:
    """Return the largest number of failures whose probability is at most ``affordable``."""
    cumulative = np.cumsum(undecided[::-1])  # of at most 0, 1, 2, ... failures
    return int(np.searchsorted(cumulative, affordable, side="right")) - 1


def interval_errors(error: float, looks: Sequence[int] = LOOKS) -> dict[int, float]:
    """Return the one-sided error of an interval at each look that can have one.

    For statistics that no count decides. An interval within the range of n values covers a median
    on one side with a probability of at most ``1 - 2^-n``, so the first look is the first at which
    that suffices. It spends what the first look of a count may; the others share the rest evenly,
    so that all together spend ``error``.

    >>> {look: round(one, 5) for look, one in interval_errors(0.025 / 11, (6, 9, 12, 18)).items()}
    {9: 0.00205, 18: 0.00011}
    """
    able = [look for look in looks if 0.5**look <= FIRST_SPENT * error]
    rest = error * (1.0 - FIRST_SPENT) / max(len(able) - 1, 1)
    later = {look: rest for look in able[1:] if 0.5**look <= rest}
    return {able[0]: FIRST_SPENT * error, **later} if able else {}


def _check(share: float, error: float, looks: tuple[int, ...]) -> None:
    if not 0.0 < share < 1.0:
        raise DataError(f"a share of {share:g} cannot be exceeded or fallen short of")
    if not 0.0 < error < 1.0:
        raise DataError(f"{error:g} is no error rate")
    if not looks or any(b <= a for a, b in pairwise(looks)) or looks[0] < 1:
        raise DataError(f"looks {looks} do not ascend")
