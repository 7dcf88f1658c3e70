"""``rulescope status`` and ``rulescope list``: what there is to run, and how far it is."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table

from rulescope.assays import ASSAYS, PRESETS
from rulescope.cli import choosing
from rulescope.cli.choosing import choose
from rulescope.cli.output import console, spanned
from rulescope.plan import Plan, interactions
from rulescope.records import Store


def status(
    assay: choosing.OptionalAssay = None,
    preset: choosing.Preset = "quick",
    seeds: choosing.Seeds = None,
    iterations: choosing.Iterations = None,
    episodes: choosing.Episodes = None,
    arms: choosing.Arms = None,
    scales: choosing.Scales = None,
    tasks: choosing.Tasks = None,
    conditions: choosing.Conditions = None,
    profile: choosing.Profile = None,
    rule: choosing.RuleName = None,
    store: choosing.StoreFolder = choosing.STORE,
    as_json: choosing.AsJson = False,
) -> None:
    """Tell how much of an assay is in the store, cell by cell; or of all assays and presets."""
    keep = Store(store)
    ASSAYS["E1"].budget(preset)  # so that a misspelt one is told even where all are shown
    names = [assay] if assay else list(ASSAYS)
    presets = [preset] if assay else PRESETS
    plans = {
        (name, each, budget.profile): Plan.of(found, budget, keep)
        for name in names
        for each in presets
        for found, budget in choose(
            name,
            each,
            seeds=seeds,
            iterations=iterations,
            episodes=episodes,
            arms=arms,
            scales=scales,
            tasks=tasks,
            conditions=conditions,
            profile=profile,
            rule=rule,
        )
    }
    if as_json:
        print(json.dumps([_summary(plan, key[1]) for key, plan in plans.items()]))
        return
    screen = console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("assay", "preset", "profile", "lifetimes", "donors", "to live"):
        table.add_column(heading, justify="left" if heading in ("assay", "preset") else "right")
    for (_, each, _), plan in plans.items():
        said = _summary(plan, each)
        table.add_row(
            f"{plan.assay.id} {plan.assay.name}",
            each,
            plan.budget.profile,
            f"{said['done']}/{said['runs']}",
            f"{said['donors_done']}/{said['donors']}",
            f"{interactions(plan.missing.values()):,} interactions",
        )
    screen.print(table)
    if assay:
        for plan in plans.values():
            screen.print()
            screen.print(_by_cell(plan))


def _summary(plan: Plan, preset: str) -> dict[str, object]:
    return {
        "assay": plan.assay.id,
        "preset": preset,
        "profile": plan.budget.profile,
        "runs": len(plan.runs),
        "done": sum(key in plan.present for key in plan.runs),
        "donors": len(plan.donors),
        "donors_done": sum(key in plan.present for key in plan.donors),
        "missing": sorted(plan.missing),
    }


def _by_cell(plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for axis in plan.cells[0].labels:
        table.add_column(axis)
    table.add_column("lifetimes", justify="right")
    for cell in plan.cells:
        labels = cell.labels.values()
        shown = [f"{label:g}" if isinstance(label, float) else label for label in labels]
        table.add_row(*shown, f"{plan.done(cell)}/{len(cell.runs)}")
    return table


def list_(as_json: choosing.AsJson = False) -> None:
    """List the assays: what each asks, its arms, and what each preset costs."""
    if as_json:
        print(json.dumps([_described(name) for name in ASSAYS]))
        return
    screen = console()
    for name, assay in ASSAYS.items():
        said = _described(name)
        screen.print(f"[bold]{assay.id} {assay.name}[/bold]: {assay.question}")
        usual = assay.budget("paper").arms
        screen.print(f"  arms   {', '.join(usual)}")
        controls = [arm for arm in assay.arms if arm not in usual]
        if controls:
            screen.print(f"  extra  {', '.join(controls)} (controls, with --arms)")
        scales = ", ".join(f"{scale:g}" for scale in assay.budget("paper").scales)
        screen.print(f"  scales {scales}")
        screen.print(f"  tasks  {', '.join(assay.tasks)}")
        if assay.conditions:
            screen.print(f"  conditions  {', '.join(assay.conditions)}")
        for preset, cost in said["presets"].items():
            lengths = spanned((cost["shortest"], cost["iterations"]))
            screen.print(
                f"  {preset:9}{cost['runs']:>5} lifetimes of {lengths:>5} iterations, "
                f"{cost['donors']:>2} donors, {cost['interactions']:>11,} interactions"
            )
        screen.print()
    screen.print("Run one with: rulescope run scale --preset quick")


def _described(name: str) -> dict[str, Any]:
    assay = ASSAYS[name]
    costs = {}
    for preset in PRESETS:
        plan = Plan.of(assay, assay.budget(preset))
        everything = [*plan.runs.values(), *plan.donors.values()]
        lengths = [run.iterations for run in plan.runs.values()]
        costs[preset] = {
            "runs": len(plan.runs),
            "donors": len(plan.donors),
            "iterations": max(lengths),
            "shortest": min(lengths),
            "interactions": interactions(everything),
        }
    return {
        "id": assay.id,
        "name": assay.name,
        "question": assay.question,
        "arms": list(assay.arms),
        "tasks": list(assay.tasks),
        "conditions": list(assay.conditions),
        "presets": costs,
    }
