"""Reads of results for figures: cells, curves along a column, and words about the evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.assays import ASSAYS
from rulescope.assays.analysis import FEWEST
from rulescope.assays.bimodal_cells import is_level, learned_of
from rulescope.assays.comparison import comparable_value
from rulescope.assays.estimates import Label, Row, join_labels
from rulescope.assays.published import Published
from rulescope.render.arm_styles import arm_style, in_order
from rulescope.stats import Estimate, is_bimodal

if TYPE_CHECKING:
    from rulescope.assays.results import Results

Floats = NDArray[np.float64]
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
    """An estimate with what is drawn beside it."""

    seeds: tuple[float, ...] = ()
    """The values of the lifetimes behind it, where they are known."""
    published: Published | None = None
    """The published value, where there is a comparable one."""
    bimodal: str = ""
    """Name of the cell, and how many lifetimes learned, if these fall into two groups."""


class Curve(NamedTuple):
    """Estimates along a scale, in its order; what could not be estimated is NaN."""

    x: Floats
    y: Floats
    low: Floats
    high: Floats
    cells: tuple[Cell, ...] = ()
    """The estimate of every point with its lifetimes; empty where only arrays are known."""
    paths: Floats | None = None
    """[seeds, points]: the curve of every lifetime, where they are known."""

    @property
    def seeds(self) -> list[tuple[float, ...]]:
        """Of every point, the values of its lifetimes."""
        return [one.seeds for one in self.cells]

    @property
    def few(self) -> NDArray[np.bool_]:
        """[points]: where there are too few lifetimes for an interval."""
        if self.paths is not None:
            return np.full(len(self.x), len(self.paths) < FEWEST)
        if not self.cells:
            return np.zeros(len(self.x), dtype=bool)
        return np.array([is_range(one) for one in self.cells])

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
    return None if results is None or row is None or not row.known else as_cell(results, row)


def planned_cell(results: Results | None, quantity: str, **labels: Label) -> Estimate | None:
    """Return the estimate at ``labels``, even if it could not be made; None if unplanned."""
    row = None if results is None else results.estimates.find(quantity, **labels)
    return None if results is None or row is None else as_cell(results, row)


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
    assert results is not None  # it has rows
    found = tuple(as_cell(results, row) for row in rows)
    places = [float(row.labels[column]) for row in rows]
    table = np.array(
        [(place, one.value, *bounds(one)) for place, one in zip(places, found, strict=True)],
        dtype=np.float64,
    )
    return Curve(table[:, 0], table[:, 1], table[:, 2], table[:, 3], found)


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
    """Return the mean log of each arm at ``labels`` with its band and its lifetimes.

    Arms without a log are left out. ``along`` is the series of the horizontal axis [rows].
    """
    series = {} if results is None else results.series
    found = {}
    for arm in arms:
        band = series.get(join_labels("trajectory", *labels, arm))
        if band is not None and np.isfinite(band[0]).any():
            paths = series.get(join_labels("lifetimes", *labels, arm))
            x = series[along][: band.shape[1]]
            found[arm] = Curve(x, band[0], band[1], band[2], paths=paths)
    return found


def family_of(found: Iterable[Estimate]) -> str:
    """Return in words which family intervals are adjusted for; empty if they are pointwise."""
    largest = max((one.family for one in found), default=1)
    return f"adjusted for a family of {largest}" if largest > 1 else ""


def as_cell(results: Results, row: Row) -> Cell:
    """Return the estimate of ``row`` with its lifetimes and the published value."""
    seeds = row.seeds
    level = seeds is not None and is_level(results.assay, row.quantity)
    bimodal = ""
    if level and seeds is not None and is_bimodal(seeds):
        bimodal = f"{results.assay} {row.name} ({learned_of(seeds)} learned)"
    return Cell(
        **asdict(row.estimate),
        seeds=row.finite_seeds,
        published=comparable_value(results, row),
        bimodal=bimodal,
    )


def rescaled(found: Estimate, factor: float) -> Estimate:
    """Return an estimate, and what is drawn beside it, in other units."""
    value, low, high = (factor * end for end in (found.value, found.low, found.high))
    other = replace(found, value=value, low=low, high=high)
    if not isinstance(other, Cell):
        return other
    theirs = other.published
    if theirs is not None:
        value, low, high = (factor * end for end in theirs[:3])
        theirs = theirs._replace(value=value, low=low, high=high)
    return replace(other, seeds=tuple(factor * seed for seed in other.seeds), published=theirs)


def reach(found: Iterable[Estimate | None]) -> list[float]:
    """Return every number that is drawn of ``found``: values, bounds, lifetimes, published ones."""
    known = [one for one in found if one is not None]
    ends = [end for one in known for end in (one.value, *bounds(one))]
    for one in known:
        if isinstance(one, Cell):
            ends += [*one.seeds, *(one.published[:3] if one.published else ())]
    return [end for end in ends if math.isfinite(end)]


def is_range(found: Estimate) -> bool:
    """Return whether the ends of an estimate are its lowest and highest lifetime.

    There are too few for an interval then. (That of a share is exact for any number.)
    """
    return 1 < found.n < FEWEST and found.method != "wilson"


def bounds(found: Estimate) -> tuple[float, float]:
    """Return the interval, or the range of too few lifetimes; NaN for a single one.

    (A single lifetime has no interval, and must not look certain.)
    """
    if found.n < 2:
        return math.nan, math.nan
    if is_range(found) and math.isnan(found.low) and isinstance(found, Cell) and found.seeds:
        low, high = min(found.seeds), max(found.seeds)
        # A difference of centres need not lie among the differences within seeds.
        return (low, high) if low <= found.value <= high else (math.nan, math.nan)
    return found.low, found.high


def count_words(found: Iterable[Estimate | None]) -> str:
    """Return the number of lifetimes if one of ``found`` has too few for an interval, else "".

    >>> count_words([Estimate(0.5, 0.2, 0.8, 2, method="range")])
    'n = 2'
    """
    counts = sorted({one.n for one in found if one is not None and one.n})
    if not counts or counts[0] >= FEWEST:
        return ""
    return f"n = {'–'.join(str(n) for n in dict.fromkeys((counts[0], counts[-1])))}"


def point(found: Estimate) -> Curve:
    """Return one estimate as a curve, for limits of axes."""
    x, y, low, high = (np.array([end]) for end in (0.0, found.value, *bounds(found)))
    return Curve(x, y, low, high, (found,) if isinstance(found, Cell) else ())


def evidence(found: Iterable[Estimate]) -> str:
    """Say how many seeds and what kind of intervals stand behind these estimates."""
    known = list(found)
    if not known:
        return ""
    counts = sorted({e.n for e in known})
    many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    methods = {e.method for e in known if not math.isnan(e.low) and e.n > 1}
    kinds = [_KINDS[method] for method in _KINDS if method in methods]
    words = f"n = {many} {'seed' if counts == [1] else 'seeds'} a cell"
    return f"{words}; intervals: {', or '.join(kinds)}." if kinds else f"{words}."


_KINDS = {
    "bootstrap": "pointwise 95% (bootstrap over seeds)",
    "wilson": "95% (Wilson)",
}


def signed(number: str) -> str:
    """Return a printed number with a true minus sign."""
    return number.replace("-", "−")


def interval_text(found: Estimate, number: Callable[[float], str]) -> str:
    """Return an estimate with its interval, if it has one; ``number`` prints each of the three."""
    ends = bounds(found)
    value, low, high = (signed(number(end)) for end in (found.value, *ends))
    if math.isnan(ends[0]):
        return value
    return f"{value} ({low} to {high})" if is_range(found) else f"{value} [{low}, {high}]"


def adjusted(found: Estimate) -> str:
    """Return an estimate in words with its interval, and the family that it is adjusted for."""
    text = interval_text(found, "{:.3f}".format)
    family = found.family > 1 and text.endswith("]")
    return f"{text}, family of {found.family}" if family else text


def caption(results: Iterable[Results | None], *words: str) -> str:
    """Return the line below a figure: evidence and what arms mean, then budgets of the assays.

    (The page adds what its marks mean, and which panels are left out.)
    """
    known = [found for found in results if found is not None]
    assays: dict[str, list[str]] = {}
    for found in known:
        assays.setdefault(found.budget.rstrip("."), []).append(found.assay)
    budgets = [f"{', '.join(names)}: {budget}." for budget, names in assays.items()]
    return " ".join(part for part in (*words, *budgets) if part)
