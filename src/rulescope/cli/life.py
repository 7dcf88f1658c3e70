"""``rulescope life``: one run, with its learning curve."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from rulescope import run_packages, run_spec
from rulescope.assays.assay_run import require_rules
from rulescope.assays.plan import interactions, seconds_left
from rulescope.assays.subject import locate_weights
from rulescope.cli.console import Meter, console, duration
from rulescope.cli.lifetime_options import LifetimeOptions
from rulescope.cli.options import (
    STORE,
    AsJson,
    Device,
    PlanOnly,
    StoreFolder,
    Weights,
    expand_option_groups,
)
from rulescope.core import disk, runtime
from rulescope.core.errors import SpecError, counted
from rulescope.core.structs import expanded
from rulescope.episode_stats import HEADLINES, headline
from rulescope.records import Record, Store
from rulescope.run_spec import RunSpec

TAIL = 5
"""The final score is the mean of this many last log rows."""
PLOTS = (".png", ".pdf", ".svg")
"""File endings of figures."""


@expand_option_groups
def life(
    options: LifetimeOptions,
    spec_file: Annotated[
        Path | None,
        typer.Option("--spec", metavar="FILE", help="Read the run from a JSON file instead."),
    ] = None,
    weights: Weights = None,
    store: StoreFolder = STORE,
    stop_after: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop after iteration N, leaving a checkpoint."),
    ] = None,
    device: Device = "cpu",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the learning curve (png, pdf or svg)."),
    ] = None,
    plan_only: PlanOnly = False,
    show_spec: Annotated[
        bool, typer.Option("--show-spec", help="Print the run as a spec file and stop.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run one lifetime: a fresh learner, from its first iteration to its last.

    The run is identified by the hash of its specification. If the store has its record, that is
    shown; if it has a checkpoint, the run continues from there, bit-identically. Ctrl-C leaves a
    checkpoint.

    Examples:

      rulescope life --iterations 600 --plot curve.png

      rulescope life --scale 0.1 --pin recurrent --seed 3

      rulescope life --learner dqn --change action-flip@1500 --iterations 3000

      rulescope life --learner open --env gymnax-breakout --evaluate

      rulescope life --learner ppo --env gymnasium:CartPole-v1 --truncation bootstrap
    """
    if spec_file is None:
        spec = options.spec(weights)
        weights = locate_weights(options.rule, weights)
    elif options.given:
        raise SpecError(f"{options.given[0]}: cannot be combined with --spec (edit the file)")
    else:
        spec = run_packages.fill_in_sources(run_spec.read(spec_file))
    if show_spec:
        print(json.dumps(expanded(spec), indent=2))
        return
    _require_stop(stop_after, spec)
    _require_plot(plot)
    runtime.require_device(device)
    keep = Store(store)
    missing = _require_runnable(spec, keep, weights)
    if plan_only:
        _show_plan(spec, missing, weights, device, as_json)
        return
    found = spec.id in keep
    record = _run(spec, keep, stop_after, weights, device, as_json)
    if record is None:
        return
    if plot is not None:
        from rulescope.assays.lifetime_figures import learning_curve

        learning_curve(record, plot)
    if as_json:
        print(json.dumps(summarise(record) | {"found": found, "store": str(keep.root)}))
    else:
        _show_record(record, found, keep, plot)


def _require_runnable(spec: RunSpec, store: Store, weights: Path | None) -> list[RunSpec]:
    """Return what is to be run; raise what it would raise before the first iteration."""
    if spec.id in store:
        return []
    missing = [item for key, item in run_spec.with_donors([spec]).items() if key not in store]
    require_rules(missing, weights)
    run_packages.require_plugins(missing)
    disk.require_possible(store.root)
    return missing


def _show_plan(
    spec: RunSpec, missing: list[RunSpec], weights: Path | None, device: str, as_json: bool
) -> None:
    seconds = seconds_left(missing, 1, weights, device=device) if missing else 0.0
    if as_json:
        plan = {"id": spec.id, "missing": len(missing), "seconds": seconds}
        print(json.dumps({"plan": plan | {"interactions": interactions(missing)}}))
        return
    print(f"run       {spec.id}")
    if not missing:
        print("it is in the store")
        return
    print(
        f"{counted(len(missing), 'lifetime')} to run ({interactions(missing):,} interactions): "
        f"about {duration(seconds)}"
    )


