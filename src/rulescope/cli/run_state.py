"""Where lifetimes stand, for people: those that are being lived now, and those that failed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rulescope.assays.plan import Plan
from rulescope.assays.results import counted
from rulescope.cli.console import printable
from rulescope.cli.progress import duration
from rulescope.engine.failures import Failure
from rulescope.engine.heartbeat import CampaignStatus, RunStatus

SHOWN = 12
"""Digits of a run id that are shown."""


def names(plans: Sequence[Plan]) -> dict[str, str]:
    """Return what each run of ``plans`` is, in the words of its assay, by id."""
    found: dict[str, str] = {}
    for plan in plans:
        found |= dict.fromkeys(plan.donors, f"{plan.assay.id} donor")
        for cell in plan.cells:
            labels = [
                f"{label:g}" if isinstance(label, float) else label
                for label in cell.labels.values()
            ]
            for run in cell.runs:
                found[run.id] = " ".join([plan.assay.id, *labels, f"seed {run.seed}"])
    return found


def pace(campaign: CampaignStatus) -> str:
    """Return how fast a campaign is, and how long it will take."""
    left = campaign.seconds_left
    parts = [f"{campaign.rate:.1f} it/s"] if campaign.rate else []
    parts += [f"{duration(left)} left"] if left is not None else []
    parts += ["stopping"] if campaign.stopping else []
    return ", ".join(parts) or "starting"


def line(campaign: CampaignStatus) -> str:
    """Return where a campaign stands, in one line."""
    failed = f", {len(campaign.failed)} failed" if campaign.failed else ""
    return printable(
        f"{campaign.name or 'campaign'} on {campaign.host} (process {campaign.pid}): "
        f"{campaign.finished}/{campaign.runs} lifetimes, {len(campaign.running)} running{failed}, "
        f"{pace(campaign)}"
    )


def now_running(campaigns: Sequence[CampaignStatus], known: Mapping[str, str]) -> RenderableType:
    """Return what is being lived, campaign by campaign."""
    parts: list[RenderableType] = []
    for campaign in campaigns:
        since = duration(max(time.time() - campaign.started, 0.0))
        begun = f"; {counted(campaign.workers, 'worker')}, for {since} so far"
        parts.append(Text(line(campaign) + begun, style="bold"))
        if campaign.running:
            parts.append(_lived(campaign.running, known))
        parts.append(Text())
    return Group(*parts)


def _lived(runs: Sequence[RunStatus], known: Mapping[str, str]) -> Table:
    table = _table("  run", "what", ">iteration", ">it/s", ">left", ">attempt")
    for run in runs:
        left = duration((run.iterations - run.iteration) / run.rate) if run.rate else ""
        table.add_row(
            Text(printable(f"  {run.id[:SHOWN]}")),
            known.get(run.id, ""),
            f"{run.iteration:,}/{run.iterations:,}",
            f"{run.rate:.1f}" if run.rate else "",
            left,
            f"{run.attempt}",
        )
    return table


def failed(failures: Mapping[str, Failure], known: Mapping[str, str]) -> RenderableType:
    """Return what failed, how often, and why."""
    table = _table("failed run", "what", ">attempts", "the last cause")
    for run, failure in failures.items():
        cause = failure.cause.splitlines()[0] if failure.cause else ""
        tries = f"{len(failure.attempts)}"
        table.add_row(run[:SHOWN], known.get(run, ""), tries, Text(printable(cause)))
    return table


def _table(*heads: str) -> Table:
    """Return an empty table; a heading with ``>`` before it is of numbers."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head.removeprefix(">"), justify="right" if head[0] == ">" else "left")
    return table
