"""``rulescope replicate``: run what decides the published claims, cheapest decision first."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from rulescope.claims.ledger import select
from rulescope.claims.ledger_tables import queue_table, summarise
from rulescope.claims.replication import Replication
from rulescope.claims.replication_queue import Step
from rulescope.cli.assay_options import EngineOptions
from rulescope.cli.claims import ClaimNames
from rulescope.cli.console import Meter, console
from rulescope.cli.options import (
    STORE,
    AsJson,
    StoreFolder,
    Weights,
    expand_option_groups,
    split_names,
)
from rulescope.cli.run import SOME_FAILED, describe_progress, print_failures, refresh_index
from rulescope.core.errors import SpecError
from rulescope.records import Store

DECIDED = "decided"


@expand_option_groups
def replicate(
    engine_options: EngineOptions,
    names: ClaimNames = None,
    hours: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="H", help="Stop after so many hours; runs keep checkpoints."),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="decided", help="Go on until every claim is decided or at its cap."),
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Print the queue with its reasons, and run nothing.")
    ] = False,
    store: StoreFolder = STORE,
    weights: Weights = None,
    as_json: AsJson = False,
) -> None:
    """Spend compute where it decides a claim of the published audit.

    The next step is the undecided claim with the least core-minutes for each expected decision. It
    runs whole seed blocks, all arms of a seed, up to a planned number of seeds; only there is the
    evidence looked at. A claim is given up, undecided, at 2.5 times the published number of seeds.
    The same command continues after an interruption: the store is the only state.

    Examples:

      rulescope replicate --why --store replication/store

      rulescope replicate --claims headline --hours 3 --store replication/store

      rulescope replicate --until decided --workers 8
    """
    if until not in (None, DECIDED):
        raise SpecError(f"--until: no {until!r}; nearest: {DECIDED}")
    if not why and hours is None and until is None:
        raise SpecError("--hours: give a number of hours, or --until decided, or --why")
    deadline = None if hours is None else time.monotonic() + 3600 * hours
    execution = engine_options.execution(weights)
    chosen = select(split_names("--claims", names))
    campaign = Replication(chosen, Store(store), execution, deadline)
    if why:
        _show_queue(campaign.queue(), as_json)
        return
    _run(campaign, as_json)
    if campaign.failed:
        raise typer.Exit(SOME_FAILED)


def _run(campaign: Replication, as_json: bool) -> None:
    screen = console(as_json)
    while (step := campaign.next_step()) is not None:
        screen.print(
            f"{step.verdict.claim.id}: {len(step.missing)} lifetimes up to {step.look} seeds, "
            f"about {step.minutes:,.0f} core-minutes"
        )
        total = sum(spec.iterations for spec in step.missing.values())
        with Meter(step.verdict.claim.id, total) as meter:
            campaign.run_step(step, lambda now: meter.follow(now, describe_progress(now)))
        refresh_index(campaign.store)
        screen.print(summarise(campaign.verdicts()))
    print_failures(campaign.failed)
    if as_json:
        verdicts = {verdict.claim.id: verdict.word for verdict in campaign.verdicts()}
        complete = campaign.complete
        print(json.dumps({"complete": complete, "verdicts": verdicts, "failed": campaign.failed}))


def _show_queue(steps: list[Step], as_json: bool) -> None:
    if as_json:
        print(json.dumps([_step_data(step) for step in steps]))
        return
    from rulescope.render.tables import terminal

    console().print(terminal(queue_table(steps)))


def _step_data(step: Step) -> dict[str, object]:
    return {
        "claim": step.verdict.claim.id,
        "seeds": step.verdict.n,
        "look": step.look,
        "lifetimes": list(step.missing),
        "core_minutes": round(step.minutes, 1),
        "chance": round(step.chance, 4),
        "claims": list(step.served),
        "minutes_per_decision": round(step.price, 1),
    }
