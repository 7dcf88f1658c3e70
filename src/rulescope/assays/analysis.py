"""Readouts of single lifetimes, estimates of cells, and the results that analyses return."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from rulescope.assays.bimodal_cells import bimodal_cells, describe_cells, name_below
from rulescope.assays.estimates import Estimates, Label, join_labels
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import Results, Table, in_numbers
from rulescope.stats import (
    Estimate,
    EstimateArray,
    Family,
    Statistic,
    TailWarning,
    endpoint,
    estimate,
    last_fraction,
    seed_blocks,
    tail_from,
    tail_mean,
    trimmed_mean,
    widen_to_student,
)
from rulescope.stats import estimates as cell_estimates

CORE_DRAWS = 10_000
"""Bootstrap draws of the primary assays, of P1, and of areas after a change."""
ATLAS_DRAWS = 1_000
"""Bootstrap draws of most other assays."""
FEWEST = 3
"""Seeds below which there is no bootstrap."""
OPTIMAL = " (0 random, 1 optimal)"
"""What a score is in the worlds of the assays; that of other worlds is in their references."""
SCORE = (
    f"score: mean log row of the last {{part}} of a lifetime{OPTIMAL}, "
    "integer-trimmed mean over seeds"
)


def tail20(frame: Frame, column: str = "score", **labels: Label) -> Floats:
    """Return [..., seeds]: the mean of a log column over the last fifth of each lifetime."""
    rows = tail_from(frame.iteration, 0.8, frame.iterations)
    return tail_mean(frame.log(column, **labels), rows)


def tail15(frame: Frame, column: str = "score", **labels: Label) -> Floats:
    """Return [..., seeds]: the mean of the finite ones among the last 15 % of the log rows."""
    return tail_mean(frame.log(column, **labels), last_fraction(len(frame.iteration), 0.15))


def tail10(frame: Frame, column: str = "score", **labels: Label) -> Floats:
    """Return [..., seeds]: the mean of the finite ones among the last 10 % of the log rows."""
    return tail_mean(frame.log(column, **labels), last_fraction(len(frame.iteration), 0.1))


def last_row(frame: Frame, column: str = "score", **labels: Label) -> Floats:
    """Return [..., seeds]: the last row of a log column."""
    return tail_mean(frame.log(column, **labels), endpoint(frame.iteration, frame.iterations))


def estimate_cells(
    frame: Frame, quantity: str, values: Floats, draws: int, statistic: Statistic = trimmed_mean
) -> Estimates:
    """Return a row of ``quantity`` for every planned cell of ``values`` [*axes, seeds].

    All cells share the same draws of seeds. The values of single lifetimes go with their row.
    """
    blocks = seed_blocks(len(frame.seeds), draws)
    return as_cells(frame, quantity, values, cell_estimates(values, blocks, statistic))


def as_cells(frame: Frame, quantity: str, values: Floats, found: EstimateArray) -> Estimates:
    """Return a row for every planned cell of ``found`` [*axes], made from ``values``."""
    rows = Estimates()
    for labels, place in frame.cells():
        seeds = values[place] if frame.counts[place] else None
        rows.add(quantity, found[place], labels, seeds=seeds)
    return rows


def add_differences(
    found: Estimates, quantity: str, labels: Mapping[str, Label], each: Floats | None
) -> None:
    """Add a row for differences within seeds [seeds]; None: planned, but without lifetimes.

    Their trimmed mean, with an interval at least as wide as Student's: a bootstrap of a few seeds
    alone would be too narrow.
    """
    if each is None:
        found.add(quantity, missing_estimate(), labels)
        return
    one = estimate(each, seed_blocks(len(each), CORE_DRAWS))
    found.add(quantity, widen_to_student(one, each), labels, seeds=each)


def missing_estimate(family: int = 1) -> Estimate:
    """Return the estimate of something planned for which there are no lifetimes."""
    return Estimate(math.nan, math.nan, math.nan, n=0, family=family, method="none")


def without_interval(value: float, n: int) -> Estimate:
    """Return an estimate for which no interval is given."""
    return Estimate(float(value), math.nan, math.nan, n=n, method="none")


@contextmanager
def collect_tail_warnings(notes: list[str]) -> Iterator[None]:
    """Append warnings about thin tails to ``notes``, each once; pass other warnings on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TailWarning)
        yield
    for found in caught:
        if not issubclass(found.category, TailWarning):
            warnings.warn_explicit(found.message, found.category, found.filename, found.lineno)
        elif str(found.message) not in notes:
            notes.append(str(found.message))


