"""``rulescope compare``: our estimates beside the published ones."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from rulescope.assays import Results
from rulescope.assays import comparison as comparing
from rulescope.assays.assay_run import folder_name
from rulescope.assays.comparison import Comparison
from rulescope.assays.plan import Plan
from rulescope.assays.published_agreement import AGREEMENT_RULE
from rulescope.cli.assay_options import AssayName, PublishedSelectionOptions, SaveDraws
from rulescope.cli.console import console
from rulescope.cli.options import RESULTS, STORE, AsJson, Out, StoreFolder, expand_option_groups
from rulescope.core import arrays
from rulescope.core.errors import SpecError, nearest
from rulescope.records import Store
from rulescope.stats import Estimate
from rulescope.stats.agreement import Counts


@expand_option_groups
def compare(
    assay: AssayName,
    selection: PublishedSelectionOptions,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only estimates whose key contains this.")
    ] = "",
    store: StoreFolder = STORE,
    out: Out = RESULTS,
    save_draws: SaveDraws = False,
    as_json: AsJson = False,
) -> None:
    """Compare our estimates with the published ones, disagreements first.

    The runs of the grid that the store has are analysed; nothing is run. Each published value is
    contradicted, undecided (mostly: too few seeds) or reproduced; the criterion is printed below
    the table. With --save-draws the bootstrap draws are written to the assay's folder below --out.

    Examples:

      rulescope compare E1 --only contrast

      rulescope compare inheritance --store replication/store
    """
    bodies = []
    keep = Store(store, read_only=True)
    for found, budget in selection.budgets(assay):
        results = Plan.of(found, budget, keep).analyse(keep, draws=save_draws)
        rows = _select(comparing.compare(results), only)
        body = _as_data(results, rows)
        if not as_json:
            _show(results, rows)
        if save_draws:
            path = _save_draws(results, out / folder_name(found, budget))
            body["draws"] = str(path)
            console(as_json).print(f"written: {path}", markup=False)
        bodies.append(body)
    if as_json:
        print(json.dumps(bodies[0] if len(bodies) == 1 else bodies))


def _select(rows: list[Comparison], only: str) -> list[Comparison]:
    """Return the rows whose key contains ``only``."""
    found = [row for row in rows if only in row.key]
    if rows and not found:
        kinds = sorted({row.key.partition("/")[0] for row in rows})
        raise SpecError(f"--only: no estimate has {only!r} in its key{nearest(only, kinds)}")
    return found


def _save_draws(results: Results, folder: Path) -> Path:
    from rulescope.assays.results_folder import DRAWS
    from rulescope.core.disk import write_whole

    return write_whole(folder / DRAWS, arrays.pack(results.draws))


def _show(results: Results, rows: list[Comparison]) -> None:
    from rulescope.render.tables import terminal

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
