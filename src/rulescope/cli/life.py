"""``rulescope life``: one lifetime, watched."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from rulescope import plugin_sources
from rulescope.assays.plan import interactions, seconds_left
from rulescope.assays.results import counted
from rulescope.cli import lifetime_options
from rulescope.cli.console import console
from rulescope.cli.progress import Meter, duration
from rulescope.cli.run import check_rules
from rulescope.core import disk
from rulescope.core.entry_points import list_names
from rulescope.core.errors import SpecError
from rulescope.core.structs import expanded
from rulescope.envs.plugin_world import pin_plugin_world
from rulescope.episode_stats import HEADLINES, headline
from rulescope.records import Record, Store
from rulescope.spec import run_spec as specs
from rulescope.spec.baseline_config import RandomPolicy
from rulescope.spec.disco_config import AGENTS, INTERFACES
from rulescope.spec.learner_config import VARIANTS
from rulescope.spec.open_config import Open
from rulescope.spec.run_spec import Evaluation, RunSpec
from rulescope.spec.world_config import CHANGES, WORLDS

T = TypeVar("T")
TAIL = 5
"""The final score is the mean of this many last log rows."""
PLOTS = (".png", ".pdf", ".svg")
"""Endings of the figures that can be drawn."""


def life(
    context: typer.Context,
    learner: Annotated[
        str, typer.Option(help=f"One of: {', '.join(VARIANTS)}; or a plug-in rule (see `list`).")
    ] = "disco",
    rule: Annotated[
        str | None,
        typer.Option(
            help="A rule instead of the learner's own (Disco: disco103, OPEN: that of the game): "
            "sprout, a released one, a file of weights, or random:SEED (OPEN: open-random:SEED)."
        ),
    ] = None,
    env: Annotated[
        str, typer.Option(help=f"One of: {', '.join(WORLDS)}; or a plug-in world (see `list`).")
    ] = "catch",
    scale: Annotated[float, typer.Option(help="Reward multiplier that the learner sees.")] = 1.0,
    terminals: Annotated[
        str,
        typer.Option(
            help="Which episode ends are signalled: episodic, masked, or a "
            "number k for a false end every k steps."
        ),
    ] = "episodic",
    change: Annotated[
        str | None,
        typer.Option(
            metavar="KIND@T",
            help=f"What changes in the world after iteration T: {', '.join(CHANGES)}.",
        ),
    ] = None,
    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CARRIER",
            help="Set this carrier to zero after every iteration (CARRIER:step: after every step "
            "of the optimiser).",
        ),
    ] = None,
    iterations: Annotated[
        int | None, typer.Option(help="2000 of 58 interactions each; OPEN: 56 of 8192.")
    ] = None,
    lanes: Annotated[
        int | None, typer.Option(help="Worlds side by side, if not as usual (2; OPEN: 64).")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Of each lane an iteration, if not as usual (29; OPEN: 128).")
    ] = None,
    log_every: Annotated[
        int | None, typer.Option(help="Iterations from one log row to the next (20; OPEN: 1).")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides everything that is random.")] = 0,
    agent: Annotated[
        str, typer.Option(help=f"Conventions of the learner: {', '.join(AGENTS)}.")
    ] = "published",
    interface: Annotated[
        str, typer.Option(help=f"Value interface: {', '.join(INTERFACES)}.")
    ] = "default",
    learning_rate: Annotated[
        float | None, typer.Option(help="Instead of the learner's own.")
    ] = None,
    evaluate: Annotated[
        bool,
        typer.Option(
            "--evaluate", help="In the end, try the policy beside its first form and chance."
        ),
    ] = False,
    spec_file: Annotated[
        Path | None,
        typer.Option("--spec", metavar="FILE", help="Read the whole run from a JSON file instead."),
    ] = None,
    store: Annotated[Path, typer.Option(metavar="DIR", help="Where records are kept.")] = Path(
        "store"
    ),
    stop_after: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop after iteration N, leaving a checkpoint."),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where the rule's weights are.")
    ] = None,
    device: Annotated[str, typer.Option(help="Where to compute, as torch names it.")] = "cpu",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the learning curve (png, pdf or svg)."),
    ] = None,
    dry: Annotated[
        bool, typer.Option("--plan", help="Show what would be run, and how long, and stop.")
    ] = False,
    show_spec: Annotated[
        bool, typer.Option("--show-spec", help="Print the run as a spec file and stop.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
) -> None:
    """Live one lifetime: a fresh learner, from its first iteration to its last.

    The run is known by the hash of its specification. If the store has its record, that is shown;
    if it has a checkpoint, the run goes on from there, to the bit. Ctrl-C leaves a checkpoint.

    Examples:

      rulescope life --iterations 600 --plot curve.png

      rulescope life --scale 0.1 --pin recurrent --seed 3

      rulescope life --learner dqn --change action-flip@1500 --iterations 3000

      rulescope life --learner open --env gymnax-breakout --evaluate
    """
    if spec_file is not None:
        lifetime_options.refuse(
            context,
            lifetime_options.RUN_OPTIONS,
            "goes with options, not with --spec (edit the file)",
        )
        spec = plugin_sources.fill_in_sources(specs.read(spec_file))
    else:
        world = lifetime_options.pick_any("env", env, WORLDS, list_names("world"), pin_plugin_world)
        chosen, weights = lifetime_options.chosen_learner(
            context, learner, rule, agent, interface, weights, world
        )
        if isinstance(chosen, RandomPolicy | Open):
            lifetime_options.refuse(context, ("learning_rate",), lifetime_options.nothing(learner))
        elif learning_rate is not None:
            chosen = msgspec.structs.replace(chosen, learning_rate=learning_rate)
        usual = chosen.usual_shape
        spec = specs.checked(
            RunSpec(
                learner=chosen,
                environment=world,
                boundary=lifetime_options.boundary_of(terminals),
                change=lifetime_options.change_of(change),
                scale=scale,
                interventions=tuple(map(lifetime_options.pinned, pin or ())),
                iterations=usual.iterations if iterations is None else iterations,
                log_every=usual.log_every if log_every is None else log_every,
                lanes=usual.lanes if lanes is None else lanes,
                steps=usual.steps if steps is None else steps,
                seed=seed,
                evaluation=Evaluation() if evaluate else None,
            ),
            "options",
        )
    if show_spec:
        print(json.dumps(expanded(spec), indent=2))
        return
    _check_stop(stop_after, spec)
    _check_plot(plot)
    keep = Store(store)
    left = _required(spec, keep, weights)
    if dry:
        _tell_plan(spec, left, weights, as_json)
        return
    _live(spec, keep, stop_after, weights, device, plot, as_json)


def _required(spec: RunSpec, store: Store, weights: Path | None) -> list[RunSpec]:
    """Return what is left to run; raise what its run would raise before the first iteration."""
    if spec.id in store:
        return []
    left = [item for key, item in specs.with_donors([spec]).items() if key not in store]
    check_rules(left, weights)
    plugin_sources.require_plugins(left)
    disk.require_possible(store.root)
    return left


def _tell_plan(spec: RunSpec, left: list[RunSpec], weights: Path | None, as_json: bool) -> None:
    seconds = seconds_left(left, 1, weights) if left else 0.0
    if as_json:
        plan = {"id": spec.id, "missing": len(left), "seconds": seconds}
        print(json.dumps({"plan": plan | {"interactions": interactions(left)}}))
        return
    print(f"run       {spec.id}")
    if not left:
        print("it is in the store")
        return
    print(
        f"{counted(len(left), 'lifetime')} to run ({interactions(left):,} interactions): about "
        f"{duration(seconds)}"
    )


def _live(
    spec: RunSpec,
    store: Store,
    stop_after: int | None,
    weights: Path | None,
    device: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    from rulescope.lifetime import Progress  # here, because torch takes seconds to import
    from rulescope.runner import Paused, find_or_make

    found = spec.id in store
    if not found:
        store.require_writable()
    for item in specs.with_donors([spec]).values() if not found else [spec]:
        who = "run" if item == spec else "donor"
        with Meter(f"{who} {item.id[:8]}", item.iterations) as meter:

            def report(progress: Progress, meter: Meter = meter) -> None:
                score = "" if math.isnan(progress.score) else f"score {progress.score:.3f}"
                meter.update(progress.iteration, score)

            try:
                record = find_or_make(
                    item,
                    store,
                    report=report,
                    stop_after=stop_after if item == spec else None,
                    weights=weights,
                    device=device,
                )
            except Paused as pause:
                _tell_pause(spec, pause.iteration, as_json)
                return
    if plot is not None:
        from rulescope.assays.figures import learning_curve

        learning_curve(record, plot)
    if as_json:
        print(json.dumps(summary(record) | {"found": found, "store": str(store.root)}))
    else:
        _show(record, found, store, plot)


def summary(record: Record) -> dict[str, Any]:
    """Return what a program wants to know of a record."""
    return {
        "id": record.manifest.id,
        "science_hash": record.manifest.science_hash,
        "score": final(record, "score"),
        "measure": (measure := headline(record.log)),
        "value": final(record, measure),
        "seconds": record.manifest.seconds,
        "iterations": record.spec.iterations,
        "seed": record.spec.seed,
        "scale": record.spec.scale,
        **({"evaluation": found} if (found := evaluation(record)) else {}),
    }


def evaluation(record: Record) -> dict[str, float]:
    """Return the reward per interaction of each policy that was tried, by name."""
    plan = record.spec.evaluation
    if plan is None:
        return {}
    each = plan.lanes * plan.steps
    return {
        policy: float(record.state[f"evaluation.{policy}/reward"].sum()) / each
        for policy in plan.policies
    }


def final(record: Record, column: str) -> float | None:
    """Return the mean of a column's last log rows, or None if there is none (as a score of a world
    without episodes)."""
    value = float(record.log[column][-TAIL:].mean())
    return None if math.isnan(value) else value


def _show(record: Record, found: bool, store: Store, plot: Path | None) -> None:
    from rulescope.assays.figures import describe
    from rulescope.render.terminal_chart import curve

    out = console()
    rows = record.log
    out.print(f"{describe(record)}, seed {record.spec.seed}")
    measure = headline(rows)
    scored = measure.endswith("score")
    bounds = (0.0, 1.0) if scored else None
    out.print(curve(rows["iteration"], rows[measure], bounds=bounds, label=HEADLINES[measure]))
    value = final(record, measure)
    told = "no episode ended" if value is None else f"{value:.3f}"
    units = "0 random, 1 optimal" if scored else HEADLINES[measure]
    word = "score" if scored else "result"
    out.print(f"{word:<10}{told} (mean of the last {TAIL} log rows; {units})")
    tried = ", ".join(f"{policy} {rate:.4f}" for policy, rate in evaluation(record).items())
    if tried:
        out.print(f"at play   {tried} (reward per interaction, nothing learned)")
    out.print(f"seconds   {duration(record.manifest.seconds)}")
    out.print(f"run       {record.manifest.id}")
    out.print(f"science   {record.manifest.science_hash}")
    out.print(f"store     {store.root}{' (found there)' if found else ''}")
    if plot is not None:
        out.print(f"figure    {plot}")


def _tell_pause(spec: RunSpec, iteration: int, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"id": spec.id, "finished": False, "iteration": iteration}))
    else:
        print(
            f"stopped after iteration {iteration} of {spec.iterations}; the same command without "
            "--stop-after goes on from there"
        )


def _check_stop(stop_after: int | None, spec: RunSpec) -> None:
    if stop_after is not None and not 1 <= stop_after <= spec.iterations:
        raise SpecError(f"--stop-after: {stop_after} is not between 1 and {spec.iterations}")


def _check_plot(plot: Path | None) -> None:
    if plot is not None and plot.suffix not in PLOTS:
        raise SpecError(f"--plot: cannot draw {plot.name!r}; valid endings: {', '.join(PLOTS)}")
    if plot is not None and not plot.parent.is_dir():
        raise SpecError(f"--plot: there is no folder {str(plot.parent)!r}")
    if plot is not None and plot.is_dir():
        raise SpecError(f"--plot: {str(plot)!r} is a folder")
    if plot is not None:
        disk.require_possible(plot.parent)
