"""Made-up results of the assays of streams and behaviour: the printed values, whole and in part."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from named_rows import rows
from rulescope.assays import published
from rulescope.assays.published import Published
from rulescope.assays.results import Results
from rulescope.stats import Estimate, wilson

CONFIGURATIONS = {
    "rule": (0.974, 133.4),
    "rule-lr3e4": (0.995, 500.2),
    "a2c": (0.970, 350.9),
    "ppo": (0.908, 245.5),
    "dqn": (0.884, 262.0),
    "rule-pin": (0.790, 275.0),
    "rule-freeze": (0.951, 129.1),
}
BREAKOUT = {"rule": (9.8, 8.8), "rule-freeze": (9.4, 8.5), "a2c": (5.0, 5.2), "ppo": (5.1, 5.3)}
DEPTHS = (8, 10, 12, 14, 16)
SOLVED = {
    "rule": (15, 13, 12, 2, 0),
    "rule-entropy": (9, 13, 4, 1, 0),
    "a2c": (15, 15, 11, 0, 0),
    "ppo": (11, 4, 2, 1, 0),
    "dqn": (15, 14, 11, 4, 0),
}
AREAS = {"rule": 0.565, "dqn": 0.05, "dqn-28672": 0.66, "dqn-cleared": 0.881}
CONTRASTS = {"100k": 0.5161, "28672": -0.0898, "cleared": -0.3154}


def as_printed(assay: str, n: int = 18, only: Collection[str] = ()) -> Results:
    """Return the printed values of ``assay``, of ``n`` seeds, with learning curves.

    ``only`` names the arms that were run, if not all.
    """
    kept = {
        key: value
        for key, value in published.estimates(assay).items()
        if not only or key.rpartition("/")[2] in only
    }
    steps = np.arange(1.0, 151.0) * 2320
    series: dict[str, NDArray[np.float64]] = {"steps": steps}
    for key, value in kept.items():
        if key.startswith("score/"):
            line = value.value * (1 - np.exp(-steps / 40_000))
            wide = 0.1 * np.exp(-steps / 100_000)
            series[key.replace("score/", "trajectory/")] = np.stack(
                [line, line - wide, line + wide]
            )
    return made(assay, {key: _estimate(value, n) for key, value in kept.items()}, n, series)


def _estimate(value: Published, n: int) -> Estimate:
    low, high = value.low, value.high
    if np.isnan(low):
        return Estimate(value.value, low, high, n, method="none")
    if n == 1:
        return Estimate(value.value, value.value, value.value, 1, method="range")
    if n < 3:
        return Estimate(value.value, low, high, n, method="range")
    return Estimate(value.value, low, high, n, 1000)


def around(value: float, spread: float, n: int = 12, family: int = 1) -> Estimate:
    if n < 3:
        return Estimate(value, value - spread, value + spread, n, method="range")
    return Estimate(value, value - spread, value + spread, n, 1000, family)


def horizon_results(arms: Collection[str] = tuple(CONFIGURATIONS), n: int = 12) -> Results:
    """Return results of F2."""
    found = {}
    for arm in arms:
        endpoint, mastery = CONFIGURATIONS[arm]
        found[f"endpoint/{arm}"] = around(endpoint, 0.02, n)
        found[f"mastery/{arm}"] = around(1000 * mastery, 40_000, n)
    return made("F2", found, n)


def breakout_results(arms: Collection[str] = tuple(BREAKOUT), n: int = 18) -> Results:
    """Return results of E-A4m."""
    found = {}
    for change, more in (("action-flip", 0.0), ("none", 3.0)):
        for arm in arms:
            before, after = BREAKOUT[arm]
            found[f"pre/{change}/{arm}"] = around(before, 0.4, n)
            found[f"endpoint/{change}/{arm}"] = around(after + more, 0.6, n)
    return made("E-A4m", found, n)


def staircase_results(arms: Collection[str] = tuple(SOLVED), n: int = 15) -> Results:
    """Return results of E-A5."""
    found = {
        f"solved/{arm}/{depth}": wilson(round(count * n / 15), n)
        for arm in arms
        for depth, count in zip(DEPTHS, SOLVED[arm], strict=True)
    }
    return made("E-A5", found, n)


def replay_results(n: int = 18) -> Results:
    """Return results of E3."""
    found = {f"auc/action-flip/catch/{arm}": around(v, 0.05, n) for arm, v in AREAS.items()}
    found["auc/reward-move/catch/rule"] = around(0.7, 0.05, n)
    found["auc/action-flip/catch-long/rule"] = around(0.3, 0.05, n)
    for replay, value in CONTRASTS.items():
        found[f"contrast/action-flip/{replay}"] = around(value, 0.08, n, family=11)
    return made("E3", found, n)


def made(
    assay: str,
    found: dict[str, Estimate],
    n: int,
    series: dict[str, NDArray[np.float64]] | None = None,
) -> Results:
    budget = f"disco103, {n} seeds, 6,000 iterations (348,000 interactions) a lifetime"
    return Results(assay, budget, {}, n, rows(assay, found, series or {}), (), series or {})


def whole() -> dict[str, Results]:
    """Return results of everything that these figures show."""
    several = (
        as_printed("exposure"),
        as_printed("synthetic"),
        as_printed("E-A3c", 12),
        as_printed("masking"),
        horizon_results(),
        breakout_results(),
        staircase_results(),
        replay_results(),
    )
    return {results.assay: results for results in several}


def few() -> dict[str, Results]:
    """Return what a small campaign has: two seeds, two learners, no masking."""
    arms = ("rule", "a2c")
    several = (
        as_printed("exposure", 2, arms),
        as_printed("synthetic", 2, arms),
        as_printed("E-A3c", 2, arms),
        horizon_results(("rule", "rule-pin"), 2),
        breakout_results(arms, 2),
        staircase_results(arms, 2),
    )
    return {results.assay: results for results in several}


def alone() -> dict[str, Results]:
    """Return one lifetime of one learner."""
    several = (as_printed("exposure", 1, ["rule"]), as_printed("E-A3c", 1, ["rule"]))
    return {results.assay: results for results in several}
