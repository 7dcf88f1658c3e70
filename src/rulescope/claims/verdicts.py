"""The verdict on a claim: reproduced, contradicted, undecided, exact, or not comparable."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from rulescope.assays import published
from rulescope.assays.published import Published
from rulescope.assays.published_agreement import JUDGED, SHARES, as_estimate, judge, rounding
from rulescope.claims.decision import Errors, Outcome, PartEvidence, decide, first_look
from rulescope.claims.ledger import Claim, Name, Part
from rulescope.claims.record_evidence import RecordEvidence, planned_looks
from rulescope.core.errors import SpecError
from rulescope.stats import Estimate, wilson
from rulescope.stats.agreement import estimate_difference

Word = Literal[
    "reproduced",
    "contradicted",
    "undecided",
    "exact (holds)",
    "exact (fails)",
    "exact (not checked)",
    "not comparable",
]
SameSource = Literal["yes", "no", "undecided", ""]
"""Whether our estimates and the published ones can be of one source; empty if nothing tells."""
STOPPING = (
    "whole seed blocks, looked at only when there are {looks}; error spent over the looks; "
    "given up at {cap} seeds, 2.5 times the published number"
)


class Verdict(NamedTuple):
    """A verdict and everything that it rests on."""

    claim: Claim
    word: Word
    evidence: Outcome
    """What our records show, also where they are not of the published agent."""
    parts: tuple[PartEvidence, ...]
    n: int
    """Complete seed blocks."""
    looks: tuple[int, ...]
    """Planned numbers of seeds."""
    first: int | None = None
    """The number of seeds at which unanimous ones would decide that the claim holds."""
    in_size: Outcome = "undecided"
    """Whether effects are also as large as the published intervals say."""
    same_source: SameSource = ""
    runs: int = 0
    """Lifetimes behind the evidence."""
    why: str = ""
    """Why a claim is not comparable or could not be checked; what an exact check computed."""

    @property
    def at_cap(self) -> bool:
        """Whether no further seeds are planned."""
        return self.word == "undecided" and bool(self.looks) and self.n >= self.looks[-1]

    @property
    def stopping(self) -> str:
        """The stopping rule in words."""
        looks = ", ".join(map(str, self.looks))
        return STOPPING.format(looks=looks, cap=self.claim.cap)

    @property
    def next_look(self) -> int | None:
        """The next number of seeds that may decide; None if the claim is decided or given up."""
        if self.word != "undecided" or not self.looks:
            return None
        least = max(self.n + 1, self.first or self.looks[0])
        return next((look for look in self.looks if look >= least), None)


def judge_claim(claim: Claim, records: RecordEvidence) -> Verdict:
    """Return the verdict of ``records`` on an empirical claim."""
    if not claim.cells:
        return Verdict(claim, "not comparable", "undecided", (), 0, (), why="no assay measures it")
    try:
        return _judge_cells(claim, records)
    except SpecError as fault:  # an assay that compares agents cannot be run with any one of them
        if records.agent is None:
            raise
        return Verdict(claim, "not comparable", "undecided", (), 0, (), why=str(fault))


def _judge_cells(claim: Claim, records: RecordEvidence) -> Verdict:
    """Return the verdict of the records of the claim's cells."""
    looks, parts = planned_looks(claim), claim.parts
    reached = records.blocks(claim)
    found = _decide_all(claim, parts, records, looks)
    evidence = combine([one.outcome for one in found])
    verdict = Verdict(
        claim,
        _word(evidence),
        evidence,
        found,
        reached,
        looks,
        first=_first_look(claim, records, looks),
        runs=len(records.runs(claim, reached)) if reached else 0,
    )
    if records.agent is not None and not records.of_published_agent(claim):
        verdict = verdict._replace(word="not comparable", why=f"agent {records.agent}")
    if not reached:
        return verdict
    sizes = _decide_all(claim, claim.size_parts, records, looks)
    in_size = combine([one.outcome for one in sizes]) if sizes else "undecided"
    return verdict._replace(in_size=in_size, same_source=_same_source(claim, records))


