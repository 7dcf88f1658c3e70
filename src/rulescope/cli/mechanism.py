"""``rulescope mechanism``: look inside of lifetimes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rulescope.cli import selection_options
from rulescope.cli.console import console
from rulescope.cli.progress import Meter
from rulescope.core.errors import WeightsError, nearest
from rulescope.records import Store
from rulescope.spec.disco_config import AGENTS

if TYPE_CHECKING:
    from rulescope.mechanism.view_request import View, ViewRequest


def mechanism(
    view: Annotated[
        str,
        typer.Argument(
            metavar="VIEW",
            help="trajectory: where the recurrent state goes; targets: what the rule would say "
            "with another state; replay: how old what is learned from is, around a change.",
        ),
    ],
    rule: Annotated[
        str,
        typer.Option(help="A released rule, sprout, or random:SEED for random weights."),
    ] = "disco103",
    agent: Annotated[
        str | None,
        typer.Option(help=f"Conventions of the learner: {', '.join(AGENTS)} (published)."),
    ] = None,
    scales: Annotated[
        str | None,
        typer.Option(
            metavar="X,Y",
            help="Reward scales, 0.001,1,1000 if nothing is said. The first is crossed with the "
            "last, the second with the second to last. (Not for replay.)",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Lifetimes of each scale, seeds 0, 1, ... (2; replay: 1).")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help="Length of a lifetime (160; replay: 1080).")
    ] = None,
    store: selection_options.StoreFolder = selection_options.STORE,
    out: selection_options.Out = selection_options.RESULTS,
    weights: selection_options.Weights = None,
    as_json: selection_options.AsJson = False,
) -> None:
    """Look inside of lifetimes: a figure, a table and the data of what happens there.

    The lifetimes are ordinary ones, made from their specifications. Looking changes nothing: a
    watched lifetime ends with the record, to the bit, of one that nobody looked at. Records go to
    the store; what was seen goes to the results folder and is not looked at twice, so that an
    interrupted view goes on where it was. As it stands, a view takes about three minutes on one
    core.

    Examples:

      rulescope mechanism trajectory

      rulescope mechanism trajectory --scales 0.001,0.1,1,10,1000 --seeds 4 --iterations 400

      rulescope mechanism targets --rule random:0

      rulescope mechanism replay --iterations 3000
    """
    from rulescope.mechanism.view_request import validate_request
    from rulescope.mechanism.views import find_view  # here: torch takes seconds to import

    chosen = find_view(view)
    _require_disco(rule)
    usual = chosen.default_request
    asked = replace(
        usual,
        rule=rule,
        agent=selection_options.agent_of(rule, agent) or usual.agent,
        scales=tuple(sorted(set(selection_options.numbers(scales)))) or usual.scales,
        seeds=usual.seeds if seeds is None else seeds,
        iterations=usual.iterations if iterations is None else iterations,
    )
    _look(chosen, validate_request(asked), Store(store), out, weights, as_json)


def _require_disco(rule: str) -> None:
    """Raise unless ``rule`` names a Disco rule: views read what only its learner has."""
    from rulescope.core.entry_points import list_names
    from rulescope.rules import loading, registry
    from rulescope.rules.embedded import EMBEDDED

    released = [name for name, each in registry.RULES.items() if each.family == "disco"]
    drawn = rule.startswith(("random:", "sprout-random:", loading.FRESH))
    if rule in released or rule in EMBEDDED or drawn or rule.startswith(loading.CONTENT):
        return
    is_other = rule in list_names("rule") or rule.startswith("open")
    what = f"{rule!r} is no Disco rule" if is_other else f"no Disco rule is called {rule!r}"
    raise WeightsError(f"--rule: {what}{nearest(rule, [*released, *EMBEDDED])}, random:SEED")


def _look(
    view: View, asked: ViewRequest, store: Store, out: Path, weights: Path | None, as_json: bool
) -> None:
    """Look, analyse, write and tell."""
    from rulescope.mechanism import instrumented_runs, view_folder
    from rulescope.render.result_files import require_writable
    from rulescope.render.table_formats import terminal
    from rulescope.rules.loading import load

    total = instrumented_runs.total_iterations(view, asked)
    load(asked.rule, weights)  # before anything is lived
    require_writable(out)
    store.require_writable()
    place = out / view_folder.folder_name(view, asked)
    with Meter(view.label, total) as meter:
        observed = instrumented_runs.observe_view(
            view, asked, store, place, weights=weights, progress=meter.update
        )
    results = view.analyse(asked, observed)
    paths = view_folder.write_view(view, asked, results, observed, place)
    if as_json:
        said = json.loads(paths[1].read_text(encoding="utf-8"))
        print(json.dumps(said | {"folder": str(place)}))
        return
    screen = console()
    screen.print(f"[bold]{view.title}[/bold]: {view.question}")
    for table in results.tables:
        screen.print(terminal(table))
    screen.print(f"{results.budget}.")
    screen.print(f"written: {paths[0]} and {len(paths) - 1} more in {place}")
