"""Our estimates beside the published ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from rulescope.assays import find, published
from rulescope.assays.published import Published
from rulescope.assays.results import Column, Results, Table
from rulescope.stats import Estimate, Method

SMALL = 0.1


class Comparison(NamedTuple):
    """One estimate of ours and the value that was published for it."""

    key: str
    ours: Estimate
    published: Published
    overlap: bool | None
    """Whether the two intervals have a point in common; None if either has none to speak of, or if
    they are of different rules or grids."""
    same_budget: bool
    """Whether ours rests on the same rule, conventions, seeds and iterations as the published."""
    same_grid: bool
    """Whether ours rests on the same scales, where that matters."""


def compare(results: Results) -> list[Comparison]:
    """Return a comparison for each of our estimates that has a published value, in our order."""
    printed = published.estimates(results.assay)
    paper = find(results.assay).budget("paper")
    # A deeper sea has longer lifetimes: compare with what was published for the seas that were run.
    tasks = [str(task) for task in results.axes.get("task", ()) if task in paper.tasks]
    longest = max(paper.length(task) for task in tasks or paper.tasks)
    terms = (paper.rule, paper.profile, longest)
    as_published = (results.rule, results.profile, results.iterations) == terms
    other_rule = results.rule != paper.rule
    return [
        Comparison(
            key=key,
            ours=ours,
            published=printed[key],
            overlap=None
            if other_rule or key in results.other_grid
            else _overlap(ours, printed[key]),
            same_budget=as_published and ours.n == printed[key].n,
            same_grid=key not in results.other_grid,
        )
        for key, ours in results.estimates.items()
        if key in printed and not math.isnan(ours.value)
    ]


def table(results: Results, rows: Sequence[Comparison]) -> Table:
    """Return comparisons as a table."""
    return Table(
        label=f"comparison-{results.assay}",
        title=f"{results.assay}: our estimates beside the published ones",
        columns=(
            Column("Estimate"),
            Column("n", digits=0),
            Column("Ours", digits=_digits(rows)),
            Column("Published", digits=_digits(rows)),
            Column("Intervals"),
        ),
        rows=tuple(
            (row.key, row.ours.n, row.ours, _printed(row.published), _judged(row)) for row in rows
        ),
        note=" ".join([f"Ours: {results.budget}.", *remarks(results, rows)]),
        tells_n=False,
    )


def remarks(results: Results, rows: Sequence[Comparison]) -> list[str]:
    """Return what must be known when ``rows`` are read: how many agree, what differs; sentences."""
    judged = [row.overlap for row in rows if row.overlap is not None]
    said = [f"{sum(judged)} of {len(judged)} pairs of intervals overlap."] if judged else []
    paper = find(results.assay).budget("paper")
    if (results.rule, results.profile) != (paper.rule, paper.profile):
        profile = f", profile {paper.profile}" if paper.profile else ""
        said.append(f"The published values are of {paper.rule}{profile}.")
    if not all(row.same_budget for row in rows):
        said.append("Ours do not have the published budget.")
    if not all(row.same_grid for row in rows):
        said.append("Other grid: ours depends on which cells were run, which are not all.")
    return said


def _digits(rows: Sequence[Comparison]) -> int:
    """Return the decimals that tell values apart: rewards per interaction are small numbers."""
    return 6 if all(abs(row.published.value) < SMALL for row in rows) else 3


def _judged(row: Comparison) -> str | None:
    if not row.same_grid:
        return "other grid"
    return {True: "overlap", False: "apart", None: None}[row.overlap]


def _printed(value: Published) -> Estimate:
    method: Method = "none" if math.isnan(value.low) else "bootstrap"
    return Estimate(value.value, value.low, value.high, value.n, 0, value.family, method)


def _overlap(ours: Estimate, theirs: Published) -> bool | None:
    if ours.method == "range":  # of one or two lifetimes: no statement about others
        return None
    if any(math.isnan(bound) for bound in (ours.low, ours.high, theirs.low, theirs.high)):
        return None
    return ours.low <= theirs.high and theirs.low <= ours.high
