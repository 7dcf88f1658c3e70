"""``rulescope compare``: our estimates beside the published ones."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer

from rulescope.assays import Results
from rulescope.assays import compare as comparing
from rulescope.assays.compare import Comparison
from rulescope.cli import choosing
from rulescope.cli.choosing import choose
from rulescope.cli.output import console
from rulescope.errors import SpecError, nearest
from rulescope.plan import Plan
from rulescope.records import Store


def compare(
    assay: choosing.AssayName,
    preset: choosing.Preset = "paper",
    seeds: choosing.Seeds = None,
    iterations: choosing.Iterations = None,
    episodes: choosing.Episodes = None,
    arms: choosing.Arms = None,
    scales: choosing.Scales = None,
    tasks: choosing.Tasks = None,
    conditions: choosing.Conditions = None,
    profile: choosing.Profile = None,
    rule: choosing.RuleName = None,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only estimates whose key contains this.")
    ] = "",
    store: choosing.StoreFolder = choosing.STORE,
    as_json: choosing.AsJson = False,
) -> None:
    """Print our estimate beside the published one, with both intervals, and whether they overlap.

    Whatever lifetimes of the grid the store has are analysed; nothing is run. Two intervals that
    overlap do not contradict each other; with few seeds ours are wide, so look at n as well.

    Examples:

      rulescope compare E1 --only contrast

      rulescope compare inheritance --store replication/store
    """
    said = []
    for found, budget in choose(
        assay,
        preset,
        seeds=seeds,
        iterations=iterations,
        episodes=episodes,
        arms=arms,
        scales=scales,
        tasks=tasks,
        conditions=conditions,
        profile=profile,
        rule=rule,
    ):
        results = Plan.of(found, budget, Store(store)).analyse(Store(store))
        every = comparing.compare(results)
        rows = [row for row in every if only in row.key]
        if every and not rows:
            kinds = sorted({row.key.partition("/")[0] for row in every})
            raise SpecError(f"--only: no estimate has {only!r} in its key{nearest(only, kinds)}")
        said.append(_as_data(results, rows))
        if not as_json:
            _show(results, rows)
    if as_json:
        print(json.dumps(said[0] if len(said) == 1 else said))


def _show(results: Results, rows: list[Comparison]) -> None:
    from rulescope.report.tables import terminal

    screen = console()
    screen.print(terminal(comparing.table(results, rows)))
    for note in results.notes:
        screen.print(f"note: {note}")


def _as_data(results: Results, rows: list[Comparison]) -> dict[str, Any]:
    def triple(value: float, low: float, high: float) -> list[float | None]:
        return [None if math.isnan(number) else float(number) for number in (value, low, high)]

    return {
        "assay": results.assay,
        "rule": results.rule,
        "profile": results.profile,
        "budget": results.budget,
        "comparisons": {
            row.key: {
                "n": row.ours.n,
                "ours": triple(row.ours.value, row.ours.low, row.ours.high),
                "published": triple(row.published.value, row.published.low, row.published.high),
                "overlap": row.overlap,
                "same_budget": row.same_budget,
                "same_grid": row.same_grid,
            }
            for row in rows
        },
        "notes": list(results.notes),
    }
