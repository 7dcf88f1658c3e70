"""``rulescope audit``: the effects of a rule's learning history along five axes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from rulescope.assays.assay_run import require_runnable
from rulescope.assays.plan import interactions, write
from rulescope.assays.recorded_plans import record_plan
from rulescope.assays.subject import name_history, name_with_options
from rulescope.audit import audit_plan
from rulescope.audit.audit_plan import (
    Audit,
    AuditResults,
    analyse_audit,
    located_weights,
    missing_runs,
    plan_audits,
)
from rulescope.audit.profile import Profile
from rulescope.cli.assay_options import (
    Agent,
    EngineOptions,
    Preset,
    ReferenceBest,
    RuleOption,
    Seeds,
)
from rulescope.cli.atlas_command import finish_atlas
from rulescope.cli.console import console
from rulescope.cli.options import (
    RESULTS,
    STORE,
    AsJson,
    Out,
    PlanOnly,
    StoreFolder,
    Weights,
    expand_option_groups,
    split_names,
)
from rulescope.cli.run import SOME_FAILED, run_missing, show_missing
from rulescope.core.disk import require_writable
from rulescope.core.errors import SpecError, counted
from rulescope.engine.execution import Execution
from rulescope.records import Store
from rulescope.run_spec import RunSpec


@expand_option_groups
def audit(
    rules: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RULE]...",
            help="sprout, disco103, open, open-breakout, ..., a baseline such as ppo, a file of "
            "weights, the folder of a discovery, or the name of a plug-in. Of several, an atlas "
            "is made as well. Default: sprout.",
        ),
    ] = None,
    preset: Preset = "quick",
    seeds: Seeds = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Only these assays of the audit, such as E1,exposure."),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Carriers that count as history, such as moments or replay. Default: those that "
            "the rule declares.",
        ),
    ] = None,
    option: RuleOption = None,
    env: Annotated[
        str | None,
        typer.Option(
            help="Audit in this world instead of those of the assays, such as "
            "gymnasium:CartPole-v1 or a plug-in (docs/worlds.md)."
        ),
    ] = None,
    reference_best: ReferenceBest = None,
    agent: Agent = None,
    weights: Weights = None,
    *,
    engine_options: EngineOptions,
    plan_only: PlanOnly = False,
    store: StoreFolder = STORE,
    out: Out = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Audit a rule along five axes: is its learning history an asset or a burden?

    The same rule learns with its recurrent state as it is, pinned to zero, frozen, or transplanted
    from another run, while its weights stay fixed; its null rule (the same network with random
    weights) and baselines are run for comparison. The result is one profile: competence and pace,
    reward scale, inheritance, streams and boundaries, change and replay, exploration. The last
    line answers the question: asset, burden, both, neither or undecided. The same command resumes
    an interrupted audit. With --history, other carriers than the recurrent state are pinned, frozen
    and transplanted, such as the moments of a baseline's optimiser.

    Several rules are audited in one campaign; lifetimes that they share, such as those of the
    baselines, are run once. After their profiles comes the atlas: the rules side by side (see
    rulescope atlas).

    Examples:

      rulescope audit

      rulescope audit disco103 --preset standard

      rulescope audit store/discoveries/ID --preset quick

      rulescope audit open --preset quick

      rulescope audit ppo --history moments

      rulescope audit sprout --env gymnasium:CartPole-v1

      rulescope audit sprout a2c ppo@moments dqn@replay
    """
    keep, screen = Store(store), console(as_json)
    named = rules or ["sprout"]
    if option:
        named = [name_with_options(rule, option) for rule in named]
    if history is not None:
        carriers = split_names("--history", history)
        named = [name_history(rule, carriers) for rule in named]
    try:
        audits = plan_audits(
            named,
            keep,
            preset=preset,
            seeds=seeds,
            only=split_names("--only", only),
            agent=agent,
            weights=weights,
            env=env,
            reference_best=reference_best,
        )
    except SpecError as fault:
        if history is None:
            raise
        raise SpecError(_about_history(str(fault), named)) from None
    missing = missing_runs(audits)
    with located_weights(audits) as located:
        execution = engine_options.execution(located)
        for planned in audits:
            folder = out / planned.folder_name
            require_runnable(list(missing.values()), keep, execution, folder)
        bodies = [_show_plan(planned, screen) for planned in audits]
        body = _show_total(audits, bodies, missing, execution, screen) | {"failed": {}}
        if not plan_only:
            require_writable(out)
            for planned, rule in zip(audits, named, strict=True):
                for plan in planned.plans:
                    record_plan(keep, plan.assay, plan.budget, rule)
            body["failed"] = run_missing(missing, keep, execution, "audit")
    if not plan_only:
        browse = _report_command(store, out)
        body |= _finish(audits, bodies, keep, out, browse, screen)
    if as_json:
        print(json.dumps(body))
    if body["failed"]:
        raise typer.Exit(SOME_FAILED)


