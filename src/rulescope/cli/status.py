"""``rulescope status``: how much of the assays a store has, and the campaigns that are running."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rulescope.assays import ASSAYS, PRESETS
from rulescope.assays.estimates import label_text
from rulescope.assays.plan import Plan, interactions
from rulescope.cli.assay_options import OptionalAssay, SelectionOptions, require_preset
from rulescope.cli.console import PLAIN_SECONDS, console, duration, make_table, printable
from rulescope.cli.options import STORE, AsJson, StoreFolder, expand_option_groups
from rulescope.core.errors import SpecError, counted
from rulescope.engine import failures, heartbeat
from rulescope.engine.failures import Failure
from rulescope.engine.heartbeat import CampaignStatus, RunStatus
from rulescope.records import Store

REFRESH_SECONDS = 2.0
QUIET_SECONDS = 30.0
"""Watching ends if no campaign has been running for so long; one may follow another."""


@expand_option_groups
def status(
    assay: OptionalAssay = None,
    *,
    selection: SelectionOptions,
    watch: Annotated[
        bool, typer.Option("--watch", help="Update until no campaign is running.")
    ] = False,
    store: StoreFolder = STORE,
    as_json: AsJson = False,
) -> None:
    """Show how much of an assay is in the store, cell by cell; or of all assays and presets.

    Campaigns that are running now, on this machine or another that shares the store, are shown
    with their speed and the remaining time; failed runs with the last cause. With --watch, the
    tables are updated: in place on a terminal, elsewhere as a line now and then.
    """
    if watch and as_json:
        raise SpecError("--watch and --json exclude one another")
    keep = Store(store, read_only=True)
    require_preset(selection.preset)  # which is not read if all presets are shown
    plans = [
        (preset, Plan.of(found, budget, keep))
        for name in ([assay] if assay else ASSAYS)
        for preset in ([selection.preset] if assay else PRESETS)
        for found, budget in selection.budgets(name, preset)
    ]
    state = StoreState.read(plans, keep, by_cell=bool(assay))
    if watch:
        _watch(state)
    elif as_json:
        print(json.dumps([state.summary(*each) for each in state.plans]))
    else:
        console().print(state.render())


@dataclass(frozen=True)
class StoreState:
    """The state of some plans in a store at one moment."""

    store: Store
    plans: list[tuple[str, Plan]]
    """Each with its preset."""
    by_cell: bool
    """Whether the cells of each plan are shown."""
    campaigns: list[CampaignStatus]
    failures: dict[str, Failure]
    """Of runs without a record, by id."""

    @classmethod
    def read(cls, plans: list[tuple[str, Plan]], store: Store, by_cell: bool) -> StoreState:
        """Read campaigns and failures from ``store``."""
        wanted = {key for _, plan in plans for key in (*plan.runs, *plan.donors)}
        known = failures.load(store, wanted if by_cell else None)
        return cls(store, plans, by_cell, heartbeat.load(store), known)

    def refresh(self) -> StoreState:
        """Return the state by now."""
        plans = []
        for preset, plan in self.plans:
            new = frozenset(key for key in plan.missing if key in self.store)
            plans.append((preset, replace(plan, present=plan.present | new)))
        return self.read(plans, self.store, self.by_cell)

    @property
    def running(self) -> set[str]:
        """Ids of the runs that are being executed."""
        return {run.id for campaign in self.campaigns for run in campaign.running}

    @property
    def failed(self) -> dict[str, Failure]:
        """Failures of runs that are not being tried again now."""
        return {run: failure for run, failure in self.failures.items() if run not in self.running}

    def summary(self, preset: str, plan: Plan) -> dict[str, Any]:
        """Return the state of a plan as plain data."""
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

    def render(self) -> RenderableType:
        """Return the tables of campaigns, plans, failures and cells."""
        descriptions = describe_runs([plan for _, plan in self.plans])
        parts: list[RenderableType] = []
        if self.campaigns:
            parts.append(running_tables(self.campaigns, descriptions))
        parts.append(self._plan_table())
        if self.failed:
            parts += ["", failure_table(self.failed, descriptions)]
        if self.by_cell:
            for _, plan in self.plans:
                parts += ["", self._cell_table(plan)]
        return Group(*parts)

    def _plan_table(self) -> Table:
        counts = (">agent", ">lifetimes", ">donors", ">running", ">failed", ">remaining")
        table = make_table("assay", "preset", *counts)
        for preset, plan in self.plans:
            body = self.summary(preset, plan)
            table.add_row(
                f"{plan.assay.id} {plan.assay.name}",
                preset,
                plan.budget.agent,
                f"{body['done']}/{body['runs']}",
                f"{body['donors_done']}/{body['donors']}",
                _format_count(len(body["running"])),
                _format_count(len(body["failed"])),
                f"{interactions(plan.missing.values()):,} interactions",
            )
        return table

    def _cell_table(self, plan: Plan) -> Table:
        table = make_table(*plan.cells[0].labels, ">lifetimes", ">running", ">failed")
        for cell in plan.cells:
            table.add_row(
                *map(label_text, cell.labels.values()),
                f"{plan.done(cell)}/{len(cell.runs)}",
                _format_count(sum(run.id in self.running for run in cell.runs)),
                _format_count(sum(run.id in self.failed for run in cell.runs)),
            )
        return table

    def lines(self) -> Iterator[str]:
        """Yield the state of every campaign, a line each."""
        if not self.campaigns:
            done = sum(key in plan.present for _, plan in self.plans for key in plan.runs)
            runs = sum(len(plan.runs) for _, plan in self.plans)
            yield f"no campaign is running: {done}/{runs} lifetimes, {len(self.failed)} failed"
        yield from map(campaign_line, self.campaigns)


def _format_count(count: int) -> str:
    return f"{count}" if count else ""


def _watch(state: StoreState) -> None:
    """Show ``state`` as it changes, until no campaign is running or Ctrl-C."""
    screen = Console()
    try:
        if not screen.is_terminal:
            for now in _follow(state, PLAIN_SECONDS):
                print(*now.lines(), sep="\n", flush=True)
            return
        with Live(console=screen, auto_refresh=False) as panel:
            for now in _follow(state, REFRESH_SECONDS):
                panel.update(now.render(), refresh=True)
    except KeyboardInterrupt:
        pass  # the usual way to stop watching


def _follow(state: StoreState, seconds: float) -> Iterator[StoreState]:
    """Yield the state every so many ``seconds``."""
    quiet = 0.0
    while True:
        yield state
        quiet = 0.0 if state.campaigns else quiet + seconds
        if quiet > QUIET_SECONDS:
            return
        time.sleep(seconds)
        state = state.refresh()


SHOWN = 12
"""Digits of a run id that are shown."""


def describe_runs(plans: Sequence[Plan]) -> dict[str, str]:
    """Return assay, labels and seed of each run of ``plans``, by id."""
    found: dict[str, str] = {}
    for plan in plans:
        found |= dict.fromkeys(plan.donors, f"{plan.assay.id} donor")
        for cell in plan.cells:
            labels = map(label_text, cell.labels.values())
            name = " ".join([plan.assay.id, *labels])
            found |= {run.id: f"{name} seed {run.seed}" for run in cell.runs}
    return found


def campaign_line(campaign: CampaignStatus) -> str:
    """Return the state of a campaign in one line."""
    failed = f", {len(campaign.failed)} failed" if campaign.failed else ""
    return printable(
        f"{campaign.name or 'campaign'} on {campaign.host} (process {campaign.pid}): "
        f"{campaign.finished}/{campaign.runs} lifetimes, {len(campaign.running)} running{failed}, "
        f"{_format_pace(campaign)}"
    )


def _format_pace(campaign: CampaignStatus) -> str:
    """Return the speed and the remaining time of a campaign."""
    left = campaign.seconds_left
    parts = [f"{campaign.rate:.1f} it/s"] if campaign.rate else []
    parts += [f"{duration(left)} left"] if left is not None else []
    parts += ["stopping"] if campaign.stopping else []
    return ", ".join(parts) or "starting"


def running_tables(
    campaigns: Sequence[CampaignStatus], descriptions: Mapping[str, str]
) -> RenderableType:
    """Return the runs of each campaign, below a line with its state."""
    parts: list[RenderableType] = []
    for campaign in campaigns:
        elapsed = duration(max(time.time() - campaign.started, 0.0))
        workers = f"{counted(campaign.workers, 'worker')}, for {elapsed} so far"
        parts.append(Text(f"{campaign_line(campaign)}; {workers}", style="bold"))
        if campaign.running:
            parts.append(_running_table(campaign.running, descriptions))
        parts.append(Text())
    return Group(*parts)


def _running_table(runs: Sequence[RunStatus], descriptions: Mapping[str, str]) -> Table:
    table = make_table("  run", "what", ">iteration", ">it/s", ">left", ">attempt")
    for run in runs:
        left = duration((run.iterations - run.iteration) / run.rate) if run.rate else ""
        table.add_row(
            Text(printable(f"  {run.id[:SHOWN]}")),
            descriptions.get(run.id, ""),
            f"{run.iteration:,}/{run.iterations:,}",
            f"{run.rate:.1f}" if run.rate else "",
            left,
            f"{run.attempt}",
        )
    return table


def failure_table(failures: Mapping[str, Failure], descriptions: Mapping[str, str]) -> Table:
    """Return the failed runs with their number of attempts and the last cause."""
    table = make_table("failed run", "what", ">attempts", "last cause")
    for run, failure in failures.items():
        cause = failure.cause.splitlines()[0] if failure.cause else ""
        attempts = f"{len(failure.attempts)}"
        table.add_row(run[:SHOWN], descriptions.get(run, ""), attempts, Text(printable(cause)))
    return table
