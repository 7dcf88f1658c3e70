"""Made-up results of every assay, whole and in part, for tables and figures to show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from named_rows import rows
from rulescope.assays.results import Results
from rulescope.stats import Estimate

SCALES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
TASKS = ("catch", "catch-dense", "catch-long")
FACTORIAL = ("live", "pin", "hold", "both")
EIGHT = (
    "live",
    "freeze",
    "match-clamp",
    "match-natural",
    "cross-clamp",
    "cross-natural",
    "random-clamp",
    "random-natural",
)
CONTROLS = ("placebo", "null", "permute-natural", "permute-clamp")
MISSING = Estimate(float("nan"), float("nan"), float("nan"), 0, method="none")


def around(value: float, n: int = 12, *, family: int = 1, spread: float = 0.08) -> Estimate:
    """Return an estimate; of few seeds, one with a range for its interval."""
    if n < 3:
        return Estimate(value, value - spread, value + spread, n, method="range")
    return Estimate(value, value - spread, value + spread, n, 10_000, family)


def scale_results(
    arms: Iterable[str] = FACTORIAL,
    scales: Iterable[float] = SCALES,
    tasks: Iterable[str] = TASKS,
    n: int = 12,
) -> Results:
    """Return results of E1: every arm fails below a scale of its own."""
    found: dict[str, Estimate] = {}
    for i, task in enumerate(tasks):
        for j, arm in enumerate(arms):
            for scale in scales:
                score = 1 / (1 + np.exp(-3 * (np.log10(scale) + 3 - j - i / 2)))
                found[f"score/{task}/{arm}/{scale:g}"] = around(float(score), n)
                for vector in ("h", "c", "hc") if arm in ("live", "hold") else ():
                    moved = around(5 * abs(float(np.log10(scale))) * (1 + j), n)
                    found[f"displacement/{task}/{arm}/{scale:g}/{vector}"] = moved
            for criterion in ("half-best", "0.7", "0.8", "0.9"):
                found[f"width/{task}/{arm}/{criterion}"] = around(6.0 - j, n, spread=1)
        for criterion in ("half-best", "0.8"):
            found[f"contrast/{task}/{criterion}"] = around(1.0, n, family=11, spread=1)
    return _results("E1", found, n)


def inheritance_results(
    arms: Iterable[str] = EIGHT, scales: Iterable[float] = (0.001, 1000.0), n: int = 12
) -> Results:
    """Return results of E2 with trajectories."""
    iteration = np.arange(20.0, 401.0, 20.0)
    found: dict[str, Estimate] = {}
    series: dict[str, NDArray[np.float64]] = {"iteration": iteration}
    for scale in scales:
        for turn, arm in enumerate(arms):
            score = 0.9 - 0.1 * turn if scale < 1 else 0.99
            found[f"score/{scale:g}/{arm}"] = around(score, n)
            line = score * (1 - np.exp(-iteration / 80))
            series[f"trajectory/{scale:g}/{arm}"] = np.stack([line, line - 0.1, line + 0.1])
        found[f"interaction/{scale:g}"] = around(0.39265, n, family=11, spread=0.3)
    return _results("E2", found, n, series)


def interface_results(n: int = 12) -> Results:
    """Return results of E-IF."""
    found = {}
    for turn, interface in enumerate(("default", "support30", "linear")):
        found[f"score/{interface}"] = around(0.99 + 0.002 * turn, n, spread=0.005)
        found[f"bins/{interface}"] = around(2.2 - 0.3 * turn, n)
    return _results("E-IF", found, n)


def state_results(n: int = 12) -> Results:
    """Return results of P1."""
    found = {}
    for interface in ("default", "support30", "linear"):
        for scale in (0.001, 1.0, 1000.0):
            key = f"effect/{interface}/{scale:g}"
            found[key] = around(0.8 if scale < 1 else 0.0, n)
            found[f"{key}/family"] = around(found[key].value, n, family=15, spread=0.15)
    return _results("P1", found, n)


def whole() -> dict[str, Results]:
    """Return results of every assay in full."""
    made = (scale_results(), inheritance_results(), interface_results(), state_results())
    return {results.assay: results for results in made}


def with_controls() -> dict[str, Results]:
    """Return results with every arm that there is, the controls too."""
    e1, e2 = (*FACTORIAL, "placebo", "null"), (*EIGHT, *CONTROLS)
    return {"E1": scale_results(e1), "E2": inheritance_results(e2)}


def narrow() -> dict[str, Results]:
    """Return results of a quick audit: E1 alone, two arms, four scales, two seeds, a gap."""
    results = scale_results(("live", "pin"), (0.001, 0.1, 1.0, 1000.0), ("catch",), n=2)
    found = {**results.estimates, "score/catch/live/0.1": MISSING}
    return {"E1": _results("E1", found, 2)}


def sparse() -> dict[str, Results]:
    """Return next to nothing: one scale, one seed, one recipient scale, two arms."""
    e1 = scale_results(("live",), (0.5,), ("catch-long",), n=1)
    nan = float("nan")
    alone = {k: Estimate(e.value, nan, nan, 1, method="none") for k, e in e1.estimates.items()}
    e2 = inheritance_results(("live", "cross-natural"), (0.001,), n=1)
    return {"E1": _results("E1", alone, 1), "E2": e2}


def _results(
    assay: str,
    found: dict[str, Estimate],
    n: int,
    series: Mapping[str, NDArray[np.float64]] | None = None,
) -> Results:
    budget = f"{n} seeds, 400 iterations (23,200 interactions) a lifetime"
    return Results(assay, budget, {}, n, rows(assay, found, series or {}), (), series or {})
