"""Profiles of rules whose truth is known: made-up scores, the real analyses, the real answer."""

from __future__ import annotations

import numpy as np

from audit.made_up_audits import Truth, around, audit, humped
from rulescope.audit import evidence, history_answer, profile_axes
from rulescope.audit.profile import Profile

BUDGET = "600 iterations"
ASSET = Truth(around(0.95, 0.02), around(0.3, 0.05))
"""Competent with its history alone."""
BURDEN = Truth(around(0.4, 0.05), around(0.92, 0.02))
NEITHER = Truth(around(0.9, 0.01), around(0.9, 0.01))
DEAD = Truth(around(0.1, 0.02), around(0.1, 0.02))
HALF = Truth(humped(0.5), humped(0.5))


def made_up(
    rule: str,
    truth: Truth,
    n: int = 6,
    *,
    history: bool = True,
    preset: str = "quick",
    budget: str = BUDGET,
    seed: int = 0,
) -> Profile:
    """Return the profile of a rule with ``n`` seeds; without a history it is not pinned."""
    found = audit(truth, n, np.random.default_rng(seed), pinned=history)
    compared = evidence.comparisons(found)
    return Profile(
        rule,
        preset,
        f"The learner of {rule}",
        profile_axes.axes_of(found),
        runs={f"run-{rule}-{turn}": "0" * 64 for turn in range(n)},
        answer=history_answer.answer(compared, has_history=history),
        budgets=dict.fromkeys(found, budget),
    )
