"""``rulescope discover``: a rule made by meta-gradients through the learning of a population."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rulescope.cli.console import Meter, console, duration
from rulescope.cli.options import STORE, AsJson, Device, StoreFolder
from rulescope.core import disk, runtime
from rulescope.records import Store

if TYPE_CHECKING:
    from rulescope.discover.meta_training import MetaStep, MetaTraining


def discover(
    recipe: Annotated[
        str,
        typer.Argument(
            help="One of: smoke (seconds); sprout-start, sprout-early, sprout, which in turn made "
            "the rule of the package (an hour); sprout-scales, sprout-transplants."
        ),
    ] = "smoke",
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the discovery from a JSON file instead."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of every random stream. Default: the recipe's.")
    ] = None,
    meta_steps: Annotated[int | None, typer.Option(help="Default: the recipe's.")] = None,
    warm_start: Annotated[int | None, typer.Option(help="Default: the recipe's.")] = None,
    start: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A rule to start from. Default: random weights."),
    ] = None,
    device: Device = "cpu",
    store: StoreFolder = STORE,
    show_spec: Annotated[
        bool, typer.Option("--show-spec", help="Print the specification and do nothing else.")
    ] = False,
    tensorboard: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write the meta-curves for TensorBoard."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Discover an update rule: gradient descent on a rule, through the learning of its agents.

    A population of small agents learns under the rule in small worlds. Every few updates the rule
    is moved along the gradient of their performance on fresh experience. Ctrl-C leaves a
    checkpoint, and the same command continues from there, bit-identically.

    Examples:

      rulescope discover smoke

      rulescope discover sprout-start --store discoveries

      rulescope discover sprout --start discoveries/discoveries/ID/rule.npz --store discoveries

      rulescope discover sprout --show-spec > mine.json; rulescope discover --spec mine.json
    """
    from rulescope.core.structs import expanded
    from rulescope.discover import discovery_runner
    from rulescope.discover.recipes import select_discovery

    chosen = select_discovery(
        recipe if spec is None else spec,
        start=start,
        seed=seed,
        meta_steps=meta_steps,
        warm_start=warm_start,
    )
    if show_spec:
        print(json.dumps(expanded(chosen), indent=2))
        return
    if tensorboard is not None:
        disk.require_possible(tensorboard)
    runtime.require_device(device)
    total = chosen.warm_start + chosen.meta_steps
    with Meter(f"discovery {chosen.id[:8]}", total, "meta-steps") as meter:

        def report(training: MetaTraining, step: MetaStep) -> None:
            scores = " ".join(f"{score:.2f}" for score in step.scores)
            meter.update(training.step, f"scores {scores}")

        folder = discovery_runner.find_or_run(chosen, Store(store), report, start, device)
    manifest = discovery_runner.read_manifest(folder)
    if tensorboard is not None:
        discovery_runner.write_tensorboard(folder, tensorboard)
    if as_json:
        print(json.dumps(manifest | {"folder": str(folder)}))
        return
    out = console()
    out.print(
        f"rule        {folder / discovery_runner.RULE} ({manifest['parameters']:,} parameters)"
    )
    out.print(f"discovery   {chosen.id}")
    out.print(f"seconds     {duration(manifest['seconds'])}")
