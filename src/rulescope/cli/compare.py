"""``rulescope compare``: our estimates beside the published ones."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from rulescope.assays import Results
from rulescope.assays import comparison as comparing
from rulescope.assays.comparison import Comparison
from rulescope.assays.plan import Plan
from rulescope.assays.published_agreement import AGREEMENT_RULE
from rulescope.cli import selection_options
from rulescope.cli.console import console
from rulescope.cli.selection_options import choose, folder_name
from rulescope.core import arrays
from rulescope.core.errors import SpecError, nearest
from rulescope.records import Store
from rulescope.stats import Estimate
from rulescope.stats.agreement import Counts


def compare(
    assay: selection_options.AssayName,
    preset: selection_options.Preset = "paper",
    seeds: selection_options.Seeds = None,
    iterations: selection_options.Iterations = None,
    episodes: selection_options.Episodes = None,
    arms: selection_options.Arms = None,
    scales: selection_options.Scales = None,
    tasks: selection_options.Tasks = None,
    conditions: selection_options.Conditions = None,
    agent: selection_options.Agent = None,
    rule: selection_options.RuleName = None,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only estimates whose key contains this.")
    ] = "",
    store: selection_options.StoreFolder = selection_options.STORE,
    out: selection_options.Out = selection_options.RESULTS,
    save_draws: selection_options.SaveDraws = False,
    as_json: selection_options.AsJson = False,
) -> None:
    """Print our estimate beside the published one, and whether it agrees, disagreements first.

    Whatever lifetimes of the grid the store has are analysed; nothing is run. An estimate agrees,
    differs, or has too few seeds to tell; the rule is printed below the table. With --save-draws
    the bootstrap draws are written to the assay's folder below --out.

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
        agent=agent,
        rule=rule,
    ):
        keep = Store(store, read_only=True)
        results = Plan.of(found, budget, keep).analyse(keep, draws=save_draws)
        every = comparing.compare(results)
        rows = [row for row in every if only in row.key]
        if every and not rows:
            kinds = sorted({row.key.partition("/")[0] for row in every})
            raise SpecError(f"--only: no estimate has {only!r} in its key{nearest(only, kinds)}")
        said.append(_as_data(results, rows))
        if save_draws:
            said[-1]["draws"] = str(_save_draws(results, out / folder_name(found, budget)))
        if not as_json:
            _show(results, rows)
            if save_draws:
                console().print(f"written: {said[-1]['draws']}", markup=False)
    if as_json:
        print(json.dumps(said[0] if len(said) == 1 else said))


def _save_draws(results: Results, folder: Path) -> Path:
    from rulescope.render.result_files import write_whole
    from rulescope.report.results_folder import DRAWS

    return write_whole(folder / DRAWS, arrays.pack(results.draws))


def _show(results: Results, rows: list[Comparison]) -> None:
    from rulescope.render.table_formats import terminal

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
        "agent": results.agent,
        "budget": results.budget,
        "comparisons": {
            row.key: {
                "n": row.ours.n,
                "ours": triple(row.ours.value, row.ours.low, row.ours.high),
                "published": triple(row.published.value, row.published.low, row.published.high),
                "agreement": row.verdict,
                "difference": triple(*_bounds(row.agreement.difference)),
                "margin": row.agreement.margin,
                "learned": _counts(row.agreement.learned),
                "published_learned": _counts(row.agreement.published_learned),
                "same_budget": row.same_budget,
                "same_grid": row.same_grid,
            }
            for row in rows
        },
        "agreement": comparing.tally(rows),
        "rule_of_agreement": AGREEMENT_RULE,
        "notes": list(results.notes),
    }


def _bounds(found: Estimate) -> tuple[float, float, float]:
    return found.value, found.low, found.high


def _counts(found: Counts | None) -> dict[str, int] | None:
    return None if found is None else found._asdict()