def combine(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of a claim all of whose parts must hold.

    >>> combine(["holds", "undecided"]), combine(["holds", "fails", "undecided"])
    ('undecided', 'fails')
    """
    if "fails" in outcomes:
        return "fails"
    return "holds" if outcomes and all(one == "holds" for one in outcomes) else "undecided"


def _word(evidence: Outcome) -> Word:
    words: dict[Outcome, Word] = {
        "holds": "reproduced",
        "fails": "contradicted",
        "undecided": "undecided",
    }
    return words[evidence]


def _decide_all(
    claim: Claim, parts: Sequence[Part], records: RecordEvidence, looks: Sequence[int]
) -> tuple[PartEvidence, ...]:
    return tuple(
        decide(part, records.readings(claim, part, looks), looks, errors_of(part, len(parts)))
        for part in parts
    )


def errors_of(part: Part, parts: int) -> Errors:
    """Return the error rates of ``part``: those of the family of its published estimates."""
    names = [name for name in (part.first, part.second) if name is not None]
    printed = [published.estimates(name.assay).get(name.row) for name in names]
    family = max((one.family for one in printed if one is not None), default=1)
    return Errors.of(part, family, parts)


def _first_look(claim: Claim, records: RecordEvidence, looks: Sequence[int]) -> int | None:
    """Return the look at which unanimous seeds show that every part holds."""
    found: list[int] = []
    for part in claim.parts:
        errors = errors_of(part, len(claim.parts))
        able = first_look(part, records.empty_reading(part), looks, errors)
        if able is None:
            return None
        found.append(able)
    return max(found)


def _same_source(claim: Claim, records: RecordEvidence) -> SameSource:
    """Return whether all estimates behind a claim reproduce the published ones.

    They do not if one is contradicted, by the rule of :mod:`rulescope.assays.published_agreement`.
    """
    words = []
    for name in names_of(claim):
        printed = published.estimates(name.assay)
        row = records.row(claim, name)
        if row is None or name.row not in printed:
            continue
        alike = [one for key, one in printed.items() if key.partition("/")[0] == name.quantity]
        words.append(judge(name.assay, row, printed[name.row], rounding(alike)).verdict)
    if "contradicted" in words:
        return "no"
    judged = [word for word in words if word in JUDGED]
    if not judged:
        return ""
    return "yes" if all(word == "reproduced" for word in judged) else "undecided"


def names_of(claim: Claim) -> list[Name]:
    """Return the estimates that ``claim`` is about, each once."""
    both = (name for part in claim.parts for name in (part.first, part.second))
    return list(dict.fromkeys(name for name in both if name is not None))


def judge_published(claim: Claim) -> Verdict:
    """Return what the published estimates themselves say about a claim.

    Their intervals are taken as printed: the level, the family and the number of seeds are theirs.
    """
    parts = tuple(_published_part(part) for part in claim.parts)
    evidence = combine([one.outcome for one in parts])
    return Verdict(claim, _word(evidence), evidence, parts, claim.n, ())


def _published_part(part: Part) -> PartEvidence:
    first = _printed(part.first)
    second = None if part.second is None else _printed(part.second)
    if first is None or (part.second is not None and second is None):
        return PartEvidence(part, "undecided", 0)
    found = first if second is None else estimate_difference(first, second)
    outcome: Outcome = "undecided"
    if found.low > part.low and found.high < part.high:
        outcome = "holds"
    elif found.high < part.low or found.low > part.high:
        outcome = "fails"
    return PartEvidence(part, outcome, found.n, found.value, found.low, found.high)


def _printed(name: Name) -> Estimate | None:
    """Return a printed estimate; shares without a printed interval get their Wilson interval."""
    one: Published | None = published.estimates(name.assay).get(name.row)
    if one is None:
        return None
    if name.quantity in SHARES and math.isnan(one.low):
        return wilson(round(one.value * one.n), one.n)
    return as_estimate(one)
