"""``rulescope status`` and ``rulescope list``: what there is to run, and how far it is."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from rulescope.assays import ASSAYS, PRESETS
from rulescope.assays.plan import Plan, interactions
from rulescope.cli import run_state, selection_options
from rulescope.cli.console import console, printable, spanned
from rulescope.cli.progress import PLAIN_SECONDS
from rulescope.cli.selection_options import choose
from rulescope.core.entry_points import list_installed
from rulescope.core.errors import SpecError
from rulescope.engine import failures, heartbeat
from rulescope.engine.failures import Failure
from rulescope.engine.heartbeat import CampaignStatus
from rulescope.records import Store

REFRESH_SECONDS = 2.0
QUIET_SECONDS = 30.0
"""Watching ends when no campaign has been running for so long; one may follow another."""


def status(
    assay: selection_options.OptionalAssay = None,
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
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on as long as a campaign is running.")
    ] = False,
    store: selection_options.StoreFolder = selection_options.STORE,
    as_json: selection_options.AsJson = False,
) -> None:
    """Tell how much of an assay is in the store, cell by cell; or of all assays and presets.

    Lifetimes that are being lived now, on this machine or another that shares the store, are told
    with their speed and the time left; those that failed, with the last cause. With --watch, this
    is kept up to date: on a terminal in place, elsewhere as a line now and then.
    """
    if watch and as_json:
        raise SpecError("--watch and --json exclude one another")
    keep = Store(store, read_only=True)
    ASSAYS["E1"].budget(preset)  # so that a misspelt one is told even where all are shown
    names = [assay] if assay else list(ASSAYS)
    presets = [preset] if assay else PRESETS
    plans = {
        (name, each, budget.agent): Plan.of(found, budget, keep)
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
            agent=agent,
            rule=rule,
        )
    }
    view = _View.of([(key[1], plan) for key, plan in plans.items()], keep, by_cell=bool(assay))
    if watch:
        _watch(view)
    elif as_json:
        print(json.dumps([view.summary(*each) for each in view.plans]))
    else:
        console().print(view.shown())


@dataclass(frozen=True)
class _View:
    """A store at one moment, as far as some plans go."""

    store: Store
    plans: list[tuple[str, Plan]]
    """Each with its preset."""
    by_cell: bool
    campaigns: list[CampaignStatus]
    failures: dict[str, Failure]

    @classmethod
    def of(cls, plans: list[tuple[str, Plan]], store: Store, by_cell: bool) -> _View:
        wanted = {key for _, plan in plans for key in (*plan.runs, *plan.donors)}
        broken = failures.load(store, wanted if by_cell else None)
        return cls(store, plans, by_cell, heartbeat.load(store), broken)

    def again(self) -> _View:
        """Return the same a moment later."""
        plans = [
            (preset, replace(plan, present=plan.present | _new(plan, self.store)))
            for preset, plan in self.plans
        ]
        return self.of(plans, self.store, self.by_cell)

    @property
    def running(self) -> set[str]:
        return {run.id for campaign in self.campaigns for run in campaign.running}

    @property
    def failed(self) -> dict[str, Failure]:
        """What failed and is not being tried again just now."""
        return {run: failure for run, failure in self.failures.items() if run not in self.running}

    def summary(self, preset: str, plan: Plan) -> dict[str, Any]:
        """Return a plan and where it stands, as plain data."""
        everything = {*plan.runs, *plan.donors}
        ours = [each for each in self.campaigns if everything & {run.id for run in each.running}]
        return {
            "assay": plan.assay.id,
            "preset": preset,
            "agent": plan.budget.agent,
            "runs": len(plan.runs),
            "done": sum(key in plan.present for key in plan.runs),
            "donors": len(plan.donors),
            "donors_done": sum(key in plan.present for key in plan.donors),
            "missing": sorted(plan.missing),
            "running": sorted(self.running & everything),
            "failed": {key: f.cause for key, f in self.failed.items() if key in everything},
            "campaigns": msgspec.to_builtins(ours),
        }

    def shown(self) -> RenderableType:
        """Return all of it for people."""
        known = run_state.names([plan for _, plan in self.plans])
        parts: list[RenderableType] = []
        if self.campaigns:
            parts.append(run_state.now_running(self.campaigns, known))
        parts.append(self._totals())
        if self.failed:
            parts += ["", run_state.failed(self.failed, known)]
        if self.by_cell:
            for _, plan in self.plans:
                parts += ["", self._by_cell(plan)]
        return Group(*parts)

    def _totals(self) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("assay", "preset", "agent", "lifetimes", "donors", "running", "failed"):
            table.add_column(heading, justify="left" if heading in ("assay", "preset") else "right")
        table.add_column("to live", justify="right")
        for preset, plan in self.plans:
            said = self.summary(preset, plan)
            table.add_row(
                f"{plan.assay.id} {plan.assay.name}",
                preset,
                plan.budget.agent,
                f"{said['done']}/{said['runs']}",
                f"{said['donors_done']}/{said['donors']}",
                _some(len(said["running"])),
                _some(len(said["failed"])),
                f"{interactions(plan.missing.values()):,} interactions",
            )
        return table

    def _by_cell(self, plan: Plan) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for axis in plan.cells[0].labels:
            table.add_column(axis)
        for heading in ("lifetimes", "running", "failed"):
            table.add_column(heading, justify="right")
        for cell in plan.cells:
            labels = cell.labels.values()
            shown = [f"{label:g}" if isinstance(label, float) else label for label in labels]
            table.add_row(
                *shown,
                f"{plan.done(cell)}/{len(cell.runs)}",
                _some(sum(run.id in self.running for run in cell.runs)),
                _some(sum(run.id in self.failed for run in cell.runs)),
            )
        return table

    def lines(self) -> Iterator[str]:
        """Yield where every campaign stands, in a line each."""
        if not self.campaigns:
            done = sum(key in plan.present for _, plan in self.plans for key in plan.runs)
            runs = sum(len(plan.runs) for _, plan in self.plans)
            yield f"no campaign is running: {done}/{runs} lifetimes, {len(self.failed)} failed"
        for campaign in self.campaigns:
            yield run_state.line(campaign)


def _new(plan: Plan, store: Store) -> frozenset[str]:
    """Return what has been lived since."""
    return frozenset(key for key in plan.missing if key in store)


def _some(count: int) -> str:
    return f"{count}" if count else ""


def _watch(view: _View) -> None:
    """Show ``view`` as it changes, until no campaign is running or somebody has seen enough."""
    screen = Console()
    try:
        if not screen.is_terminal:
            for now in _views(view, PLAIN_SECONDS):
                print(*now.lines(), sep="\n", flush=True)
            return
        with Live(console=screen, auto_refresh=False) as panel:
            for now in _views(view, REFRESH_SECONDS):
                panel.update(now.shown(), refresh=True)
    except KeyboardInterrupt:
        pass  # the usual way to leave


def _views(view: _View, seconds: float) -> Iterator[_View]:
    quiet = 0.0
    while True:
        yield view
        quiet = 0.0 if view.campaigns else quiet + seconds
        if quiet > QUIET_SECONDS:
            return
        time.sleep(seconds)
        view = view.again()


def list_(as_json: selection_options.AsJson = False) -> None:
    """List the assays: what each asks, its arms, and what each preset costs.

    Then the rules and worlds that other installed packages offer, if there are any.
    """
    offered = [*list_installed("rule"), *list_installed("world")]
    if as_json:
        known = [{"kind": "assay"} | _described(name) for name in ASSAYS]
        also = [each._asdict() | {"id": each.name} for each in offered]
        print(json.dumps([*known, *also]))
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
        if assay.cohort.agent:
            screen.print(f"  agent  {assay.cohort.agent} (inferred). {assay.cohort.evidence}")
        for preset, cost in said["presets"].items():
            lengths = spanned((cost["shortest"], cost["iterations"]))
            screen.print(
                f"  {preset:9}{cost['runs']:>5} lifetimes of {lengths:>5} iterations, "
                f"{cost['donors']:>2} donors, {cost['interactions']:>11,} interactions"
            )
        screen.print()
    screen.print("Run one with: rulescope run scale --preset quick")
    for each in offered:
        option = "--learner" if each.kind == "rule" else "--env"
        screen.print(
            f"[bold]{each.kind} {escape(printable(each.name))}[/bold] of "
            f"{escape(printable(each.package))}: rulescope life {option} "
            f"{escape(printable(each.name))}"
        )


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
        "agent": assay.cohort.agent,
        "agent_evidence": assay.cohort.evidence,
        "presets": costs,
    }
