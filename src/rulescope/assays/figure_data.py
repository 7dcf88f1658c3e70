"""Reads of results for figures: cells, curves along a column, and words about the evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.assays import ASSAYS
from rulescope.assays.bimodal_cells import bimodal_cells, describe_cells
from rulescope.assays.estimates import Label, Row, join_labels
from rulescope.render.arm_styles import arm_style, in_order
from rulescope.stats import Estimate

if TYPE_CHECKING:
    from rulescope.assays.results import Results

Floats = NDArray[np.float64]
FAINT = "Faint dots: single lifetimes."
INTERFACES = {"default": "default", "support30": "support 30", "linear": "linear"}


def arm_words(assay: str, arm: str) -> str:
    """Return what an arm of an assay is, in words; empty where its name says it."""
    return ASSAYS[assay].arm_words.get(arm, "") if assay in ASSAYS else ""


def explain_arms(assays: Iterable[str], arms: Iterable[str]) -> str:
    """Explain the printed names of those ``arms`` of ``assays`` that need it."""
    known = [
        f"{arm_style(arm).name}: {words}"
        for assay in assays
        for arm in arms
        if (words := arm_words(assay, arm))
    ]
    return f"{'; '.join(dict.fromkeys(known))}." if known else ""


@dataclass(frozen=True, slots=True)
class Cell(Estimate):
    """An estimate with the values of the lifetimes behind it, where they are known."""

    seeds: tuple[float, ...] = ()


class Curve(NamedTuple):
    """Estimates along a scale, in its order; what could not be estimated is NaN."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats
    seeds: tuple[tuple[float, ...], ...] = ()
    """Of every point, the values of its lifetimes where they are known; empty if none are."""

    @property
    def last(self) -> tuple[float, float]:
        """The last point that there is."""
        where = int(np.flatnonzero(np.isfinite(self.y))[-1])
        return float(self.x[where]), float(self.y[where])

    @property
    def level(self) -> float:
        """The mean height of the whole curve."""
        return float(np.nanmean(self.y))


def cell(results: Results | None, quantity: str, **labels: Label) -> Estimate | None:
    """Return the estimate at ``labels`` with its seeds; None if unplanned or not estimable."""
    row = None if results is None else results.estimates.find(quantity, **labels)
    return None if row is None or not row.known else with_seeds(row)


def planned_cell(results: Results | None, quantity: str, **labels: Label) -> Estimate | None:
    """Return the estimate at ``labels``, even if it could not be made; None if unplanned."""
    row = None if results is None else results.estimates.find(quantity, **labels)
    return None if row is None else row.estimate


def cells(results: Results | None, quantity: str, **labels: Label) -> list[Estimate]:
    """Return all estimates of ``quantity`` at ``labels`` that could be made."""
    rows = [] if results is None else results.estimates.where(quantity, **labels)
    return [row.estimate for row in rows if row.known]


def labels_run(
    results: Results | None, quantity: str, column: str, *, planned: bool = False, **labels: Label
) -> list[Any]:
    """Return the labels in ``column`` that have an estimate of ``quantity``, each once.

    With ``planned``, also those whose estimate could not be made.
    """
    if results is None:
        return []
    return results.estimates.labels(quantity, column, planned=planned, **labels)


def curve_along(
    results: Results | None, quantity: str, column: str = "scale", **labels: Label
) -> Curve | None:
    """Return the estimates of ``quantity`` at ``labels`` along ``column``; None without any."""
    rows = [] if results is None else results.estimates.where(quantity, **labels)
    rows = sorted(
        (row for row in rows if set(row.labels) == {column, *labels}),
        key=lambda row: float(row.labels[column]),
    )
    if not any(row.known for row in rows):
        return None
    points = [
        (float(row.labels[column]), row.estimate.value, *_bounds(row.estimate)) for row in rows
    ]
    table = np.array(points, dtype=np.float64)
    seeds = tuple(row.finite_seeds for row in rows)
    return Curve(table[:, 0], table[:, 1], table[:, 2], table[:, 3], seeds if any(seeds) else ())


def arms_run(
    results: Results | None, quantity: str, *, planned: bool = False, **labels: Label
) -> list[str]:
    """Return the arms that have an estimate of ``quantity``, in the order of all figures."""
    return in_order(labels_run(results, quantity, "arm", planned=planned, **labels))


def curves_by_arm(
    results: Results | None, quantity: str, column: str = "scale", **labels: Label
) -> dict[str, Curve]:
    """Return the curve of each arm along ``column``, in the order of all figures."""
    lines = {
        arm: curve_along(results, quantity, column, arm=arm, **labels)
        for arm in arms_run(results, quantity, planned=False, **labels)
    }
    return {arm: line for arm, line in lines.items() if line is not None}


