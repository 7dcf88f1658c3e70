"""``rulescope run``: an assay from its plan to its tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from rulescope.assays import Results, assay_run
from rulescope.assays.assay_run import folder_name, require_runnable
from rulescope.assays.plan import Plan, interactions, seconds_left, write
from rulescope.assays.recorded_plans import record_plan
from rulescope.assays.results import as_data
from rulescope.cli.assay_options import AssayName, EngineOptions, SaveDraws, SelectionOptions
from rulescope.cli.console import Meter, console, duration, index_progress, span
from rulescope.cli.options import (
    RESULTS,
    STORE,
    AsJson,
    Out,
    PlanOnly,
    StoreFolder,
    expand_option_groups,
)
from rulescope.core.disk import require_writable
from rulescope.core.errors import RecordError, counted
from rulescope.engine.branch_plan import count_shared, shared_fraction
from rulescope.engine.execution import Execution
from rulescope.records import Store
from rulescope.run_spec import RunSpec, with_donors

if TYPE_CHECKING:
    from rulescope.engine.campaign import Campaign

SOME_FAILED = 3
"""Exit code when runs failed; the records of the others are in the store."""


@expand_option_groups
def run(
    assay: AssayName,
    selection: SelectionOptions,
    engine_options: EngineOptions,
    plan_only: PlanOnly = False,
    store: StoreFolder = STORE,
    out: Out = RESULTS,
    save_draws: SaveDraws = False,
    as_json: AsJson = False,
) -> None:
    """Run an assay: plan it, run what is missing, analyse, print and write the tables.

    The same command resumes: runs in the store are not repeated, and an interrupted one continues
    from its checkpoint. Tables (Markdown, CSV and LaTeX) and figures are written to a folder of
    the assay.

    Examples:

      rulescope run scale --preset smoke

      rulescope run E2 --preset paper --scales 1e-3 --seeds 4

      rulescope run scale --agent published,reference --arms live,pin,placebo

      rulescope run scale --engine ray --address auto
    """
    keep = Store(store)
    plans = [Plan.of(each, budget, keep) for each, budget in selection.budgets(assay)]
    execution = engine_options.execution(selection.located_weights)
    for plan in plans:  # all of them before the first, which may run for hours
        folder = out / folder_name(plan.assay, plan.budget)
        require_runnable(list(plan.missing.values()), keep, execution, folder)
    done = []
    for plan in plans:
        # Agents share runs, so some may have been made since.
        plan = Plan.of(plan.assay, plan.budget, keep)
        body = {"plan": show_plan(plan, execution, console(as_json)), "failed": {}}
        if not plan_only:
            require_writable(out)
            if plan.missing:
                keep.require_writable()
            record_plan(keep, plan.assay, plan.budget, selection.named_rule)
            body |= _run_plan(plan, keep, out, execution, console(as_json), save_draws)
        done.append(body)
    if as_json:
        print(json.dumps(done[0] if len(done) == 1 else done))
    if any(body["failed"] for body in done):
        raise typer.Exit(SOME_FAILED)


def _run_plan(
    plan: Plan, store: Store, out: Path, execution: Execution, screen: Console, save_draws: bool
) -> dict[str, Any]:
    """Run what ``plan`` lacks, analyse and write; return the failures and results as plain data."""
    failed = run_missing(plan.missing, store, execution, plan.assay.id)
    plan = Plan.of(plan.assay, plan.budget, store)
    if failed and not any(key in plan.present for key in plan.runs):
        return {"failed": failed}  # there is nothing to analyse, and the causes have been printed
    results = plan.analyse(store, draws=save_draws)
    folder = out / folder_name(plan.assay, plan.budget)
    paths = write(plan, results, store, folder)
    _show_results(results, paths, screen)
    return {"failed": failed, "results": as_data(results), "folder": str(folder)}


def show_plan(plan: Plan, execution: Execution, screen: Console) -> dict[str, Any]:
    """Print the plan; return it as plain data."""
    runs, budget = plan.runs.values(), plan.budget
    total = interactions([*runs, *plan.donors.values()])
    seeds = [len(cell.runs) for cell in plan.cells]
    agent = f", agent {budget.agent}" if budget.agent else ""
    screen.print(f"[bold]{plan.assay.id} {plan.assay.name}[/bold]: {plan.assay.question}")
    screen.print(f"  rule {budget.subject.rule}{agent}")
    screen.print(
        f"  {counted(len(plan.cells), 'cell')} × {span(seeds)} seed{'s' * (max(seeds) > 1)} = "
        f"{counted(len(runs), 'lifetime')} of {span(run.iterations for run in runs)} iterations, "
        f"{counted(len(plan.donors), 'donor')}, {total:,} interactions"
    )
    return {
        "assay": plan.assay.id,
        "cells": len(plan.cells),
        "runs": len(runs),
        "donors": len(plan.donors),
        "interactions": total,
        "missing": len(plan.missing),
        "shared": shared_fraction(plan.missing.values()) if execution.shares_prefixes else 0.0,
        "seconds": show_missing(plan.missing, execution, screen),
    }


def show_missing(missing: Mapping[str, RunSpec], execution: Execution, screen: Console) -> float:
    """Print how many runs are missing, and return about how many seconds they take."""
    if not missing:
        screen.print("  all runs are in the store")
        return 0.0
    specs, workers = list(missing.values()), execution.expected_workers
    shared = count_shared(specs) if execution.shares_prefixes else {}
    device = execution.local_device
    seconds = seconds_left(specs, workers, execution.weights, shared, device)
    screen.print(
        f"  {len(missing)} to run ({interactions(specs):,} interactions): about "
        f"{duration(seconds)} with {counted(workers, 'worker')}"
    )
    if shared:
        screen.print(
            f"  {counted(len(shared), 'lifetime')} continue others that are equal so far: "
            f"{shared_fraction(specs):.0%} of the iterations are saved"
        )
    return seconds


def run_missing(
    missing: Mapping[str, RunSpec], store: Store, execution: Execution, name: str
) -> dict[str, str]:
    """Run ``missing`` with a progress bar; print and return the causes of failures by run id."""
    if not missing:
        return {}
    everything = with_donors(missing.values()).values()  # those found in the store included
    with Meter(name, sum(spec.iterations for spec in everything)) as meter:
        failed = assay_run.run_missing(
            missing.values(),
            store,
            execution,
            name=name,
            report=lambda campaign: meter.follow(campaign, describe_progress(campaign)),
        )
    print_failures(failed)
    refresh_index(store)
    return failed


def print_failures(failed: Mapping[str, str]) -> None:
    """Print the causes of failures, by run id, on standard error."""
    for key, cause in failed.items():
        print(f"error: run {key[:12]} failed: {cause}", file=sys.stderr)


def refresh_index(store: Store) -> None:
    """Bring the index up to date, so that the next query need not open every record first."""
    from rulescope.records.index import Index

    try:
        with index_progress() as report, Index(store) as index:
            index.refresh(report)
    except RecordError as fault:  # the index can be made at any time; the records are there
        print(f"warning: not indexed: {fault}", file=sys.stderr)


def describe_progress(campaign: Campaign) -> str:
    """Return how many lifetimes of a campaign are finished, for its progress bar."""
    parts = [f"{campaign.finished}/{campaign.runs} lifetimes"]
    parts += [f"{len(campaign.failed)} failed"] if campaign.failed else []
    parts += ["stopping at the next iteration (again to stop at once)"] if campaign.stopping else []
    return ", ".join(parts)


def _show_results(results: Results, paths: list[Path], screen: Console) -> None:
    from rulescope.render.tables import terminal

    for table in results.tables:
        screen.print()
        screen.print(terminal(table))
    screen.print()
    screen.print(f"{results.budget}.")
    for note in results.notes:
        screen.print(f"note: {note}")
    screen.print(f"written: {paths[0]} and {len(paths) - 1} more in {paths[0].parent}")
