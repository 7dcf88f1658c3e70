"""``rulescope claims``: which of the published claims hold, by the records of a store."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rulescope.claims.judged_ledger import judge_all
from rulescope.claims.ledger import contradictions, select
from rulescope.claims.ledger_tables import (
    Entry,
    as_data,
    ledger_table,
    parts_table,
    summarise,
)
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.claims.verdicts import Verdict
from rulescope.cli.console import console
from rulescope.cli.options import STORE, AsJson, StoreFolder, split_names
from rulescope.core.errors import SpecError, nearest
from rulescope.learners.disco_config import AGENTS
from rulescope.records import Store

ClaimNames = Annotated[
    str | None,
    typer.Option(
        "--claims",
        metavar="NAMES",
        help="Only these: headline, main, appendix, exact, an assay such as E1, or ids of claims; "
        "separated by commas. Default: all.",
    ),
]


def claims(
    names: ClaimNames = None,
    store: StoreFolder = STORE,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Evidence from another agent than the published: what survives the change?",
        ),
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="Judge the published numbers themselves.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check", help="Run the programs that decide exact claims (a minute)."
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Show which published claims the records reproduce, contradict or leave open.

    Each claim is a predicate on estimates, with margins that were fixed beforehand. Nothing is
    run but the programs that decide exact claims. A single claim is shown part by part.

    Examples:

      rulescope claims --store replication/store

      rulescope claims --claims headline --store replication/store

      rulescope claims --claims clamping-amplifies-mismatch --json

      rulescope claims --published
    """
    if agent is not None and agent not in AGENTS:
        raise SpecError(f"--agent: no {agent!r}{nearest(agent, AGENTS)}")
    chosen = select(split_names("--claims", names))
    keep = None if published else Store(store, read_only=True)
    records = RecordEvidence(keep, agent)
    entries = judge_all(chosen, records, keep, published=published, check=check)
    if as_json:
        print(json.dumps([as_data(each, _runs(each.verdict, records)) for each in entries]))
        return
    from rulescope.render.tables import terminal

    screen = console()
    screen.print(summarise([entry.verdict for entry in entries]))
    if len(entries) == 1:
        _show_one(entries[0])
    else:
        screen.print(terminal(ledger_table(entries)))


def _runs(verdict: Verdict, records: RecordEvidence) -> list[str]:
    """Return the ids of the lifetimes behind a verdict."""
    if not verdict.n or not verdict.looks or records.store is None:
        return []
    return records.runs(verdict.claim, verdict.n)


def _show_one(entry: Entry) -> None:
    from rulescope.render.tables import terminal

    screen, verdict = console(), entry.verdict
    screen.print(terminal(parts_table(verdict)))
    if verdict.looks:
        screen.print(f"Stopping rule: {verdict.stopping}.")
    for key in verdict.claim.contradictions:
        screen.print(f"Printed elsewhere ({key}): {contradictions()[key]}", markup=False)
    if verdict.claim.note:
        screen.print(f"Note: {verdict.claim.note}", markup=False)
    if entry.step is not None:
        step = entry.step
        screen.print(
            f"To decide: {len(step.missing)} lifetimes up to {step.look} seeds, about "
            f"{step.minutes:,.0f} core-minutes, chance {step.chance:.2f}."
        )
