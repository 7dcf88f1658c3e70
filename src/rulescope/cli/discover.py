"""``rulescope discover``: a rule made by meta-gradients or by evolution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rulescope.cli.console import Meter, console, duration
from rulescope.cli.options import STORE, AsJson, Device, StoreFolder, Workers
from rulescope.core import disk, runtime
from rulescope.core.errors import SpecError, nearest
from rulescope.records import Store

if TYPE_CHECKING:
    from rulescope.discover.discovery_spec import Discovery
    from rulescope.discover.evolution_spec import Evolution
    from rulescope.discover.evolution_training import EvolutionStep, EvolutionTraining
    from rulescope.discover.meta_training import MetaStep, MetaTraining

Method = Literal["gradient", "evolution"]


def discover(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="By meta-gradients: smoke (seconds); sprout-start, sprout-early, sprout, which in "
            "turn made the rule of the package (an hour); sprout-scales, sprout-transplants. By "
            "evolution: lpg-smoke, lpo-smoke (seconds); lpg, lpo (an hour); lpg-start, "
            "lpg-scratch. Default: smoke, or lpg-smoke."
        ),
    ] = None,
    method: Annotated[
        Method | None,
        typer.Option(help="How the rule is made. Default: as the recipe or file says."),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the discovery from a JSON file instead."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of every random stream. Default: the recipe's.")
    ] = None,
    meta_steps: Annotated[
        int | None, typer.Option(help="Of meta-gradients. Default: the recipe's.")
    ] = None,
    warm_start: Annotated[
        int | None, typer.Option(help="Of meta-gradients. Default: the recipe's.")
    ] = None,
    generations: Annotated[
        int | None, typer.Option(help="Of evolution. Default: the recipe's.")
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A rule to start meta-gradients from. Default: random weights.",
        ),
    ] = None,
    device: Device = "cpu",
    workers: Workers = None,
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
    """Discover an update rule: by gradients through the learning of its agents or by evolution.

    A population of small agents learns under the rule in small worlds. With meta-gradients a Disco
    rule is moved, every few updates, along the gradient of their performance on fresh experience.
    By evolution an LPG or LPO rule is perturbed in pairs of opposite directions, and moved towards
    those under which whole short lifetimes end better; --workers processes share the lifetimes.
    Ctrl-C leaves a checkpoint, and the same command continues from there, bit-identically.

    Examples:

      rulescope discover smoke

      rulescope discover sprout-start --store discoveries

      rulescope discover sprout --start discoveries/discoveries/ID/rule.npz --store discoveries

      rulescope discover --method evolution lpg --workers 2

      rulescope discover sprout --show-spec > mine.json; rulescope discover --spec mine.json
    """
    from rulescope.core.structs import expanded
    from rulescope.discover import discovery_runner
    from rulescope.discover.evolution_recipes import select_evolution
    from rulescope.discover.recipes import select_discovery

    method = _choose_method(recipe, method, spec)
    chosen: Discovery | Evolution
    if method == "evolution":
        _refuse(
            method,
            {"--meta-steps": meta_steps, "--warm-start": warm_start, "--start": start},
            device,
        )
        chosen = select_evolution(spec or recipe or "lpg-smoke", seed=seed, generations=generations)
    else:
        _refuse(method, {"--generations": generations, "--workers": workers}, "cpu")
        chosen = select_discovery(
            spec or recipe or "smoke",
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
    folder = _run(chosen, Store(store), start, device, workers)
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
    for name, scores in manifest.get("test", {}).items():
        listed = " ".join(f"{score:5.2f}" for score in scores)
        out.print(f"{name:<11} {sum(scores) / len(scores):.2f} on test seeds, by world {listed}")


def _choose_method(recipe: str | None, method: Method | None, spec: Path | None) -> Method:
    """Return the method of a recipe or file; raise :class:`SpecError` if ``method`` is another."""
    from rulescope.discover.evolution_recipes import EVOLUTIONS, is_evolution
    from rulescope.discover.recipes import RECIPES

    if spec is not None:
        found: Method = "evolution" if is_evolution(spec) else "gradient"
        if method not in (None, found):
            raise SpecError(f"--method: {spec} is a discovery by {found}, not by {method}")
        return found
    known: dict[str, list[str]] = {"gradient": [*RECIPES], "evolution": [*EVOLUTIONS]}
    if recipe is None:
        return method or "gradient"
    found = "evolution" if recipe in EVOLUTIONS else "gradient"
    names = [*RECIPES, *EVOLUTIONS] if method is None else known[method]
    if recipe not in names:
        by = "" if method is None else f" of {method}"
        raise SpecError(f"no recipe{by} is called {recipe!r}{nearest(recipe, names)}")
    return found


def _refuse(method: Method, options: dict[str, Any], device: str) -> None:
    """Raise :class:`SpecError` if an option was given that ``method`` does not have."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise SpecError(f"{given[0]}: a discovery by {method} has no such option")
    if device != "cpu":
        raise SpecError(f"--device: {device!r}: evolution computes on the cpu only")


def _run(
    chosen: Discovery | Evolution,
    store: Store,
    start: Path | None,
    device: str,
    workers: int | None,
) -> Path:
    """Run a discovery with a progress bar; return its folder."""
    from rulescope.discover import discovery_runner, evolution_runner
    from rulescope.discover.evolution_spec import Evolution
    from rulescope.engine import resources

    if isinstance(chosen, Evolution):
        total = chosen.steps
        count = min(workers or resources.cores(), chosen.tasks)
        with Meter(f"discovery {chosen.id[:8]}", total, "generations") as meter:

            def report(training: EvolutionTraining, step: EvolutionStep) -> None:
                meter.update(training.step, _progress(training, step))

            return evolution_runner.find_or_run(chosen, store, report, count)
    total = chosen.warm_start + chosen.meta_steps
    with Meter(f"discovery {chosen.id[:8]}", total, "meta-steps") as meter:

        def report_scores(training: MetaTraining, step: MetaStep) -> None:
            scores = " ".join(f"{score:.2f}" for score in step.scores)
            meter.update(training.step, f"scores {scores}")

        return discovery_runner.find_or_run(chosen, store, report_scores, start, device)


def _progress(training: EvolutionTraining, step: EvolutionStep) -> str:
    """Return what is shown after a step of an evolution."""
    if step.loss == step.loss:
        return f"warm start, loss {step.loss:.3f}"
    parts = [] if step.generation == 0 else [f"fitness {step.fitness:.3f}"]
    return ", ".join([*parts, f"validation {training.validation:.3f}"])
