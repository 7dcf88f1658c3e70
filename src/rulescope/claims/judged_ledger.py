"""The ledger with a verdict on every claim, and with the evidence of other agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rulescope.claims.compute_cost import Pace
from rulescope.claims.exact_verdicts import judge_exact
from rulescope.claims.ledger import Claim
from rulescope.claims.ledger_tables import Entry
from rulescope.claims.record_evidence import RecordEvidence, planned_looks
from rulescope.claims.replication_queue import order_steps
from rulescope.claims.verdicts import Verdict, judge_claim, judge_published
from rulescope.records import Store


class JudgedLedger(NamedTuple):
    """The verdicts of one store."""

    entries: tuple[Entry, ...]
    by_agent: Mapping[str, Sequence[Verdict]]
    """What the records of each agent show of the same claims; empty unless there are two agents."""


def judge_ledger(
    claims: Sequence[Claim], store: Store, agents: Iterable[str], *, check: bool
) -> JudgedLedger:
    """Return the verdict of ``store`` on every claim, and the evidence of each of ``agents``.

    Unless ``check``, exact claims are not checked.
    """
    entries = judge_all(claims, RecordEvidence(store), store, check=check)
    return JudgedLedger(tuple(entries), judge_agents(entries, store, agents))


def judge_all(
    claims: Sequence[Claim],
    records: RecordEvidence,
    store: Store | None,
    *,
    published: bool = False,
    check: bool = True,
) -> list[Entry]:
    """Return the verdict on every claim, and the step that would decide it."""
    verdicts = []
    for claim in claims:
        if claim.exact:
            root = None if store is None else store.root
            verdicts.append(judge_exact(claim, root, run=check))
        elif published:
            verdicts.append(judge_published(claim))
        else:
            verdicts.append(judge_claim(claim, records))
    if published or store is None:
        return [Entry(verdict) for verdict in verdicts]
    steps = {one.verdict.claim.id: one for one in order_steps(verdicts, records, Pace(store))}
    return [Entry(verdict, steps.get(verdict.claim.id)) for verdict in verdicts]


def judge_agents(
    entries: Iterable[Entry], store: Store, agents: Iterable[str]
) -> dict[str, list[Verdict]]:
    """Return what the records of each agent show of the claims that depend on the agent.

    Agents without whole seed blocks of any claim are left out; of one agent alone there is nothing
    to compare.
    """
    evidence = {agent: RecordEvidence(store, agent) for agent in agents}
    rows = []
    for usual in (one.verdict for one in entries if one.verdict.claim.cells):
        row = [_judge_with(usual, records) for records in evidence.values()]
        if any(one is not usual for one in row):
            rows.append(row)
    by_agent = {agent: [row[i] for row in rows] for i, agent in enumerate(evidence)}
    found = {agent: column for agent, column in by_agent.items() if any(one.n for one in column)}
    return found if len(found) > 1 else {}


def _judge_with(usual: Verdict, records: RecordEvidence) -> Verdict:
    """Return the verdict of another agent's records; ``usual`` if they are the same lifetimes."""
    same = records.of_published_agent(usual.claim)
    return usual if same else judge_claim(usual.claim, records)


def has_records(claims: Iterable[Claim], records: RecordEvidence) -> bool:
    """Return whether there is a lifetime of the cells of any of ``claims``."""
    return any(
        not plan.present.isdisjoint(plan.runs)
        for claim in claims
        for plan in (records.plan(cells, planned_looks(claim)[-1]) for cells in claim.cells)
    )