def note_missing(frame: Frame) -> list[str]:
    """Return a note if planned lifetimes are missing."""
    gone, planned = int((frame.planned & ~frame.completed).sum()), int(frame.planned.sum())
    if not gone:
        return []
    return [f"{gone} of {planned} lifetimes are missing; estimates use the seeds that exist"]


def describe_budget(frame: Frame) -> str:
    """Return the subject of ``frame``, its seeds a cell and the length of its lifetimes."""
    counts = frame.counts[frame.counts > 0]
    seeds = in_numbers(int(counts.min(initial=len(frame.seeds))), int(counts.max(initial=0)))
    where = f", in {', '.join(frame.worlds)}" if frame.worlds else ""
    return f"{_subject(frame)}{seeds}, {_length(frame)}{where}"


def _subject(frame: Frame) -> str:
    agent = f"agent {frame.agent}, " if frame.agent else ""
    return f"{frame.rule}, {agent}" if frame.ruled else ""


def _length(frame: Frame) -> str:
    planned = frame.lengths > 0
    shortest = int(frame.lengths[planned].min(initial=frame.iterations))
    less = frame.interactions * shortest // max(frame.iterations, 1)
    if frame.spans is not None:
        less = int(frame.spans[planned].min(initial=frame.interactions))
    iterations = _span(shortest, frame.iterations)
    return f"{iterations} iterations ({_span(less, frame.interactions)} interactions) a lifetime"


def _span(least: int, most: int) -> str:
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def make_results(
    assay: str,
    frame: Frame,
    found: Estimates,
    tables: Iterable[Table],
    notes: list[str],
    series: Mapping[str, Floats] | None = None,
) -> Results:
    """Return the results of an analysis of ``frame``; two-bimodal cells are named in notes."""
    bimodal = bimodal_cells(assay, found) if frame.normalised else {}
    notes = [*(f"in {name}: {each.words}" for name, each in frame.worlds.items()), *notes]
    notes = [*notes, describe_cells(bimodal)] if bimodal else notes
    return Results(
        assay=assay,
        budget=describe_budget(frame),
        axes=dict(frame.axes),
        seeds=len(frame.seeds),
        estimates=found,
        tables=name_below(tables, found, bimodal),
        series=series or {},
        notes=tuple(notes),
        iterations=frame.iterations,
        rule=frame.rule,
        agent=frame.agent,
        worlds=frame.worlds,
    )


def adjusted(family: Family) -> str:
    """Return the kind of interval that shares its error over ``family``."""
    return f"adjusted for a family of {family.size}"


def table_note(frame: Frame, what: str, draws: int, kind: str = "pointwise") -> str:
    """Return the note below a table; n is added where the table is printed, from its cells."""
    if frame.worlds:  # their references are named below
        what = what.replace(OPTIMAL, "")
    parts = [f"{_subject(frame)}{_length(frame)}", what]
    parts += [f"in {name}, {each.words}" for name, each in frame.worlds.items()]
    if frame.counts.max() >= FEWEST:
        parts.append(f"95 % percentile intervals, {kind}, {draws:,} seed-block draws")
    else:
        parts.append("too few seeds for a bootstrap interval")
    return "; ".join(parts) + "."


def trajectories(frame: Frame, column: str, draws: int = ATLAS_DRAWS) -> dict[str, Floats]:
    """Return ``trajectory/<labels>`` and ``lifetimes/<labels>`` of each cell with lifetimes.

    The first is [3, rows]: value, low and high of a log column at every log row; the second
    [seeds, rows]: the column in every lifetime that there is.
    """
    blocks = seed_blocks(len(frame.seeds), draws)
    series = {}
    for labels, place in frame.cells():
        if frame.counts[place]:
            each = frame.log(column)[place]
            rows = cell_estimates(each.T, blocks)
            series[join_labels("trajectory", *labels.values())] = np.stack(
                [rows.value, rows.low, rows.high]
            )
            finite = np.isfinite(each).any(axis=1)
            series[join_labels("lifetimes", *labels.values())] = each[finite]
    return series
