"""``rulescope mechanism``: views of the internal state of runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rulescope.cli.console import Meter, console
from rulescope.cli.options import RESULTS, STORE, AsJson, Out, StoreFolder, Weights, split_numbers
from rulescope.core.errors import SpecError, WeightsError, nearest
from rulescope.learners.disco_config import AGENTS
from rulescope.records import Store

if TYPE_CHECKING:
    from rulescope.mechanism.view_request import View, ViewRequest


def mechanism(
    view: Annotated[
        str,
        typer.Argument(
            metavar="VIEW",
            help="trajectory: the path of the recurrent state; targets: the rule's targets under "
            "another state; replay: age of replayed experience around a change.",
        ),
    ],
    rule: Annotated[
        str,
        typer.Option(help="A released rule, sprout, or random:SEED for random weights."),
    ] = "disco103",
    agent: Annotated[
        str | None,
        typer.Option(
            help=f"Conventions of the rule's learner: {', '.join(AGENTS)}. Default: published."
        ),
    ] = None,
    scales: Annotated[
        str | None,
        typer.Option(
            metavar="X,Y",
            help="Reward scales. Default: 0.001,1,1000. The first is crossed with the last, the "
            "second with the second to last. (Not for replay.)",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Runs per scale, with seeds 0, 1, ... Default: 2; replay: 1.")
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help="Length of a run. Default: 160; replay: 1080.")
    ] = None,
    store: StoreFolder = STORE,
    out: Out = RESULTS,
    weights: Weights = None,
    as_json: AsJson = False,
) -> None:
    """Observe the internal state of runs: a figure, a table and the data of a view.

    The runs are ordinary ones, made from their specifications. Observation changes nothing: an
    observed run has the same record, to the bit, as any other. Records go to the store;
    observations go to the results folder and are not repeated, so the same command resumes an
    interrupted view. By default a view takes about three minutes on one core.

    Examples:

      rulescope mechanism trajectory

      rulescope mechanism trajectory --scales 0.001,0.1,1,10,1000 --seeds 4 --iterations 400

      rulescope mechanism targets --rule random:0

      rulescope mechanism replay --iterations 3000
    """
    # Here, because torch takes seconds to import.
    from rulescope.mechanism.view_request import validate_request
    from rulescope.mechanism.views import find_view

    chosen = find_view(view)
    _require_disco(rule)
    _require_agent(rule, agent)
    usual = chosen.default_request
    request = replace(
        usual,
        rule=rule,
        agent=agent or usual.agent,
        scales=tuple(sorted(set(split_numbers("--scales", scales)))) or usual.scales,
        seeds=usual.seeds if seeds is None else seeds,
        iterations=usual.iterations if iterations is None else iterations,
    )
    _observe(chosen, validate_request(request), Store(store), out, weights, as_json)


def _require_disco(rule: str) -> None:
    """Raise unless ``rule`` names a Disco rule: views read the state that only its learner has."""
    from rulescope.core.entry_points import list_names
    from rulescope.rules import released_rules, rule_weights
    from rulescope.rules.embedded import EMBEDDED

    known = {
        name: each.architecture
        for rules in (released_rules.RULES, EMBEDDED)
        for name, each in rules.items()
    }
    disco = [name for name, architecture in known.items() if architecture == "disco"]
    drawn = rule.startswith(("random:", "sprout-random:", rule_weights.FRESH))
    if rule in disco or drawn or rule.startswith(rule_weights.CONTENT):
        return
    is_other = rule in known or rule in list_names("rule") or rule.startswith("open")
    what = f"{rule!r} is no Disco rule" if is_other else f"no Disco rule is called {rule!r}"
    raise WeightsError(f"--rule: {what}{nearest(rule, disco)}, random:SEED")


def _require_agent(rule: str, agent: str | None) -> None:
    """Raise unless the learner of ``rule`` can have the conventions called so."""
    from rulescope.assays.subject import make_subject

    if agent is not None and agent not in AGENTS:
        raise SpecError(f"--agent: no {agent!r}{nearest(agent, AGENTS)}")
    if agent is not None:
        make_subject(rule).require_agents()


def _observe(
    view: View, request: ViewRequest, store: Store, out: Path, weights: Path | None, as_json: bool
) -> None:
    """Observe the runs, analyse, write and print."""
    from rulescope.core.disk import require_writable
    from rulescope.mechanism import instrumented_runs, view_folder
    from rulescope.render.tables import terminal
    from rulescope.rules.rule_weights import load

    total = instrumented_runs.total_iterations(view, request)
    load(request.rule, weights)  # which fails before anything runs
    require_writable(out)
    store.require_writable()
    place = out / view_folder.folder_name(view, request)
    with Meter(view.label, total) as meter:
        observed = instrumented_runs.observe_view(
            view, request, store, place, weights=weights, progress=meter.update
        )
    results = view.analyse(request, observed)
    paths = view_folder.write_view(view, request, results, observed, place)
    if as_json:
        body = json.loads(paths[1].read_text(encoding="utf-8"))
        print(json.dumps(body | {"folder": str(place)}))
        return
    screen = console()
    screen.print(f"[bold]{view.title}[/bold]: {view.question}")
    for table in results.tables:
        screen.print(terminal(table))
    screen.print(f"{results.budget}.")
    screen.print(f"written: {paths[0]} and {len(paths) - 1} more in {place}")
