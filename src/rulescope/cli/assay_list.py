"""``rulescope list``: the assays, and the plug-ins of other packages."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.markup import escape

from rulescope.assays import ASSAYS, PRESETS, Assay
from rulescope.assays.plan import Plan, interactions
from rulescope.assays.subject import OWN
from rulescope.cli.console import console, printable, span
from rulescope.cli.options import AsJson
from rulescope.core.entry_points import list_installed


def list_assays(as_json: AsJson = False) -> None:
    """List the assays: the question of each, its arms, and the cost of each preset.

    Then the names of the rules and baselines that can be audited, and the rules and worlds that
    other installed packages provide, if there are any.
    """
    offered = [*list_installed("rule"), *list_installed("world")]
    if as_json:
        assays = [{"kind": "assay"} | _as_data(assay) for assay in ASSAYS.values()]
        print(json.dumps([*assays, *(each._asdict() | {"id": each.name} for each in offered)]))
        return
    screen = console()
    for assay in ASSAYS.values():
        _show_assay(assay, screen)
    screen.print("Run one with: rulescope run scale --preset quick")
    screen.print(f"Rules and baselines: {', '.join(OWN)}. Audit one with: rulescope audit sprout")
    for each in offered:
        option = "--learner" if each.kind == "rule" else "--env"
        name, package = escape(printable(each.name)), escape(printable(each.package))
        screen.print(
            f"[bold]{each.kind} {name}[/bold] of {package}: rulescope life {option} {name}"
        )


def _show_assay(assay: Assay, screen: Console) -> None:
    usual = assay.budget("paper")
    screen.print(f"[bold]{assay.id} {assay.name}[/bold]: {assay.question}")
    screen.print(f"  arms   {', '.join(usual.arms)}")
    controls = [arm for arm in assay.arms if arm not in usual.arms]
    if controls:
        screen.print(f"  extra  {', '.join(controls)} (controls, with --arms)")
    screen.print(f"  scales {', '.join(f'{scale:g}' for scale in usual.scales)}")
    screen.print(f"  tasks  {', '.join(assay.tasks)}")
    if assay.conditions:
        screen.print(f"  conditions  {', '.join(assay.conditions)}")
    if assay.cohort.agent:
        screen.print(f"  agent  {assay.cohort.agent} (inferred). {assay.cohort.evidence}")
    for preset, cost in _list_costs(assay).items():
        lengths = span((cost["shortest"], cost["iterations"]))
        screen.print(
            f"  {preset:9}{cost['runs']:>5} lifetimes of {lengths:>5} iterations, "
            f"{cost['donors']:>2} donors, {cost['interactions']:>11,} interactions"
        )
    screen.print()


def _list_costs(assay: Assay) -> dict[str, dict[str, int]]:
    """Return the number and the lengths of the runs of each preset."""
    costs = {}
    for preset in PRESETS:
        plan = Plan.of(assay, assay.budget(preset))
        lengths = [run.iterations for run in plan.runs.values()]
        costs[preset] = {
            "runs": len(plan.runs),
            "donors": len(plan.donors),
            "iterations": max(lengths),
            "shortest": min(lengths),
            "interactions": interactions([*plan.runs.values(), *plan.donors.values()]),
        }
    return costs


def _as_data(assay: Assay) -> dict[str, Any]:
    return {
        "id": assay.id,
        "name": assay.name,
        "question": assay.question,
        "arms": list(assay.arms),
        "tasks": list(assay.tasks),
        "conditions": list(assay.conditions),
        "agent": assay.cohort.agent,
        "agent_evidence": assay.cohort.evidence,
        "presets": _list_costs(assay),
    }
