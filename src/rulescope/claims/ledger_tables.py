"""The ledger with its verdicts as a table, as plain data, and in words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rulescope.claims.decision import PartEvidence
from rulescope.claims.ledger import contradictions
from rulescope.claims.replication_queue import Step
from rulescope.claims.verdicts import Verdict, Word
from rulescope.core.errors import counted
from rulescope.render.tables import Column, Table
from rulescope.stats import Estimate, Method

ORDER: tuple[Word, ...] = (
    "contradicted",
    "exact (fails)",
    "undecided",
    "reproduced",
    "exact (holds)",
    "exact (not checked)",
    "not comparable",
)
"""Disagreements first."""
RULE = (
    "Reproduced: every part of the claim lies inside its bounds, each at its own level. "
    "Contradicted: one part lies outside, its level divided by the number of parts. Both need an "
    "exact count of seeds, at planned numbers of seeds with the error spent over the looks, and "
    "the bootstrap interval of the estimate. Undecided: everything else, also what has not been "
    "run. Same source: whether our estimates reproduce the printed ones, whatever the verdict."
)


class Entry(NamedTuple):
    """A verdict, and the step that would decide it."""

    verdict: Verdict
    step: Step | None = None


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return ``entries`` with disagreements first, otherwise in the order of the ledger."""
    return sorted(entries, key=lambda entry: ORDER.index(entry.verdict.word))


