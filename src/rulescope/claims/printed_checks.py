"""Exact claims about printed tables: do their numbers follow from each other?

The tables are the rows of ``assays/published.json``. Every function takes rows, so that a test can
give it a wrong table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from rulescope.assays import published
from rulescope.assays.assay import Assay
from rulescope.assays.change.change import ASSAY as CHANGE
from rulescope.assays.estimates import Label
from rulescope.assays.exploration.discovery import CHANCE
from rulescope.assays.published import PublishedRow
from rulescope.assays.scale.scale import CONTRASTED, CRITERIA
from rulescope.claims.exact_result import ExactCheck, Inputs
from rulescope.stats import criterion_widths, half_best, random_discovery, wilson

Rows = Sequence[PublishedRow]
Place = frozenset[tuple[str, Label]]
"""The labels of a row, in any order."""

ROUNDING = {"score": 3, "threshold": 3, "minatar-context": 5, "OPEN": 6, "time": 1, "rmd": 1}
"""Digits after the point, by quantity or assay."""


def check_chance(_: Inputs) -> ExactCheck:
    """Test the printed counts of random play against two formulas of chance."""
    rows = printed_rows("discovery")
    free, fixed = least_probabilities(rows)
    return ExactCheck(
        "Exact two-sided binomial tests of the printed counts of random campaigns that found the "
        "goal, if an episode finds it with probability 2^-(N-1) or 2^-N; the least of the depths.",
        {"x:p-of-counts-given-N-1": free, "x:p-of-counts-given-N": fixed},
    )


def least_probabilities(rows: Rows) -> tuple[float, float]:
    """Return the least p of the counts of random play, given N - 1 and given N free choices."""
    counts = [
        (int(row.labels["depth"]), round(row.value * row.n), row.n)
        for row in rows
        if row.quantity == "found" and row.labels["arm"] == CHANCE
    ]
    # A sea of depth N has N - 1 moves that matter, so one of depth N + 1 has N.
    given = [
        min(two_sided(k, n, random_discovery(depth + more)) for depth, k, n in counts)
        for more in (0, 1)
    ]
    return given[0], given[1]


def two_sided(k: int, n: int, p: float) -> float:
    """Return the exact probability of a count as improbable as ``k`` of ``n``, or more so.

    >>> round(two_sided(9, 10, 0.5), 6)  # 0, 1, 9 and 10 of 10
    0.021484
    """
    each = [math.comb(n, j) * p**j * (1.0 - p) ** (n - j) for j in range(n + 1)]
    return min(math.fsum(one for one in each if one <= each[k] * (1.0 + 1e-7)), 1.0)


def check_wilson(_: Inputs) -> ExactCheck:
    """Recompute the printed Wilson intervals of discovery from the printed counts."""
    rows = [row for row in printed_rows("discovery") if row.quantity == "found"]
    return ExactCheck(
        f"The Wilson intervals of {len(rows)} printed counts, against the printed bounds.",
        {"x:wilson-error": wilson_error(rows)},
    )


def wilson_error(rows: Rows) -> float:
    """Return the largest difference between a printed and a recomputed bound."""
    errors = []
    for row in rows:
        found = wilson(round(row.value * row.n), row.n)
        errors += [abs(found.low - row.low), abs(found.high - row.high)]
    return float(np.max(errors))


def check_windows(_: Inputs) -> ExactCheck:
    """Recompute printed widths, thresholds and differences of widths from printed scores."""
    found = list(recomputed_windows(printed_rows("E1")))
    return ExactCheck(
        f"{len(found)} printed window widths, half-best thresholds and differences of widths, "
        "recomputed from the printed curves of scores.",
        {"x:windows-off": float(sum(not agrees for _, agrees in found))},
    )


def recomputed_windows(rows: Rows) -> Iterator[tuple[str, bool]]:
    """Yield every printed number of E1's windows, and whether it follows from the scores."""
    curves: dict[tuple[Label, Label], dict[float, float]] = {}
    for row in rows:
        if row.quantity == "score":
            curve = curves.setdefault((row.labels["task"], row.labels["arm"]), {})
            curve[float(row.labels["scale"])] = row.value

    def measure(task: Label, arm: Label, criterion: Label) -> float:
        curve = curves[task, arm]
        scales = np.array(sorted(curve))
        scores = np.array([curve[scale] for scale in sorted(curve)])
        return float(criterion_widths(scales, scores, CRITERIA[str(criterion)]))

    # Half of the best score, which is rounded as well.
    slack = 0.5 * _half_unit("score") + _half_unit("threshold")
    for row in rows:
        at = row.labels
        if row.quantity == "width":
            found = measure(at["task"], at["arm"], at["criterion"])
            yield row.name, _near(found, row.value, 0.0)
        elif row.quantity == "threshold":
            found = float(half_best(list(curves[at["task"], at["arm"]].values())))
            yield row.name, _near(found, row.value, slack)
        elif row.quantity == "contrast" and at["criterion"] in CONTRASTED:
            live, pin = (measure(at["task"], arm, at["criterion"]) for arm in ("live", "pin"))
            yield row.name, _near(live - pin, row.value, 0.0)


