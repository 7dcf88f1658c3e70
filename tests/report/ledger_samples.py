"""Made-up verdicts on all claims, so that the page of claims shows every word."""

from __future__ import annotations

from rulescope.claims.decision import Outcome, PartEvidence
from rulescope.claims.judged_ledger import JudgedLedger
from rulescope.claims.ledger import Claim, claims
from rulescope.claims.ledger_tables import Entry
from rulescope.claims.record_evidence import planned_looks
from rulescope.claims.replication_queue import Step
from rulescope.claims.verdicts import SameSource, Verdict, Word

OUTCOMES: dict[Word, Outcome] = {
    "contradicted": "fails",
    "reproduced": "holds",
    "undecided": "undecided",
}
VALUE, LOW, HIGH = 0.123, 0.1, 0.2
"""Of every part that was looked at."""
STEP = (27, 31.5, 0.25)
"""Seeds, minutes and chance of what would decide every undecided claim."""


def ledger() -> JudgedLedger:
    """Return the claims with verdicts in turn; two of three have nine seed blocks or more.

    Of the second agent there are records of the first claim alone.
    """
    words: list[Word] = list(OUTCOMES)
    measured = [claim for claim in claims() if claim.cells]
    entries = [entry(claim, words[i % len(words)]) for i, claim in enumerate(measured)]
    others = [claim for claim in claims() if not claim.cells]
    entries += [Entry(_without_records(claim)) for claim in others]
    verdicts = [one.verdict for one in entries if one.verdict.claim.cells]
    unrun = [one._replace(n=0) for one in verdicts[1:]]
    return JudgedLedger(
        tuple(entries), {"published": verdicts, "historical": [verdicts[0], *unrun]}
    )


def entry(claim: Claim, word: Word) -> Entry:
    """Return a made-up verdict; the undecided have no records, and a step that would decide."""
    looks, outcome = planned_looks(claim), OUTCOMES[word]
    if word == "undecided":
        parts = tuple(PartEvidence(part, outcome, 0) for part in claim.parts)
        verdict = Verdict(claim, word, outcome, parts, 0, looks)
        look, minutes, chance = STEP
        return Entry(verdict, Step(verdict, look, {}, minutes, chance, (claim.id,), chance))
    n = max(9, looks[0])
    parts = tuple(PartEvidence(part, outcome, n, VALUE, LOW, HIGH, n) for part in claim.parts)
    same: SameSource = "yes" if word == "reproduced" else "no"
    return Entry(Verdict(claim, word, outcome, parts, n, looks, same_source=same, runs=4 * n))


def _without_records(claim: Claim) -> Verdict:
    if claim.exact:
        return Verdict(claim, "exact (not checked)", "undecided", (), 0, ())
    return Verdict(claim, "not comparable", "undecided", (), 0, (), why="no assay measures it")
