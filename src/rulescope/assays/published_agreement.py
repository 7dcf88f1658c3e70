"""Whether an estimate of ours reproduces the published one: three words, by a stated rule."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

from rulescope.assays.bimodal_cells import LEVELS, RETURNS, is_level, learned_of
from rulescope.assays.estimates import Row
from rulescope.assays.frame import Floats
from rulescope.assays.published import Published
from rulescope.stats import Estimate, is_bimodal
from rulescope.stats.agreement import (
    Counts,
    estimate_difference,
    learned_counts,
    least_seeds,
    share_difference,
    shares_differ,
)
from rulescope.stats.centre import split_groups

Verdict = Literal[
    "contradicted",
    "undecided",
    "reproduced",
    "exact by construction",
    "other grid",
    "other budget",
    "other agent",
    "other rule",
    "no published interval",
]
JUDGED: tuple[Verdict, ...] = ("contradicted", "undecided", "reproduced")
"""The words that claims have too, disagreements first; the others say why nothing is judged."""
ORDER: tuple[Verdict, ...] = get_args(Verdict)
"""In which comparisons are listed."""
AGREEMENT_RULE = (
    "Rule: ours − published is a difference of independent samples, with an interval at the level "
    "of the published family (variances add up). Contradicted: that interval excludes 0, even "
    "after the rounding of printed numbers. Reproduced: it includes 0 and lies within the margin "
    "of its unit: 0.1 of a score, return or success rate; 0.25 of the lifetimes for shares; "
    "half a decade; a tenth of what is learned for reward rates; a tenth of the published value "
    "for all else. Undecided: everything else, and every interval of fewer than 6 seeds (9 in a "
    "family of 11, 11 in one of 30). A share is contradicted by Fisher's exact test, at any number "
    "of seeds. A two-humped cell (some lifetimes learned, the others did not) is compared by how "
    "many learned; how many did of the published follows from the printed mean and interval."
)
SCORE, SHARE, DECADE = 0.1, 0.25, 0.5
"""A score: an eighth of the capability threshold, less than any effect the paper calls one. A
share: half of what a majority takes. Widths are whole decades, so half a one is the same width."""
RELATIVE = 0.1
INTERACTIONS = 58_000.0
"""Of differences in time to mastery: a twentieth of a lifetime."""
RATES = {"minatar-breakout": 0.004, "minatar-freeway": 0.001}
"""A tenth of what learners gain over random play, in rewards per interaction."""
SPANS = {
    "catch-big": 2 - 2 / 24,
    "catch-0.001": 0.00175,
    "catch-1": 1.75,
    "catch-1000": 1750.0,
    "masked": 0.25,
    "action-flip": 1.75,
    "deep-sea-12": 1.0,
    "deep-sea-14": 1.0,
}
"""From random to optimal play in the units of each comparison of conventions."""
SHARES = ("solved", "found", "goal-in-log", "attained", "fraction", "ever", "floor")
"""Kinds of estimates that are shares of lifetimes."""
CONTRASTS = ("contrast-iqm", "no-aux", "retention", "between", "principal", "threshold", "pre")
"""Other kinds on that scale."""


class Agreement(NamedTuple):
    """A verdict, and what it rests on."""

    verdict: Verdict
    difference: Estimate
    """Ours minus published, with its interval; of a two-humped cell, of the share that learned."""
    margin: float
    """Within which the difference from a value that is reproduced must lie."""
    learned: Counts | None = None
    """How many of our lifetimes learned, if the cell is two-humped."""
    published_learned: Counts | None = None
    """How many of the published may have."""

    @property
    def words(self) -> str:
        """The verdict as it is printed, with the counts of a two-humped cell."""
        if self.learned is None:
            return self.verdict
        return (
            f"{self.verdict} (two-humped: {self.learned} learned, "
            f"published {self.published_learned})"
        )


def judge(assay: str, row: Row, printed: Published, rounded: float = 0.0) -> Agreement:
    """Return whether the estimate of ``row`` reproduces what was ``printed`` for it.

    ``rounded`` is by how much a printed number may be off.
    """
    ours, seeds = row.estimate, row.seeds
    unit = margin(assay, row, printed)
    if row.quantity in SHARES:
        counts = (_count(ours.value, ours.n), _count(printed.value, printed.n))
        return _of_shares(*counts, ours.family)
    apart = _widened(estimate_difference(ours, as_estimate(printed)), rounded)
    if by_construction(row):
        return Agreement("exact by construction", apart, unit)
    if math.isnan(printed.low):
        return Agreement("no published interval", apart, unit)
    if is_level(assay, row.quantity) and seeds is not None and is_bimodal(seeds):
        return _of_humps(ours, printed, seeds)
    if min(ours.n, printed.n) < least_seeds(ours.family) or math.isnan(apart.low):
        return Agreement("undecided", apart, unit)
    return Agreement(_verdict(apart, unit), apart, unit)


def as_estimate(printed: Published) -> Estimate:
    """Return a printed value as an estimate."""
    return Estimate(
        printed.value,
        printed.low,
        printed.high,
        printed.n,
        0,
        printed.family,
        "none" if math.isnan(printed.low) else "bootstrap",
    )


def by_construction(row: Row) -> bool:
    """Return whether an estimate is a reference compared with itself, which no data can change."""
    at_unit_scale = row.labels.get("scale") == 1.0
    return (row.quantity in ("displacement", "retention") and at_unit_scale) or (
        row.quantity == "difference" and row.labels == {"arm": "default"}
    )


def margin(assay: str, row: Row, printed: Published) -> float:
    """Return how far ours may be from a value that is reproduced, in its units."""
    quantity, labels = row.quantity, row.labels
    if quantity in SHARES:
        return SHARE
    if quantity in ("gap", "shift"):
        return SCORE * SPANS[str(labels["comparison"])]
    if quantity == "width" or (assay, quantity) == ("E1", "contrast"):
        return DECADE
    if assay in ("OPEN", "minatar-context", "masking") and quantity != "rate":
        game = str(labels.get("task", "minatar-breakout"))
        return RATES[game.replace("gymnax", "minatar")]
    if labels.get("readout") == "mastery":
        return INTERACTIONS
    contrast = quantity in ("contrast", "effect", "interaction", *CONTRASTS)
    if assay not in RETURNS and (
        quantity in LEVELS or contrast or quantity.startswith("difference")
    ):
        return SCORE
    return RELATIVE * abs(printed.value)


def rounding(printed: Iterable[Published]) -> float:
    """Return half a unit of the last digit that is printed of any value of one kind.

    Whole numbers are counts or multiples of a grid, which nothing was rounded to.

    >>> rounding([Published(0.517, 0.152, 0.866), Published(0.0, 0.0, 0.0)])
    0.0005
    >>> rounding([Published(3.0, 2.0, 3.0)])
    0.0
    """
    numbers = (float(n) for one in printed for n in (one.value, one.low, one.high) if n == n)
    digits = max((_decimals(repr(number)) for number in numbers), default=0)
    return 0.5 * 10.0**-digits if digits > 0 else 0.0


def _decimals(text: str) -> int:
    """Return the decimals of a number as Python prints it."""
    base, _, exponent = text.partition("e")
    return len(base.partition(".")[2].rstrip("0")) - int(exponent or 0)


def _of_shares(ours: Counts, theirs: Counts, family: int) -> Agreement:
    apart = share_difference(ours, theirs)
    inside = apart.low >= -SHARE and apart.high <= SHARE
    verdict: Verdict = "reproduced" if inside else "undecided"
    if shares_differ(ours, theirs, family):
        verdict = "contradicted"
    return Agreement(verdict, apart, SHARE)


def _of_humps(ours: Estimate, printed: Published, seeds: Floats) -> Agreement:
    """Judge a cell in which some lifetimes learned and the others did not."""
    lower, upper = split_groups(seeds)
    own = learned_of(seeds)
    theirs = learned_counts(as_estimate(printed), float(lower[-1] + upper[0]) / 2)
    return _of_shares(own, theirs, ours.family)._replace(learned=own, published_learned=theirs)


def _verdict(apart: Estimate, unit: float) -> Verdict:
    if apart.low > 0 or apart.high < 0:
        return "contradicted"
    return "reproduced" if -unit <= apart.low and apart.high <= unit else "undecided"


def _count(share: float, n: int) -> Counts:
    return Counts(round(share * n), round(share * n), n)


def _widened(apart: Estimate, by: float) -> Estimate:
    return Estimate(apart.value, apart.low - by, apart.high + by, apart.n, 0, apart.family, "none")
