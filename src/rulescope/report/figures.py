"""Figures of learning curves, drawn with matplotlib into files of fixed content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rulescope.records import Record
from rulescope.spec import RunSpec

COLOURS = {"live": "#0072B2", "pinned": "#D55E00"}
"""From the Okabe-Ito palette, which colour-blind readers can tell apart."""
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "svg.hashsalt": "rulescope",
}


def learning_curve(record: Record, path: Path) -> None:
    """Draw one lifetime's score into ``path`` (the ending decides the format)."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.plot(record.log["iteration"], record.log["score"], color=COLOURS["live"], lw=1.8)
        _frame(axes, f"{describe(record)}, seed {record.spec.seed}", record.spec)
        _save(figure, path)


def arms(records: Mapping[str, Sequence[Record]], path: Path, title: str) -> None:
    """Draw the arms of a comparison: every lifetime thin, each arm's mean thick, labelled."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.0), layout="constrained")
        axes = figure.subplots()
        for arm, lifetimes in records.items():
            colour = COLOURS.get(arm, "#444444")
            iteration = lifetimes[0].log["iteration"]
            scores = np.stack([record.log["score"] for record in lifetimes])
            for line in scores:
                axes.plot(iteration, line, color=colour, lw=0.9, alpha=0.35)
            mean = scores.mean(axis=0)
            axes.plot(iteration, mean, color=colour, lw=2.4)
            axes.annotate(
                f"{arm} (n={len(lifetimes)})",
                (iteration[-1], mean[-1]),
                xytext=(6, 0),
                textcoords="offset points",
                color=colour,
                va="center",
                weight="bold",
            )
        _frame(axes, title, next(iter(records.values()))[0].spec)
        axes.margins(x=0.01)
        _save(figure, path)


def describe(record: Record) -> str:
    """Say in a few words what a record is a lifetime of."""
    spec = record.spec
    pins = " + ".join(f"{i.operation} {i.carrier}" for i in spec.interventions) or "live"
    world = f"Catch {spec.environment.rows}×{spec.environment.columns}"
    world += ", dense" if spec.environment.dense else ""
    world += f", drift {spec.environment.drift:g}" if spec.environment.drift else ""
    if spec.boundary.terminals != "episodic":
        every = f" every {spec.boundary.interval}" if spec.boundary.interval else ""
        world += f", {spec.boundary.terminals} terminals{every}"
    rule = "" if record.manifest.rule is None else f"{record.manifest.rule.name}, "
    return f"{rule}{pins}, {world}, reward ×{spec.scale:g}"


def _frame(axes: Axes, title: str, spec: RunSpec) -> None:
    axes.axhline(0.0, color="#999999", lw=0.9, ls=":")
    axes.axhline(1.0, color="#999999", lw=0.9, ls=":")
    xlabel = f"iteration ({spec.lanes * spec.steps} interactions each)"
    axes.set(xlabel=xlabel, ylabel="score", title=title)
    axes.set_ylim(min(-0.12, axes.get_ylim()[0]), max(1.06, axes.get_ylim()[1]))
    ticks = np.arange(-2, 7) / 5
    low, high = axes.get_ylim()
    shown = [tick for tick in ticks if low <= tick <= high]
    names = {0.0: "random 0", 1.0: "optimal 1"}
    axes.set_yticks(shown, [names.get(tick, f"{tick:g}") for tick in shown])


def _save(figure: Figure, path: Path) -> None:
    """Write ``figure`` with nothing in it that changes from one time to the next."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {
        ".png": {"Software": "rulescope"},
        ".pdf": {"CreationDate": None},
        ".svg": {"Date": None},
    }
    figure.savefig(path, dpi=160, metadata=metadata.get(path.suffix, {}))