def check_sums(_: Inputs) -> ExactCheck:
    """Add up printed differences that must add up, and compare both recovery clocks."""
    found = {
        "sums of system differences": list(system_sums(printed_rows("minatar-context"))),
        "interactions of OPEN": list(open_interactions(printed_rows("OPEN"))),
        "recovery times on two clocks": list(recovery_clocks(printed_rows(CHANGE.id))),
    }
    off = sum(not agrees for rows in found.values() for _, agrees in rows)
    counted = ", ".join(f"{len(rows)} {what}" for what, rows in found.items())
    return ExactCheck(
        f"Printed rows recomputed from other printed rows, within rounding: {counted}.",
        {"x:rows-off": float(off)},
    )


def system_sums(rows: Rows) -> Iterator[tuple[str, bool]]:
    """Yield where the rule minus OPEN and OPEN minus Adam make the rule minus Adam."""
    value = _values(rows)
    for row in rows:
        if row.quantity == "rule-minus-open-adam":
            at = _place(row)
            total = value["rule-minus-open", at] + value["open-minus-open-adam", at]
            yield row.name, _near(total, row.value, 3 * _half_unit(row.assay))


def open_interactions(rows: Rows) -> Iterator[tuple[str, bool]]:
    """Yield where an interaction is the effect of the carry at its scale minus that at 1."""
    value = _values(rows)
    for row in rows:
        if row.quantity == "interaction":
            unit = frozenset({**row.labels, "scale": 1.0}.items())
            effect = value["live-minus-zero", _place(row)] - value["live-minus-zero", unit]
            yield row.name, _near(effect, row.value, 3 * _half_unit(row.assay))


def recovery_clocks(rows: Rows) -> Iterator[tuple[str, bool]]:
    """Yield where the time in thousands of interactions is the delay in iterations.

    Delays are printed for one of the two thresholds only.
    """
    value, thousands = _values(rows), _interactions_per_iteration(CHANGE) / 1000
    slack = _half_unit("time") + thousands * _half_unit("rmd")
    for row in rows:
        delay = value.get(("rmd", _place(row)))
        if row.quantity == "time" and delay is not None:
            yield row.name, _near(delay * thousands, row.value, slack)


def exposure_rows_differing(exposure: Rows, signals: Rows) -> int:
    """Return how many printed rows differ between exposures that are one experiment."""
    same = {("synth7", "rule"): "episodic", ("synth7", "a2c"): "episodic"}
    same["synth29", "rule"] = "masked"
    ours, theirs = ({row.name: row.printed for row in rows} for rows in (exposure, signals))
    differing = 0
    for (signal, arm), condition in same.items():
        for quantity in ("score", "steps", "fraction"):
            one = ours.get(f"{quantity}/{condition}/{arm}")
            other = theirs.get(f"{quantity}/{signal}/{arm}")
            # A bound that is not printed is NaN in both.
            differing += not np.array_equal(one or (), other or (), equal_nan=True)
    return differing


def printed_rows(assay: str) -> list[PublishedRow]:
    """Return the published rows of an assay, by id."""
    return [row for row in published.rows() if row.assay == assay]


def _interactions_per_iteration(assay: Assay) -> int:
    run = assay.grid(assay.budget("paper"))[0].runs[0]
    return run.lanes * run.steps


def _values(rows: Iterable[PublishedRow]) -> Mapping[tuple[str, Place], float]:
    return {(row.quantity, _place(row)): row.value for row in rows}


def _place(row: PublishedRow) -> Place:
    return frozenset(row.labels.items())


def _half_unit(what: str) -> float:
    """Return half a unit of the last printed digit."""
    return 0.5 * 10.0 ** -ROUNDING[what]


def _near(found: float, expected: float, slack: float) -> bool:
    """Return whether two numbers differ by no more than ``slack`` and the rounding of floats."""
    return abs(found - expected) <= slack + 1e-9