def trajectories(
    results: Results | None, arms: Iterable[str], *labels: Label, along: str = "iteration"
) -> dict[str, Curve]:
    """Return the mean log of each arm at ``labels`` with its band, for those that have one.

    ``along`` is the series of the horizontal axis [rows].
    """
    series = {} if results is None else results.series
    bands = {arm: series.get(join_labels("trajectory", *labels, arm)) for arm in arms}
    return {
        arm: Curve(series[along][: band.shape[1]], *band)
        for arm, band in bands.items()
        if band is not None and np.isfinite(band[0]).any()
    }


def family_of(found: Iterable[Estimate]) -> str:
    """Return in words which family intervals are adjusted for; empty if they are pointwise."""
    largest = max((one.family for one in found), default=1)
    return f"adjusted for a family of {largest}" if largest > 1 else ""


def with_seeds(row: Row) -> Estimate:
    """Return the estimate of ``row`` with the values of its lifetimes, where they are known."""
    return (
        Cell(**asdict(row.estimate), seeds=row.finite_seeds) if row.finite_seeds else row.estimate
    )


def reach(found: Iterable[Estimate | None]) -> list[float]:
    """Return every number that is drawn of ``found``: values, bounds, and single lifetimes."""
    known = [one for one in found if one is not None]
    ends = [end for one in known for end in (one.value, one.low, one.high)]
    ends += [seed for one in known if isinstance(one, Cell) for seed in one.seeds]
    return [end for end in ends if math.isfinite(end)]


def _bounds(found: Estimate) -> tuple[float, float]:
    """Return the interval; a single lifetime has none, and must not look certain."""
    return (found.low, found.high) if found.n > 1 else (math.nan, math.nan)


def point(found: Estimate) -> Curve:
    """Return one estimate as a curve, for limits of axes."""
    x, y, low, high = (np.array([end]) for end in (0.0, found.value, found.low, found.high))
    return Curve(x, y, low, high, (found.seeds,) if isinstance(found, Cell) else ())


def evidence(found: Iterable[Estimate]) -> str:
    """Say how many seeds and what kind of intervals stand behind these estimates."""
    known = list(found)
    if not known:
        return ""
    counts = sorted({e.n for e in known})
    many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    methods = {e.method for e in known if not math.isnan(e.low) and e.n > 1} - {"none"}
    kinds = [_KINDS[method] for method in _KINDS if method in methods]
    words = f"n = {many} {'seed' if counts == [1] else 'seeds'} a cell"
    return f"{words}; intervals: {', or '.join(kinds)}." if kinds else f"{words}."


_KINDS = {
    "bootstrap": "pointwise 95% (bootstrap over seeds)",
    "wilson": "95% (Wilson)",
    "range": "lowest to highest seed, too few for a confidence interval",
}


def signed(number: str) -> str:
    """Return a printed number with a true minus sign."""
    return number.replace("-", "−")


def interval_text(found: Estimate, number: Callable[[float], str]) -> str:
    """Return an estimate with its interval, if it has one; ``number`` prints each of the three."""
    value, low, high = (signed(number(end)) for end in (found.value, found.low, found.high))
    if math.isnan(found.low) or found.method == "none" or found.n < 2:
        return value
    return f"{value} ({low} to {high})" if found.method == "range" else f"{value} [{low}, {high}]"


def adjusted(found: Estimate) -> str:
    """Return an estimate in words with its interval, and the family that it is adjusted for."""
    text = interval_text(found, "{:.3f}".format)
    family = found.family > 1 and text.endswith("]")
    return f"{text}, family of {found.family}" if family else text


def caption(results: Iterable[Results | None], *words: str, seeds: bool = True) -> str:
    """Return the line below a figure: budgets of the assays, evidence, what arms mean.

    And which cells are bimodal. ``seeds`` says whether single lifetimes are drawn where they
    are known.
    """
    known = [found for found in results if found is not None]
    assays: dict[str, list[str]] = {}
    for found in known:
        assays.setdefault(found.budget.rstrip("."), []).append(found.assay)
    budgets = [f"{', '.join(names)}: {budget}." for budget, names in assays.items()]
    drawn = seeds and any(
        len(row.finite_seeds) > 1  # a single one is the cell's value
        for found in known
        for row in found.estimates.rows
    )
    dots = FAINT if drawn else ""
    return " ".join(part for part in (*words, dots, _name_bimodal(known), *budgets) if part)


def _name_bimodal(results: Iterable[Results]) -> str:
    """Name the bimodal cells behind a figure."""
    cells = {
        f"{found.assay} {key}": count
        for found in results
        for key, count in bimodal_cells(found.assay, found.estimates).items()
    }
    words = describe_cells(cells)
    return f"{words[:1].upper()}{words[1:]}." if words else ""
