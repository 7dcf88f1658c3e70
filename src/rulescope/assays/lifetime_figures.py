"""Figures of single lifetimes: learning curves, drawn from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.envs.world_config import (
    Catch,
    CatchStream,
    DeepSea,
    EnvironmentSpec,
    Gymnasium,
    MinAtar,
    PluginWorld,
    Tracking,
)
from rulescope.episode_stats import HEADLINES, headline
from rulescope.learners.learner_config import Plugin
from rulescope.learners.plugin_options import name_options
from rulescope.render.arm_styles import arm_style
from rulescope.render.line_labels import End, name_ends
from rulescope.render.palette import GREY
from rulescope.render.style import save, styled

if TYPE_CHECKING:
    from rulescope.records import Record
    from rulescope.run_spec import RunSpec

NAMES = {"pinned": "pin"}
"""Arms whose style has another name than on the command line."""


@styled
def learning_curve(record: Record, path: Path) -> None:
    """Draw one lifetime's score into ``path`` (the ending decides the format)."""
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axes = figure.subplots()
    measure = headline(record.log)
    axes.plot(record.log["iteration"], record.log[measure], color=arm_style("live").colour)
    if record.spec.change is not None:
        axes.axvline(record.spec.change.at, color=GREY, lw=0.8)
    _frame(axes, f"{describe(record)}, seed {record.spec.seed}", record.spec, measure)
    save(figure, path)


@styled
def arms(records: Mapping[str, Sequence[Record]], path: Path, title: str) -> None:
    """Draw the arms of a comparison: every lifetime thin, each arm's mean thick, labelled."""
    figure = Figure(figsize=(7.2, 3.8))
    axes = figure.add_axes((0.11, 0.13, 0.7, 0.76))
    ends: list[End] = []
    for arm, lifetimes in records.items():
        style = arm_style(NAMES.get(arm, arm))
        iteration = lifetimes[0].log["iteration"]
        scores = np.stack([record.log["score"] for record in lifetimes])
        for line in scores:
            axes.plot(iteration, line, color=style.colour, lw=0.8, alpha=0.35)
        mean = scores.mean(axis=0)
        axes.plot(iteration, mean, color=style.colour, ls=style.line, lw=2.0)
        last, level = float(mean[-1]), float(mean.mean())
        ends.append(End(f"{arm} (n = {len(lifetimes)})", style, float(iteration[-1]), last, level))
    _frame(axes, title, next(iter(records.values()))[0].spec)
    axes.margins(x=0.01)
    name_ends(axes, ends, size=8)
    save(figure, path)


def describe(record: Record) -> str:
    """Return learner, interventions, world and reward scale of a record in a few words."""
    spec = record.spec
    pins = " + ".join(f"{i.operation} {i.carrier}" for i in spec.interventions) or "live"
    world = _world(spec.environment)
    if spec.change is not None:
        world += f", {spec.change.__struct_config__.tag} after {spec.change.at}"
    if spec.boundary.terminals != "episodic":
        every = f" every {spec.boundary.interval}" if spec.boundary.interval else ""
        world += f", {spec.boundary.terminals} terminals{every}"
    rule = record.manifest.rule
    learner = str(spec.learner.__struct_config__.tag) if rule is None else rule.name
    if isinstance(spec.learner, Plugin):
        learner = name_options(spec.learner.rule, spec.learner.options)
        learner += "" if spec.learner.null_seed is None else " with null weights"
    return f"{learner}, {pins}, {world}, reward ×{spec.scale:g}"


def _world(environment: EnvironmentSpec) -> str:
    match environment:
        case Catch(rows=rows, columns=columns, dense=dense, drift=drift):
            kind = f"Catch {rows}×{columns}" + (", dense" if dense else "")
            return kind + (f", drift {drift:g}" if drift else "")
        case CatchStream(rows=rows, columns=columns, drift=drift):
            return f"CatchStream {rows}×{columns}, drift {drift:g}"
        case Tracking(columns=columns):
            return f"Tracking {columns}"
        case DeepSea(depth=depth):
            return f"DeepSea {depth}"
        case MinAtar(game=game):
            return f"MinAtar {game.capitalize()}"
        case Gymnasium(id=name) | PluginWorld(name=name):
            return name


def _frame(axes: Axes, title: str, spec: RunSpec, measure: str = "score") -> None:
    xlabel = f"iteration ({spec.lanes * spec.steps} interactions each)"
    axes.set(xlabel=xlabel, ylabel=HEADLINES[measure])
    axes.set_title(title, loc="left")
    if not measure.endswith("score"):
        return
    axes.axhline(0.0, color=GREY, lw=0.8, ls=":")
    axes.axhline(1.0, color=GREY, lw=0.8, ls=":")
    axes.set_ylim(min(-0.12, axes.get_ylim()[0]), max(1.06, axes.get_ylim()[1]))
    low, high = axes.get_ylim()
    shown = [tick for tick in np.arange(-2, 7) / 5 if low <= tick <= high]
    names = {0.0: "random 0", 1.0: "optimal 1"}
    axes.set_yticks(shown, [names.get(tick, f"{tick:g}") for tick in shown])
