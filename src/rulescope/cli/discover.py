"""``rulescope discover``: make a rule by meta-gradients through the learning of a population."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rulescope.cli.console import console
from rulescope.cli.progress import Meter, duration
from rulescope.core import disk
from rulescope.core.errors import SpecError, nearest
from rulescope.records import Store

if TYPE_CHECKING:
    from rulescope.discover.discovery_spec import Discovery
    from rulescope.discover.meta_training import MetaStep, MetaTraining


def discover(
    recipe: Annotated[
        str,
        typer.Argument(
            help="One of: smoke (seconds); sprout-start, sprout-early, sprout, which made the rule "
            "of the package in turn (an hour); sprout-scales, sprout-transplants."
        ),
    ] = "smoke",
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the whole discovery from a JSON file instead."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Decides everything that is random.", show_default=False)
    ] = None,
    meta_steps: Annotated[
        int | None, typer.Option(help="Instead of the recipe's own.", show_default=False)
    ] = None,
    warm_start: Annotated[
        int | None, typer.Option(help="Instead of the recipe's own.", show_default=False)
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A rule to start from, instead of a fresh one."),
    ] = None,
    store: Annotated[Path, typer.Option(metavar="DIR", help="Where discoveries are kept.")] = Path(
        "store"
    ),
    show_spec: Annotated[
        bool, typer.Option("--show-spec", help="Print the specification and do nothing else.")
    ] = False,
    tensorboard: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write the meta-curves for TensorBoard."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Discover an update rule: gradient descent on a rule, through the learning of its agents.

    A population of small agents lives in small worlds and learns as the rule says. Every few
    updates the rule is moved along the gradient of how well they then do on fresh experience.
    Ctrl-C leaves a checkpoint, and the same command goes on from there, to the bit.

    Examples:

      rulescope discover smoke

      rulescope discover sprout-start --store discoveries

      rulescope discover sprout --start discoveries/discoveries/ID/rule.npz --store discoveries

      rulescope discover sprout --show-spec > mine.json; rulescope discover --spec mine.json
    """
    from rulescope.core.structs import expanded
    from rulescope.discover import discovery_runner

    given = {"seed": seed, "meta_steps": meta_steps, "warm_start": warm_start}
    chosen = _chosen(recipe, spec, start, given)
    if show_spec:
        print(json.dumps(expanded(chosen), indent=2))
        return
    if tensorboard is not None:
        disk.require_possible(tensorboard)
    total = chosen.warm_start + chosen.meta_steps
    with Meter(f"discovery {chosen.id[:8]}", total, "meta-steps") as meter:

        def report(training: MetaTraining, outcome: MetaStep) -> None:
            scores = " ".join(f"{score:.2f}" for score in outcome.scores)
            meter.update(training.step, f"scores {scores}")

        folder = discovery_runner.find_or_run(chosen, Store(store), report, start)
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


def _chosen(
    recipe: str, path: Path | None, start: Path | None, changes: dict[str, int | None]
) -> Discovery:
    """Return the discovery that the options describe."""
    from msgspec.structs import replace

    from rulescope.discover.discovery_spec import decode_discovery, validate_discovery
    from rulescope.discover.recipes import RECIPES
    from rulescope.rules.loading import name_of

    if path is not None:
        try:
            found = decode_discovery(path.read_bytes(), str(path))
        except OSError as fault:
            raise SpecError(f"{path}: cannot be read ({fault.strerror})") from None
    elif recipe in RECIPES:
        found = RECIPES[recipe]
    else:
        raise SpecError(f"no recipe is called {recipe!r}{nearest(recipe, RECIPES)}")
    given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    if start is not None:
        given["start"] = name_of(start)
    return validate_discovery(replace(found, **given), "options")
