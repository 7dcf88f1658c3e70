"""Verdicts on exact claims, which a program decides."""

from __future__ import annotations

import math
from pathlib import Path

from rulescope.claims.decision import Outcome, PartEvidence
from rulescope.claims.exact_checks import EXACT_CHECKS
from rulescope.claims.exact_result import ExactCheck, Inputs
from rulescope.claims.ledger import Claim, Name, Part
from rulescope.claims.verdicts import Verdict, Word, combine


def judge_exact(claim: Claim, store: Path | None, *, run: bool = True) -> Verdict:
    """Return the verdict on an exact claim; unless ``run``, it is not checked."""
    if not run:
        return Verdict(claim, "exact (not checked)", "undecided", (), 0, ())
    found = EXACT_CHECKS[claim.id](Inputs(store=store))
    parts = tuple(_judge(part, found) for part in claim.parts) if found.checked else ()
    evidence = combine([part.outcome for part in parts])
    words: dict[Outcome, Word] = {
        "holds": "exact (holds)",
        "fails": "exact (fails)",
        "undecided": "exact (not checked)",
    }
    verdict = Verdict(claim, words[evidence], evidence, parts, 0, (), why=found.sentence)
    if claim.other_object:
        return verdict._replace(word="not comparable", why=f"{claim.other_object} {found.sentence}")
    return verdict


def _judge(part: Part, found: ExactCheck) -> PartEvidence:
    """Return the outcome of ``part``; a margin of zero admits zero."""
    value = _value(part.first, found)
    if part.second is not None:
        value -= _value(part.second, found)
    if math.isnan(value):
        return PartEvidence(part, "undecided", 0)
    inside = part.low < value < part.high or (part.equivalence and value in (part.low, part.high))
    return PartEvidence(part, "holds" if inside else "fails", 0, value)


def _value(name: Name, found: ExactCheck) -> float:
    return found.measured.get(f"{name.assay}:{name.row}", math.nan)
