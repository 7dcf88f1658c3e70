"""``rulescope audit``: what a rule's learning history does along five axes, as one command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from rulescope.assays import PRESETS, Assay, Budget, Results
from rulescope.assays.plan import Plan, interactions, seconds_left, write
from rulescope.assays.recorded_plans import record_plan
from rulescope.assays.results import counted
from rulescope.audit import audit_plan, subjects
from rulescope.audit.profile import Profile
from rulescope.cli import engine_options, selection_options
from rulescope.cli.console import console
from rulescope.cli.engine_options import Engine
from rulescope.cli.progress import duration
from rulescope.cli.run import SOME_FAILED, live, require_possible
from rulescope.core.errors import SpecError, nearest
from rulescope.engine.resources import cores
from rulescope.records import Store
from rulescope.render.result_files import require_writable
from rulescope.spec.disco_config import AGENTS
from rulescope.spec.run_spec import RunSpec


def audit(
    rule: Annotated[
        str,
        typer.Argument(
            help="sprout, disco103, open, open-breakout, ..., a file of weights, the folder of a "
            "discovery, or the name of a plug-in."
        ),
    ] = "sprout",
    preset: selection_options.Preset = "quick",
    seeds: selection_options.Seeds = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Only these assays of the audit, such as E1,exposure."),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(help=f"Conventions of a released rule's learner: {', '.join(AGENTS)}."),
    ] = None,
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
    weights: selection_options.Weights = None,
    as_json: selection_options.AsJson = False,
) -> None:
    """Audit a rule along five axes: is its learning history an asset or a burden?

    The same rule learns with its recurrent state as it is, pinned to zero, frozen, or transplanted
    from another lifetime, while its weights stay fixed; beside it learn its null rule (the same
    network with random weights) and baselines. The result is one profile: competence and pace,
    reward scale, inheritance, streams and boundaries, change and replay, exploration. The last
    line answers the question: asset, burden, both, neither or undecided.
    Run it again and it picks up where it stopped.

    Examples:

      rulescope audit

      rulescope audit disco103 --preset standard

      rulescope audit store/discoveries/ID --preset quick

      rulescope audit open --preset quick
    """
    place = Engine.chosen(engine, address, cpus_per_run, gpus_per_run)
    if preset not in PRESETS:
        raise SpecError(f"--preset: no {preset!r}{nearest(preset, PRESETS)}")
    audited, weights = subjects.find(rule, weights)
    chosen = audit_plan.budgets(
        audited.rule,
        audited.subject,
        preset,
        seeds=seeds,
        only=selection_options.words("--only", only),
        agent=agent,
    )
    keep = Store(store)
    plans = [Plan.of(assay, budget, keep) for assay, budget in chosen]
    screen = console(as_json)
    left = {key: spec for plan in plans for key, spec in plan.missing.items()}
    other = "" if agent in (None, audit_plan.AGENT) else f"-{agent}"
    folder = out / f"audit-{audited.folder}{other}-{preset}"
    require_possible(list(left.values()), keep, folder, place, workers, weights, force=force)
    processes = workers or (1 if place.elsewhere else cores())
    told = _tell(audited.name, plans, left, processes, weights, screen)
    failed: dict[str, str] = {}
    if dry:
        _done(told, as_json, failed)
        return
    require_writable(out)
    for assay, budget in chosen:
        record_plan(keep, assay, budget, rule)
    if left:
        keep.require_writable()
        failed = live(
            left,
            keep,
            "audit",
            workers=workers,
            engine=place,
            weights=weights,
            time_limit=time_limit,
            force=force,
        )
    profile = _written(audited, preset, chosen, keep, folder)
    _show(profile, folder, f"rulescope report{_places(store, out)}", screen)
    _done(told | {"folder": str(folder), "profile": json.loads(profile.to_json())}, as_json, failed)


def _tell(
    name: str,
    plans: list[Plan],
    left: dict[str, RunSpec],
    workers: int,
    weights: Path | None,
    screen: Console,
) -> dict[str, Any]:
    """Print what is planned; return it as plain data."""
    runs = {key: spec for plan in plans for key, spec in (*plan.runs.items(), *plan.donors.items())}
    screen.print(f"[bold]audit of {name}[/bold]: {', '.join(p.assay.name for p in plans)}")
    screen.print(
        f"  {counted(sum(len(plan.cells) for plan in plans), 'cell')}, "
        f"{counted(len(runs), 'lifetime')}, {interactions(runs.values()):,} interactions"
    )
    seconds = seconds_left(list(left.values()), workers, weights) if left else 0.0
    screen.print(
        f"  {len(left)} to run: about {duration(seconds)} with {counted(workers, 'worker')}"
        if left
        else "  all of them are in the store"
    )
    return {"rule": name, "runs": len(runs), "missing": len(left), "seconds": seconds}


def _written(
    audited: subjects.Audited,
    preset: str,
    chosen: list[tuple[Assay, Budget]],
    store: Store,
    folder: Path,
) -> Profile:
    """Analyse what is there, write every assay and the profile into ``folder``; return that."""
    from rulescope.audit import evidence, history, optimiser_profile, profile_axes
    from rulescope.audit.profile_folder import write_profile

    found: dict[str, Results] = {}
    used: set[str] = set()
    for assay, budget in chosen:
        plan = Plan.of(assay, budget, store)
        if any(key in plan.present for key in plan.runs):
            found[assay.id] = plan.analyse(store)
            used |= plan.present
            drawn = audit_plan.FIGURES.get(assay.id)
            write(plan, found[assay.id], store, folder / assay.id, drawn, alone=True)
    if audited.subject is None:
        axes, compared = optimiser_profile.axes_of(found), optimiser_profile.comparisons(found)
    else:
        axes, compared = profile_axes.axes_of(found), evidence.comparisons(found)
    answer = history.answer(compared, has_history=audit_plan.has_history(audited.subject))
    content = audited.rule if audited.rule != audited.name else ""
    runs = {run: store.manifest(run).science_hash for run in sorted(used)}
    agent = chosen[0][1].agent
    learner = f"{audited.description}, agent {agent}" if agent else audited.description
    profile = Profile(audited.name, preset, learner, axes, _notes(found), content, runs, answer)
    write_profile(profile, {name: name for name in found}, folder)
    return profile


def _notes(found: Mapping[str, Results]) -> tuple[str, ...]:
    """Return what readers of the assays should know, with the assay that says it."""
    return tuple(f"{name}: {note}" for name, results in found.items() for note in results.notes)


def _show(profile: Profile, folder: Path, browse: str, screen: Console) -> None:
    """Print the profile, where it is, and as the last line the answer."""
    from rulescope.audit.profile_folder import last_line, summary

    screen.print()
    for renderable in summary(profile):
        screen.print(renderable)
    screen.print(f"written: {folder / 'README.md'}, a picture (profile.png) and every assay beside")
    screen.print(f"browse it: {browse}", markup=False)
    screen.print(last_line(profile), soft_wrap=True)


def _places(store: Path, out: Path) -> str:
    """Return the options by which a report finds what this audit wrote."""
    usual = (store, out) == (selection_options.STORE, selection_options.RESULTS)
    return "" if usual else f" {shlex.join(['--store', str(store), '--results', str(out)])}"


def _done(said: dict[str, Any], as_json: bool, failed: dict[str, str]) -> None:
    if as_json:
        print(json.dumps(said | {"failed": failed}))
    if failed:
        raise typer.Exit(SOME_FAILED)