def _about_history(problem: str, named: Sequence[str]) -> str:
    """Return ``problem`` with ``--history`` for the name that the option made of a rule."""
    for name in named:
        if problem.startswith(f"{name!r}: "):
            return f"--history: {problem.removeprefix(f'{name!r}: ')}"
    return problem


def _finish(
    audits: Sequence[Audit],
    bodies: Sequence[dict[str, Any]],
    store: Store,
    out: Path,
    browse: str,
    screen: Console,
) -> dict[str, Any]:
    """Analyse ``audits``, write and print their profiles, and of several the atlas.

    Return what that adds to the output for programs; ``bodies``, one for each audit, are filled in.
    """
    profiles: dict[str, Profile] = {}
    for planned, body in zip(audits, bodies, strict=True):
        found, folder = analyse_audit(planned, store), out / planned.folder_name
        _write(found, store, folder)
        profiles[folder.name] = found.profile
        body |= {"folder": str(folder), "profile": json.loads(found.profile.to_json())}
        if len(audits) == 1:
            _show_profile(found, folder, browse, screen)
        else:
            _show_answer(found, folder, screen)
    return bodies[0] if len(audits) == 1 else {"atlas": finish_atlas(profiles, out, screen)}


def _show_answer(found: AuditResults, folder: Path, screen: Console) -> None:
    """Print the answer of one of several audits, and where its profile is."""
    from rulescope.audit.profile_folder import last_line

    answer = last_line(found.profile)
    screen.print(f"[bold]{escape(found.profile.rule)}[/bold]", answer, soft_wrap=True)
    screen.print(f"  profile: {folder / 'README.md'}", markup=False)


def _show_total(
    audits: Sequence[Audit],
    bodies: Sequence[dict[str, Any]],
    missing: Mapping[str, RunSpec],
    execution: Execution,
    screen: Console,
) -> dict[str, Any]:
    """Print what is missing of all ``audits`` together; return the whole plan as plain data."""
    runs = {key for planned in audits for key in planned.runs}
    if len(audits) > 1:
        shared = sum(len(planned.runs) for planned in audits) - len(runs)
        screen.print(
            f"[bold]together[/bold]: {counted(len(runs), 'lifetime')}"
            + (f" ({counted(shared, 'lifetime')} shared)" if shared else "")
        )
    seconds = show_missing(missing, execution, screen)
    total = {"runs": len(runs), "missing": len(missing), "seconds": seconds}
    return {**bodies[0], **total} if len(audits) == 1 else {"audits": list(bodies), **total}


def _show_plan(planned: Audit, screen: Console) -> dict[str, Any]:
    """Print the plan of one rule; return it as plain data."""
    name, plans, runs = planned.subject.name, planned.plans, planned.runs
    screen.print(f"[bold]audit of {name}[/bold]: {', '.join(plan.assay.name for plan in plans)}")
    screen.print(
        f"  {counted(sum(len(plan.cells) for plan in plans), 'cell')}, "
        f"{counted(len(runs), 'lifetime')}, {interactions(runs.values()):,} interactions"
    )
    for line in planned.left_out:
        screen.print(f"  left out: {line}", markup=False)
    return {"rule": name, "runs": len(runs), "missing": len(planned.missing)}


def _write(found: AuditResults, store: Store, folder: Path) -> None:
    """Write every assay and the profile into ``folder``."""
    from rulescope.audit.profile_folder import write_profile

    for name, (plan, results) in found.assays.items():
        figures = audit_plan.FIGURES.get(name)
        write(plan, results, store, folder / name, figures, alone=True)
    write_profile(found.profile, {name: name for name in found.assays}, folder)


def _show_profile(found: AuditResults, folder: Path, browse: str, screen: Console) -> None:
    """Print the profile, its folder, and as the last line the answer."""
    from rulescope.audit.profile_folder import last_line, summary

    screen.print()
    for renderable in summary(found.profile):
        screen.print(renderable)
    screen.print(f"written: {folder / 'README.md'}, a picture (profile.png) and every assay")
    screen.print(f"browse it: {browse}", markup=False)
    screen.print(last_line(found.profile), soft_wrap=True)


def _report_command(store: Path, out: Path) -> str:
    """Return the command that makes pages of the results of this audit."""
    usual = (store, out) == (STORE, RESULTS)
    places = [] if usual else ["--store", str(store), "--results", str(out)]
    return shlex.join(["rulescope", "report", *places])
