"""Which undecided claim to run next: the one with the least compute per expected decision.

A step brings one claim to its next planned look: all arms of every seed up to that number, because
contrasts are paired. Steps of different claims share lifetimes, so a step counts every claim that
it brings to a look. The chance of a decision comes from the seeds so far (Laplace's rule of
succession), to which some like seeds are added where the published numbers decide the claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, prod
from typing import NamedTuple

from rulescope.claims.compute_cost import Pace
from rulescope.claims.decision import Reading, Side, claimed_sides, opposite_sides
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.claims.verdicts import Verdict, errors_of, judge_published
from rulescope.run_spec import RunSpec
from rulescope.stats.sequential_counts import NEVER

UNCOUNTED = 0.5
"""Chance of a decision by an interval alone, of which no count says anything."""
PUBLISHED_SEEDS = 8
"""Like seeds that are added to a part that the published numbers decide."""


class Step(NamedTuple):
    """Lifetimes that bring a claim to its next look."""

    verdict: Verdict
    look: int
    missing: dict[str, RunSpec]
    """By id, donors included; ordered by seed."""
    minutes: float
    """Of one core."""
    chance: float
    """That the claim is decided at that look."""
    served: tuple[str, ...]
    """Every claim that these lifetimes bring to a look."""
    decisions: float
    """Expected number of claims decided."""

    @property
    def price(self) -> float:
        """Core-minutes for each expected decision."""
        return self.minutes / max(self.decisions, 1e-9)


def order_steps(verdicts: Sequence[Verdict], records: RecordEvidence, pace: Pace) -> list[Step]:
    """Return a step for every undecided verdict that has a look left, cheapest decision first.

    A verdict whose open parts no evidence decides has none.
    """
    steps = [
        _best_step(verdict, records, pace)
        for verdict in verdicts
        if verdict.next_look and _decidable(verdict, records)
    ]
    return sorted((_with_others(step, steps) for step in steps), key=lambda step: step.price)


def _decidable(verdict: Verdict, records: RecordEvidence) -> bool:
    """Return whether there is an undecided part that a count or an interval may decide."""
    return any(
        found.outcome == "undecided" and records.empty_reading(found.part).decidable
        for found in verdict.parts
    )


def _best_step(verdict: Verdict, records: RecordEvidence, pace: Pace) -> Step:
    """Return the step to the look at which a decision is cheapest.

    Not always the next one: with one seed against the claim, a look that tolerates none is futile.
    """
    looks = [look for look in verdict.looks if look >= (verdict.next_look or 0)]
    steps = (_step(verdict, look, records, pace) for look in looks)
    return min(steps, key=lambda one: (one.chance == 0.0, one.price))


def _step(verdict: Verdict, look: int, records: RecordEvidence, pace: Pace) -> Step:
    missing = records.missing(verdict.claim, look)
    by_seed = dict(sorted(missing.items(), key=lambda item: item[1].seed))
    chance = decision_chance(verdict, look, records)
    own = (verdict.claim.id,)
    return Step(verdict, look, by_seed, pace.minutes(missing.values()), chance, own, chance)


def _with_others(step: Step, steps: Sequence[Step]) -> Step:
    """Return ``step`` with all claims that its lifetimes bring to their looks."""
    served = [one for one in steps if one.missing.keys() <= step.missing.keys()]
    return step._replace(
        served=tuple(one.verdict.claim.id for one in served),
        decisions=sum(one.chance for one in served),
    )


def decision_chance(verdict: Verdict, look: int, records: RecordEvidence) -> float:
    """Return the chance that a claim is decided at ``look``.

    That is the chance of its least likely undecided part to hold, or of one to fail. Parts rest on
    the same seeds, often on the same lifetimes, so their chances are not multiplied.
    """
    claim, published = verdict.claim, judge_published(verdict.claim)
    place = verdict.looks.index(look)
    holding, failing = [], []
    for part, found, printed in zip(claim.parts, verdict.parts, published.parts, strict=True):
        if found.outcome != "undecided":
            continue
        errors, reading = errors_of(part, len(claim.parts)), records.latest(claim, part)
        prior = PUBLISHED_SEEDS if printed.outcome == "holds" else 0
        claimed, opposite = claimed_sides(part, errors), opposite_sides(part, errors)
        holding.append(
            prod(_showing_chance(side, reading, verdict.looks, place, prior) for side in claimed)
        )
        failing += [_showing_chance(side, reading, verdict.looks, place, 0) for side in opposite]
    return max(min(holding, default=0.0), max(failing, default=0.0))


def _showing_chance(
    side: Side, reading: Reading, looks: tuple[int, ...], place: int, prior: int
) -> float:
    """Return the chance that the count at the look in ``place`` shows ``side``."""
    if not reading.countable:
        return UNCOUNTED if reading.decidable else 0.0
    look, known = looks[place], reading.successes(side) if reading.n else 0
    limit = reading.failure_limit(side, look, looks)
    return predicted(known, reading.n - known, look, limit, prior)


def predicted(successes: int, failures: int, look: int, limit: int, prior: int = 0) -> float:
    """Return the chance of at most ``limit`` failures among ``look`` seeds, some of them seen.

    By Laplace's rule, with ``prior`` further successes that do not count among the seeds.

    >>> predicted(6, 0, 6, 0), round(predicted(0, 0, 6, 0), 3), predicted(3, 1, 6, 0)
    (1.0, 0.143, 0.0)
    """
    left, room = look - successes - failures, limit - failures
    if limit == NEVER or room < 0:
        return 0.0
    a, b = successes + prior + 1, failures + 1
    total = comb(a + b + left - 1, left)
    ways = sum(
        comb(b + k - 1, k) * comb(a + left - k - 1, left - k) for k in range(min(room, left) + 1)
    )
    return ways / total
