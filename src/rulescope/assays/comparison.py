"""Our estimates beside the published ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rulescope.assays import Budget, find, published
from rulescope.assays.bimodal_cells import LEVELS
from rulescope.assays.estimates import Row
from rulescope.assays.published import Published
from rulescope.assays.published_agreement import (
    AGREEMENT_RULE,
    JUDGED,
    ORDER,
    SHARES,
    Agreement,
    Verdict,
    as_estimate,
    judge,
    rounding,
)
from rulescope.assays.results import Column, Results, Table, counted
from rulescope.learners.learner_config import VARIANTS
from rulescope.stats import Estimate

SMALL = 0.1


BASELINES = frozenset(
    name.partition("-")[0] for name, spec in VARIANTS.items() if not hasattr(spec, "rule")
)
"""First words of the arms that are learners without a rule."""
OWN_LEVELS = (*LEVELS, *SHARES, "pre", "rmd", "time", "steps", "mastery", "rate")
"""Kinds of estimates about one arm alone, whose key names it."""


class Comparison(NamedTuple):
    """One estimate of ours and the value that was published for it."""

    row: Row
    published: Published
    agreement: Agreement
    same_budget: bool
    """Whether ours rests on the same rule, conventions, seeds and iterations as the published."""

    @property
    def key(self) -> str:
        """The printed name of the estimate."""
        return self.row.name

    @property
    def ours(self) -> Estimate:
        """Our estimate."""
        return self.row.estimate

    @property
    def same_grid(self) -> bool:
        """Whether ours rests on the same set of cells, where that matters."""
        return not self.row.other_grid

    @property
    def verdict(self) -> Verdict:
        """Whether ours reproduces the published, or why that cannot be judged."""
        return self.agreement.verdict


def compare(results: Results) -> list[Comparison]:
    """Return a comparison for each of our estimates that has a published value.

    Contradicted values come first, then undecided ones, then reproduced ones; within these the
    order is that of our estimates.
    """
    if results.worlds:  # published values are of the assay's own worlds
        return []
    printed = published.estimates(results.assay)
    precision = _rounding(printed)
    paper = find(results.assay).budget("paper")
    longest = _longest(results, paper)
    terms = (paper.subject.rule, paper.agent, longest)
    as_published = (results.rule, results.agent, results.iterations) == terms
    rows = []
    for row in results.estimates.rows:
        if row.name not in printed or not row.known:
            continue
        theirs = printed[row.name]
        found = judge(results.assay, row, theirs, precision[row.quantity])
        barred = _not_comparable(results, row, paper, longest)
        rows.append(
            Comparison(
                row=row,
                published=theirs,
                agreement=found if barred is None else found._replace(verdict=barred),
                same_budget=as_published and row.estimate.n == theirs.n,
            )
        )
    return sorted(rows, key=lambda row: ORDER.index(row.verdict))


def _longest(results: Results, paper: Budget) -> int:
    """Return the iterations of the longest published lifetime in the tasks that were run.

    (A deeper sea has longer lifetimes.)
    """
    tasks = [str(task) for task in results.axes.get("task", ()) if task in paper.tasks]
    return max(paper.length(task) for task in tasks or paper.tasks)


def comparable_value(results: Results, row: Row) -> Published | None:
    """Return the published value to draw beside ``row``; None without a comparable one."""
    theirs = published.estimates(results.assay).get(row.name)
    if theirs is None:
        return None
    paper = find(results.assay).budget("paper")
    barred = _not_comparable(results, row, paper, _longest(results, paper))
    return theirs if barred is None else None


def _not_comparable(results: Results, row: Row, paper: Budget, longest: int) -> Verdict | None:
    """Return why ``row`` cannot be judged by the published value; None if it can."""
    if not _of_baseline(row):
        if results.rule != paper.subject.rule:
            return "other rule"
        if results.agent != paper.agent:
            return "other agent"
    if results.iterations != longest:
        return "other budget"
    return "other grid" if row.other_grid else None


def _of_baseline(row: Row) -> bool:
    """Return whether an estimate is about a learner without a rule, the same under any agent."""
    return row.quantity in OWN_LEVELS and (
        str(row.labels.get("arm")).partition("-")[0] in BASELINES
    )


def table(results: Results, rows: Sequence[Comparison]) -> Table:
    """Return comparisons as a table."""
    digits = _digits(rows)
    return Table(
        label=f"comparison-{results.assay}",
        title=f"{results.assay}: our estimates beside the published ones",
        columns=(
            Column("Estimate"),
            Column("n", digits=0),
            Column("Ours", digits=digits),
            Column("Published", digits=digits),
            Column("Ours − published", digits=digits),
            Column("Verdict"),
        ),
        rows=tuple(
            (
                row.key,
                row.ours.n,
                row.ours,
                as_estimate(row.published),
                apart(row),
                row.agreement.words,
            )
            for row in rows
        ),
        note=" ".join([f"Ours: {results.budget}.", *remarks(results, rows)]),
        tells_n=False,
    )


def apart(row: Comparison) -> Estimate | None:
    """Return the difference of a comparison where there is something to judge."""
    found = row.agreement.difference
    if row.verdict not in JUDGED or math.isnan(found.low):
        return None
    return replace(found, method="bootstrap")  # printed with its interval


def remarks(results: Results, rows: Sequence[Comparison]) -> list[str]:
    """Return sentences below ``rows``: how many have each verdict, by which rule, and the terms."""
    counts = tally(rows)
    judged = sum(counts.values())
    said = [f"{in_words(counts)}. {AGREEMENT_RULE}"] if judged else []
    paper = find(results.assay).budget("paper")
    if (results.rule, results.agent) != (paper.subject.rule, paper.agent):
        agent = f", agent {paper.agent}" if paper.agent else ""
        said.append(f"The published values are of {paper.subject.rule}{agent}.")
    if not all(row.same_budget for row in rows):
        said.append("Ours do not have the published budget.")
    if not all(row.same_grid for row in rows):
        said.append("Other grid: ours depends on which cells were run, which are not all.")
    return said


def tally(rows: Iterable[Comparison]) -> dict[Verdict, int]:
    """Return how many of ``rows`` have each of the three verdicts, disagreements first."""
    found = Counter(row.verdict for row in rows)
    return {verdict: found[verdict] for verdict in JUDGED}


def in_words(counts: Mapping[Verdict, int]) -> str:
    """Return how many comparisons have each verdict.

    >>> in_words({"contradicted": 1, "undecided": 12, "reproduced": 3})
    'Of 16 comparisons 1 is contradicted, 12 are undecided, 3 are reproduced'
    """
    judged = {verdict: counts[verdict] for verdict in JUDGED}
    parts = [f"{n:,} {'is' if n == 1 else 'are'} {verdict}" for verdict, n in judged.items()]
    return f"Of {counted(sum(judged.values()), 'comparison')} {', '.join(parts)}"


def _rounding(printed: Mapping[str, Published]) -> dict[str, float]:
    """Return by how much printed numbers of each kind may be off."""
    kinds: dict[str, list[Published]] = {}
    for key, value in printed.items():
        kinds.setdefault(key.partition("/")[0], []).append(value)
    return {name: rounding(values) for name, values in kinds.items()}


def _digits(rows: Sequence[Comparison]) -> int:
    """Return the decimals that tell values apart: rewards per interaction are small numbers.

    (Whole numbers, such as a share of all lifetimes, need none.)
    """
    values = [row.published.value for row in rows if row.published.value % 1]
    return 6 if values and all(abs(value) < SMALL for value in values) else 3
