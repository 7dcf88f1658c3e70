"""``rulescope audit``: what a rule's learning history does, as one command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from rulescope.assays.base import NULL_RULE
from rulescope.cli import choosing, engines
from rulescope.cli.choosing import choose
from rulescope.cli.engines import Engine
from rulescope.cli.run import SOME_FAILED, perform
from rulescope.errors import WeightsError
from rulescope.records import Store

RELEASED = "disco103"
ARMS = "live,pin"
"""They differ in one thing only: whether the rule's recurrent state may carry on."""
WITHOUT_RULE = {"arms": "live,pin,hold", "scales": "0.1,1"}
"""What is audited when there is no rule: the carriers of a learner under random rule weights."""


def audit(
    rule: Annotated[
        str | None,
        typer.Argument(help="A released rule, or random:SEED. Default: disco103 if it can be had."),
    ] = None,
    preset: choosing.Preset = "quick",
    seeds: choosing.Seeds = None,
    iterations: choosing.Iterations = None,
    arms: choosing.Arms = None,
    scales: choosing.Scales = None,
    tasks: choosing.Tasks = None,
    profile: choosing.Profile = None,
    workers: choosing.Workers = None,
    engine: engines.Name = "local",
    address: engines.Address = None,
    cpus_per_run: engines.CpusPerRun = None,
    gpus_per_run: engines.GpusPerRun = None,
    time_limit: engines.TimeLimit = None,
    force: engines.Force = False,
    store: choosing.StoreFolder = choosing.STORE,
    out: choosing.Out = choosing.RESULTS,
    weights: choosing.Weights = None,
    as_json: choosing.AsJson = False,
) -> None:
    """Audit a rule along the scale axis: what does its recurrent state do for it?

    Same rule, same seeds, same world at several reward scales. In the arm `pin` the rule's
    recurrent state is set to zero after every iteration, so a difference between the arms is what
    that history did. Run it again and it picks up where it stopped.
    """
    place = Engine.chosen(engine, address, cpus_per_run, gpus_per_run)
    if rule is None:
        rule = _available(weights)
        if rule == NULL_RULE:
            arms, scales = arms or WITHOUT_RULE["arms"], scales or WITHOUT_RULE["scales"]
    said = []
    for assay, budget in choose(
        "E1",
        preset,
        seeds=seeds,
        iterations=iterations,
        arms=arms or ARMS,
        scales=scales,
        tasks=tasks,
        profile=profile,
        rule=rule,
    ):
        # Only the figure of an audit: the others are for the whole grid.
        said.append(
            perform(
                assay,
                budget,
                Store(store),
                out,
                workers=workers,
                engine=place,
                time_limit=time_limit,
                force=force,
                weights=weights,
                quiet=as_json,
                figures=("scale-audit", "fig:detail-scale"),
            )
        )
    if as_json:
        print(json.dumps(said[0] if len(said) == 1 else said))
    if any(found["failed"] for found in said):
        raise typer.Exit(SOME_FAILED)


def _available(weights: Path | None) -> str:
    """Return the released rule if it is here or can be fetched, else the null rule."""
    from rulescope.rules import locate, registry
    from rulescope.rules.loading import load

    try:
        load(RELEASED, weights)
    except WeightsError as fault:
        if locate.find(registry.get(RELEASED), weights) is not None:  # here, but damaged: raises
            raise
        print(
            f"{fault}\nWithout a rule, the audit runs on random rule weights ({NULL_RULE}). It "
            "shows how an audit works and what no knowledge looks like. To audit Disco103, get its "
            "weights as above and run the same command again.",
            file=sys.stderr,
        )
        return NULL_RULE
    return RELEASED