def summarise(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims have each verdict, in one sentence."""
    counts = Counter(verdict.word for verdict in verdicts)
    parts = [f"{counts[word]} {word}" for word in ORDER if counts[word]]
    return f"{counted(len(verdicts), 'claim')}: {', '.join(parts)}."


def ledger_table(entries: Sequence[Entry]) -> Table:
    """Return one row for each claim."""
    return Table(
        label="claims",
        title="The claims of the published audit and what the records say of them",
        columns=(
            Column("Claim"),
            Column("Level"),
            Column("Verdict"),
            Column("Seeds", digits=0),
            Column("Same source"),
            Column("Evidence"),
            Column("To decide"),
        ),
        rows=tuple(
            (
                entry.verdict.claim.id,
                entry.verdict.claim.level,
                verdict_text(entry.verdict),
                entry.verdict.n or None,
                entry.verdict.same_source or None,
                evidence_text(entry.verdict),
                cost_text(entry),
            )
            for entry in in_order(entries)
        ),
        note=RULE,
        tells_n=False,
    )


def verdict_text(verdict: Verdict) -> str:
    """Return the word of a verdict, with what is known of the size of effects."""
    if verdict.at_cap:
        return "undecided at cap"
    sizes = {"holds": ", also in size", "fails": ", other size", "undecided": ""}
    size = sizes[verdict.in_size] if verdict.word == "reproduced" and verdict.claim.size else ""
    return f"{verdict.word}{size}"


def evidence_text(verdict: Verdict) -> str:
    """Return what decided the claim, or how far its parts are, in a phrase."""
    if verdict.why:
        return verdict.why
    if not verdict.parts:
        return ""
    if not verdict.n:
        return "not run"
    if verdict.looks and verdict.n < verdict.looks[0]:
        return f"not looked at before {verdict.looks[0]} seeds"
    failing = [part for part in verdict.parts if part.outcome == "fails"]
    if failing:
        return part_text(failing[0])
    held = sum(part.outcome == "holds" for part in verdict.parts)
    if len(verdict.parts) == 1:
        return part_text(verdict.parts[0])
    return f"{held} of {len(verdict.parts)} parts hold"


def part_text(found: PartEvidence) -> str:
    """Return one part in words: its atom, the estimate with its interval, and the seeds.

    >>> from rulescope.claims.ledger import parts_of
    >>> part = parts_of(["above(score/live, 0.8)"], "E1", {})[0]
    >>> part_text(PartEvidence(part, "holds", 9, 0.95, 0.91, 0.99, 9))
    'above(score/live, 0.8) holds: 0.95 [0.91, 0.99], 9 of 9 seeds inside'
    """
    text = f"{found.part.atom} {found.outcome}"
    if math.isnan(found.value):
        return text
    text += f": {_digits(found.value)}"
    if not math.isnan(found.low):
        text += f" [{_digits(found.low)}, {_digits(found.high)}]"
    if found.inside is not None:
        text += f", {found.inside} of {found.n} seeds inside"
    return f"{text}, smaller than the original could detect" if found.smaller else text


def _digits(value: float) -> str:
    return f"{value:.3g}".replace("-", "−")


def cost_text(entry: Entry) -> str | None:
    """Return what it takes to decide a claim, in a phrase; None if no further seeds are planned."""
    step = entry.step
    if step is None:
        return None
    return (
        f"{step.look} seeds: {counted(len(step.missing), 'lifetime')}, "
        f"{step.minutes:,.0f} core-minutes, chance {step.chance:.2f}"
    )


def as_data(entry: Entry, runs: Sequence[str] = ()) -> dict[str, Any]:
    """Return a verdict as plain data for JSON; what is not a number is null."""
    verdict, claim, step = entry.verdict, entry.verdict.claim, entry.step
    return {
        "id": claim.id,
        "level": claim.level,
        "statement": claim.statement,
        "verdict": verdict.word,
        "at_cap": verdict.at_cap,
        "evidence": verdict.evidence,
        "why": verdict.why,
        "n": verdict.n,
        "n_published": claim.n,
        "family": claim.family,
        "looks": list(verdict.looks),
        "least_n": verdict.first,
        "stopping": verdict.stopping if verdict.looks else "",
        "epistemic": claim.epistemic,
        "in_size": verdict.in_size if claim.size else None,
        "same_source": verdict.same_source or None,
        "contradictions": {key: contradictions()[key] for key in claim.contradictions},
        "parts": [_part_data(part) for part in verdict.parts],
        "runs": list(runs),
        "cost": None
        if step is None
        else {
            "seeds": step.look,
            "lifetimes": len(step.missing),
            "core_minutes": round(step.minutes, 1),
            "chance": round(step.chance, 3),
        },
    }


def _part_data(found: PartEvidence) -> dict[str, Any]:
    numbers = {
        "low": found.part.low,
        "high": found.part.high,
        "value": found.value,
        "interval_low": found.low,
        "interval_high": found.high,
    }
    return {
        "atom": found.part.atom,
        "outcome": found.outcome,
        "n": found.n,
        "seeds_inside": found.inside,
        "one_sided_error": None if math.isnan(found.error) else found.error,
        "smaller_than_detectable": found.smaller,
        **{name: value if math.isfinite(value) else None for name, value in numbers.items()},
    }


def parts_table(verdict: Verdict) -> Table:
    """Return one row for each part of a claim."""
    rows = []
    for found in verdict.parts:
        method: Method = "none" if math.isnan(found.low) else "bootstrap"
        estimate = Estimate(found.value, found.low, found.high, found.n, method=method)
        rows.append(
            (found.part.atom, found.outcome, found.n or None, estimate, found.inside, found.error)
        )
    return Table(
        label=f"claim-{verdict.claim.id}",
        title=verdict.claim.statement,
        columns=(
            Column("Part"),
            Column("Outcome"),
            Column("Seeds", digits=0),
            Column("Estimate [interval at the part's level]"),
            Column("Seeds inside", digits=0),
            Column("Error a side", digits=4),
        ),
        rows=tuple(rows),
        note=f"Margins: {verdict.claim.margin}.",
        tells_n=False,
    )


def queue_table(steps: Sequence[Step]) -> Table:
    """Return the queue of a campaign: one row for each step, the next one first."""
    return Table(
        label="queue",
        title="What to run next: least core-minutes for each expected decision",
        columns=(
            Column("Claim"),
            Column("Seeds"),
            Column("Lifetimes", digits=0),
            Column("Core-minutes", digits=0),
            Column("Chance", digits=2),
            Column("Claims brought to a look", digits=0),
            Column("Minutes a decision", digits=0),
        ),
        rows=tuple(
            (
                step.verdict.claim.id,
                f"{step.verdict.n} → {step.look}",
                len(step.missing),
                step.minutes,
                step.chance,
                len(step.served),
                step.price,
            )
            for step in steps
        ),
        note="Chance: that the claim is decided there, from the seeds so far (Laplace's rule) and "
        "from whether the published numbers decide it; that of the least likely part. "
        "A step runs whole seed blocks.",
        tells_n=False,
    )


def paragraph(entry: Entry) -> str:
    """Return a claim in Markdown: its verdict, its statement, and what both rest on."""
    verdict, claim = entry.verdict, entry.verdict.claim
    facts = [sample_text(verdict)] if verdict.looks else []
    if verdict.why:
        facts.append(verdict.why)
    if verdict.looks and verdict.n >= verdict.looks[0]:
        facts += [f"`{found.part.atom}` {_after_atom(found)}." for found in verdict.parts]
    if verdict.same_source:
        facts.append(f"Same source as the printed numbers: {verdict.same_source}.")
    if entry.step is not None:
        facts.append(f"To decide: {cost_text(entry)}.")
    facts += [f"Printed elsewhere ({key}): {contradictions()[key]}" for key in claim.contradictions]
    lines = [f"**`{claim.id}`: {verdict_text(verdict)}.** {claim.statement}"]
    return "\n".join([*lines, "", *(f"- {fact}" for fact in facts), ""])


def sample_text(verdict: Verdict) -> str:
    """Return how many seeds and lifetimes a verdict rests on, and by which rule, in a sentence."""
    if not verdict.n:
        return f"Not run; published with {verdict.claim.n} seeds."
    return (
        f"{counted(verdict.n, 'whole seed block')}, {counted(verdict.runs, 'lifetime')}; "
        f"published with {verdict.claim.n} seeds; planned looks at "
        f"{', '.join(map(str, verdict.looks))} seeds; error on each side at most "
        f"{_errors(verdict)}."
    )


def _errors(verdict: Verdict) -> str:
    """Return the error rates of the parts, each once.

    A family of comparisons divides its error, so parts of one claim may differ.
    """
    return " or ".join(f"{error:.2g}" for error in sorted({one.error for one in verdict.parts}))


def _after_atom(found: PartEvidence) -> str:
    return part_text(found).removeprefix(found.part.atom).lstrip()


def agents_table(by_agent: Mapping[str, Sequence[Verdict]]) -> Table:
    """Return which claims the records of each agent support: what survives a change of agent.

    Claims that no agent's records are about are left out. The published numbers are of one agent
    only, so the others' evidence is no verdict on the paper.
    """
    columns = (Column("Claim"), *(Column(agent) for agent in by_agent))
    rows = [
        (together[0].claim.id, *(_agent_text(verdict) for verdict in together))
        for together in zip(*by_agent.values(), strict=True)
        if any(verdict.n for verdict in together)
    ]
    return Table(
        label="claims-agents",
        title="Which claims survive a change of agent",
        columns=columns,
        rows=tuple(rows),
        note="Whether the claim's predicate holds in the records of each agent, at planned looks; "
        "in brackets the whole seed blocks.",
        tells_n=False,
    )


def _agent_text(verdict: Verdict) -> str | None:
    return f"{verdict.evidence} ({verdict.n})" if verdict.n else None