def _run(
    spec: RunSpec,
    store: Store,
    stop_after: int | None,
    weights: Path | None,
    device: str,
    as_json: bool,
) -> Record | None:
    """Return the record of ``spec``, or None if the run was stopped before its end."""
    from rulescope.lifetime import Progress  # here, because torch takes seconds to import
    from rulescope.runner import Paused, find_or_make

    if spec.id in store:
        specs = [spec]
    else:
        store.require_writable()
        specs = list(run_spec.with_donors([spec]).values())
    for item in specs:  # donors first
        role = "run" if item == spec else "donor"
        with Meter(f"{role} {item.id[:8]}", item.iterations) as meter:

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
                _show_pause(spec, pause.iteration, as_json)
                return None
    return record


def summarise(record: Record) -> dict[str, Any]:
    """Return the result of a run as plain data."""
    return {
        "id": record.manifest.id,
        "science_hash": record.manifest.science_hash,
        "score": final_mean(record, "score"),
        "measure": (measure := headline(record.log)),
        "value": final_mean(record, measure),
        "seconds": record.manifest.seconds,
        "iterations": record.spec.iterations,
        "seed": record.spec.seed,
        "scale": record.spec.scale,
        **({"evaluation": rates} if (rates := evaluated_rates(record)) else {}),
    }


def evaluated_rates(record: Record) -> dict[str, float]:
    """Return the reward per interaction of each evaluated policy, by name."""
    plan = record.spec.evaluation
    if plan is None:
        return {}
    each = plan.lanes * plan.steps
    return {
        policy: float(record.state[f"evaluation.{policy}/reward"].sum()) / each
        for policy in plan.policies
    }


def final_mean(record: Record, column: str) -> float | None:
    """Return the mean of the last :data:`TAIL` log rows of a column.

    None if there is none, such as the score of a world without episodes.
    """
    value = float(record.log[column][-TAIL:].mean())
    return None if math.isnan(value) else value


def _show_record(record: Record, found: bool, store: Store, plot: Path | None) -> None:
    from rulescope.assays.lifetime_figures import describe
    from rulescope.render.terminal_chart import curve

    out = console()
    rows = record.log
    out.print(f"{describe(record)}, seed {record.spec.seed}")
    measure = headline(rows)
    scored = measure.endswith("score")
    bounds = (0.0, 1.0) if scored else None
    out.print(curve(rows["iteration"], rows[measure], bounds=bounds, label=HEADLINES[measure]))
    value = final_mean(record, measure)
    shown = "no episode ended" if value is None else f"{value:.3f}"
    units = "0 random, 1 optimal" if scored else HEADLINES[measure]
    word = "score" if scored else "result"
    out.print(f"{word:<10}{shown} (mean of the last {TAIL} log rows; {units})")
    rates = evaluated_rates(record).items()
    if rates:
        shown = ", ".join(f"{policy} {rate:.4f}" for policy, rate in rates)
        out.print(f"evaluated {shown} (reward per interaction, without learning)")
    out.print(f"seconds   {duration(record.manifest.seconds)}")
    out.print(f"run       {record.manifest.id}")
    out.print(f"science   {record.manifest.science_hash}")
    out.print(f"store     {store.root}{' (found there)' if found else ''}")
    if plot is not None:
        out.print(f"figure    {plot}")


def _show_pause(spec: RunSpec, iteration: int, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"id": spec.id, "finished": False, "iteration": iteration}))
    else:
        print(
            f"stopped after iteration {iteration} of {spec.iterations}; the same command without "
            "--stop-after continues from there"
        )


def _require_stop(stop_after: int | None, spec: RunSpec) -> None:
    if stop_after is not None and not 1 <= stop_after <= spec.iterations:
        raise SpecError(f"--stop-after: {stop_after} is not between 1 and {spec.iterations}")


def _require_plot(plot: Path | None) -> None:
    """Raise unless a figure can be written to ``plot``."""
    if plot is None:
        return
    if plot.suffix not in PLOTS:
        raise SpecError(f"--plot: cannot draw {plot.name!r}; valid endings: {', '.join(PLOTS)}")
    if not plot.parent.is_dir():
        raise SpecError(f"--plot: there is no folder {str(plot.parent)!r}")
    if plot.is_dir():
        raise SpecError(f"--plot: {str(plot)!r} is a folder")
    disk.require_possible(plot.parent)
