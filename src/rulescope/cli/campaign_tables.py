"""Tables of the runs that campaigns are executing, and of those that failed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rulescope.assays.frame import Label
from rulescope.assays.plan import Plan
from rulescope.cli.console import duration, make_table, printable
from rulescope.core.errors import counted
from rulescope.engine.failures import Failure
from rulescope.engine.heartbeat import CampaignStatus, RunStatus

SHOWN = 12
"""Digits of a run id that are shown."""


def format_label(label: Label) -> str:
    """Return the label of a cell as text."""
    return f"{label:g}" if isinstance(label, float) else label


def describe_runs(plans: Sequence[Plan]) -> dict[str, str]:
    """Return assay, labels and seed of each run of ``plans``, by id."""
    found: dict[str, str] = {}
    for plan in plans:
        found |= dict.fromkeys(plan.donors, f"{plan.assay.id} donor")
        for cell in plan.cells:
            labels = map(format_label, cell.labels.values())
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
