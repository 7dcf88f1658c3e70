"""``rulescope run``: an assay from its plan to its tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rulescope import plugin_sources
from rulescope.assays import Assay, Budget, Results
from rulescope.assays.plan import Plan, interactions, seconds_left, write
from rulescope.assays.recorded_plans import record_plan
from rulescope.assays.results import counted
from rulescope.cli import engine_options, selection_options
from rulescope.cli.console import console, spanned
from rulescope.cli.engine_options import Engine
from rulescope.cli.progress import Meter, duration
from rulescope.cli.selection_options import choose, folder_name
from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.engine.resources import cores
from rulescope.records import Store
from rulescope.render.result_files import require_writable
from rulescope.spec import run_spec as specs
from rulescope.spec.disco_config import Disco
from rulescope.spec.open_config import Open
from rulescope.spec.run_spec import RunSpec, with_donors

if TYPE_CHECKING:
    from rulescope.engine.campaign import Campaign

SOME_FAILED = 3
"""Exit code when lifetimes failed; those that did not are in the store."""


def run(
    assay: selection_options.AssayName,
    preset: selection_options.Preset = "quick",
    seeds: selection_options.Seeds = None,
    iterations: selection_options.Iterations = None,
    episodes: selection_options.Episodes = None,
    arms: selection_options.Arms = None,
    scales: selection_options.Scales = None,
    tasks: selection_options.Tasks = None,
    conditions: selection_options.Conditions = None,
    agent: selection_options.Agent = None,
    rule: selection_options.RuleName = None,
    dry: Annotated[
        bool, typer.Option("--plan", help="Show what would be run, and how long, and stop.")
    ] = False,
    workers: selection_options.Workers = None,
    engine: engine_options.Name = "local",
    address: engine_options.Address = None,
    cpus_per_run: engine_options.CpusPerRun = None,
    gpus_per_run: engine_options.GpusPerRun = None,
    time_limit: engine_options.TimeLimit = None,
    force: engine_options.Force = False,
    store: selection_options.StoreFolder = selection_options.STORE,
    out: selection_options.Out = selection_options.RESULTS,
    save_draws: selection_options.SaveDraws = False,
    weights: selection_options.Weights = None,
    as_json: selection_options.AsJson = False,
) -> None:
    """Run an assay: show the plan, live what is missing, analyse, print and write the tables.

    Run it again and it picks up: lifetimes in the store are not lived twice, and one that was
    interrupted goes on from its checkpoint. The tables, as Markdown, CSV and LaTeX, and the
    figures go to a folder of their own.

    Examples:

      rulescope run scale --preset smoke

      rulescope run E2 --preset paper --scales 1e-3 --seeds 4

      rulescope run scale --agent published,reference --arms live,pin,placebo

      rulescope run scale --engine ray --address auto
    """
    place = Engine.chosen(engine, address, cpus_per_run, gpus_per_run)
    chosen = choose(
        assay,
        preset,
        seeds=seeds,
        iterations=iterations,
        episodes=episodes,
        arms=arms,
        scales=scales,
        tasks=tasks,
        conditions=conditions,
        agent=agent,
        rule=rule,
        weights=weights,
    )
    weights = selection_options.weights_of(rule, weights)
    keep = Store(store)
    for each, budget in chosen[1:]:  # before the first, which checks itself, runs for hours
        left = list(Plan.of(each, budget, keep).missing.values())
        folder = out / folder_name(each, budget)
        require_possible(left, keep, folder, place, workers, weights, force=force)
    said = []
    for each, budget in chosen:
        found = perform(
            each,
            budget,
            keep,
            out,
            workers=workers,
            weights=weights,
            dry=dry,
            quiet=as_json,
            time_limit=time_limit,
            force=force,
            engine=place,
            save_draws=save_draws,
            typed_rule=rule,
        )
        said.append(found)
    if as_json:
        print(json.dumps(said[0] if len(said) == 1 else said))
    if any(found["failed"] for found in said):
        raise typer.Exit(SOME_FAILED)


def perform(
    assay: Assay,
    budget: Budget,
    store: Store,
    out: Path,
    *,
    workers: int | None = None,
    weights: Path | None = None,
    dry: bool = False,
    quiet: bool = False,
    figures: tuple[str, ...] | None = None,
    time_limit: float | None = None,
    force: bool = False,
    engine: Engine = engine_options.LOCAL,
    save_draws: bool = False,
    typed_rule: str | None = None,
) -> dict[str, Any]:
    """Carry an assay through; return what a program wants to know of it.

    Everything for people goes to the standard output unless ``quiet``; progress and failures go to
    the standard error output.
    """
    screen = console(quiet)
    plan = Plan.of(assay, budget, store)
    # How many a cluster will take is not known before it is asked: one is told of, then.
    processes = workers or (1 if engine.elsewhere else cores())
    left = list(plan.missing.values())
    folder = out / folder_name(assay, budget)
    require_possible(left, store, folder, engine, workers, weights, force=force)
    if not dry:
        require_writable(out)
        if left:
            store.require_writable()
    said: dict[str, Any] = {"plan": _tell_plan(plan, processes, weights, screen), "failed": {}}
    if dry:
        return said
    record_plan(store, assay, budget, typed_rule)
    if left:
        said["failed"] = live(
            plan.missing,
            store,
            plan.assay.id,
            workers=workers,
            engine=engine,
            weights=weights,
            time_limit=time_limit,
            force=force,
        )
        plan = Plan.of(assay, budget, store)
        if said["failed"] and not any(key in plan.present for key in plan.runs):
            return said  # there is nothing to analyse, and why has been told
    results = plan.analyse(store, draws=save_draws)
    paths = write(plan, results, store, folder, figures)
    _tell_results(results, paths, screen)
    from rulescope.assays.results import as_data

    return said | {"results": as_data(results), "folder": str(folder)}


def require_possible(
    left: list[RunSpec],
    store: Store,
    folder: Path,
    engine: Engine,
    workers: int | None,
    weights: Path | None,
    *,
    force: bool,
) -> None:
    """Raise what running ``left`` would raise before its first run; nothing is written.

    A plan calls this too, so that it refuses what the run would refuse, in the same words.
    """
    disk.require_possible(folder.parent)
    disk.require_possible(folder)
    if left:
        for spec in left:
            specs.checked(spec)
        check_rules(left, weights)
        plugin_sources.require_plugins(left)
        disk.require_possible(store.root)
        engine.require(left, store, workers, force)


def check_rules(left: list[RunSpec], weights: Path | None) -> None:
    """Make sure, before anything runs, that every rule is there and whole."""
    from rulescope.rules.loading import load

    learners = (spec.learner for spec in left)
    for name in dict.fromkeys(who.rule for who in learners if isinstance(who, Disco | Open)):
        load(name, weights)


def _tell_plan(plan: Plan, workers: int, weights: Path | None, screen: Console) -> dict[str, Any]:
    """Print the plan; return it as plain data."""
    left = list(plan.missing.values())
    lifetimes = plan.runs.values()
    budget = plan.budget
    screen.print(f"[bold]{plan.assay.id} {plan.assay.name}[/bold]: {plan.assay.question}")
    agent = f", agent {budget.agent}" if budget.agent else ""
    screen.print(f"  rule {budget.rule}{agent}")
    seeds = [len(cell.runs) for cell in plan.cells]
    screen.print(
        f"  {counted(len(plan.cells), 'cell')} × {spanned(seeds)} seed{'s' * (max(seeds) > 1)} = "
        f"{counted(len(plan.runs), 'lifetime')} of {spanned(run.iterations for run in lifetimes)} "
        f"iterations, {counted(len(plan.donors), 'donor')}, "
        f"{interactions([*lifetimes, *plan.donors.values()]):,} interactions"
    )
    told: dict[str, Any] = {
        "assay": plan.assay.id,
        "cells": len(plan.cells),
        "runs": len(plan.runs),
        "donors": len(plan.donors),
        "interactions": interactions([*lifetimes, *plan.donors.values()]),
        "missing": len(left),
        "seconds": 0.0,
    }
    if not left:
        screen.print("  all of them are in the store")
        return told
    told["seconds"] = seconds_left(left, workers, weights)
    screen.print(
        f"  {len(left)} to run ({interactions(left):,} interactions): about "
        f"{duration(told['seconds'])} with {counted(workers, 'worker')}"
    )
    return told


def live(
    left: Mapping[str, RunSpec],
    store: Store,
    name: str,
    *,
    workers: int | None,
    engine: Engine,
    weights: Path | None,
    time_limit: float | None,
    force: bool,
) -> dict[str, str]:
    """Live the lifetimes that are ``left``; return the causes of failures by run id."""
    from rulescope.engine.pool import Timeouts

    everything = with_donors(left.values()).values()  # those found in the store included
    with Meter(name, sum(spec.iterations for spec in everything)) as meter:
        campaign = engine.run_all(
            left.values(),
            store,
            workers=workers,
            report=lambda now: meter.follow(now, _standing(now)),
            weights=weights,
            timeouts=Timeouts(run=time_limit),
            name=name,
            force=force,
        )
    for key, cause in campaign.failed.items():
        print(f"error: run {key[:12]} failed: {cause}", file=sys.stderr)
    _index(store)
    return campaign.failed


def _index(store: Store) -> None:
    """Bring the index up to date, so that the next query need not open every record first."""
    from rulescope.cli.records_query import indexing
    from rulescope.records.index import Index

    try:
        with indexing() as report, Index(store) as index:
            index.refresh(report)
    except RecordError as fault:  # it can be made at any time; what was lived is there
        print(f"warning: not indexed: {fault}", file=sys.stderr)


def _standing(campaign: Campaign) -> str:
    said = [f"{campaign.finished}/{campaign.runs} lifetimes"]
    said += [f"{len(campaign.failed)} failed"] if campaign.failed else []
    said += ["stopping at the next iteration (again to stop at once)"] if campaign.stopping else []
    return ", ".join(said)


def _tell_results(results: Results, paths: list[Path], screen: Console) -> None:
    from rulescope.render.table_formats import terminal

    for table in results.tables:
        screen.print()
        screen.print(terminal(table))
    screen.print()
    screen.print(f"{results.budget}.")
    for note in results.notes:
        screen.print(f"note: {note}")
    screen.print(f"written: {paths[0]} and {len(paths) - 1} more in {paths[0].parent}")
