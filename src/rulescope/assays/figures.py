"""Every figure of a report by its label, drawn from results into files of fixed content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rulescope.core.disk import stem
from rulescope.core.errors import RulescopeError, nearest
from rulescope.render.display_names import CATCH_NAMES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rulescope.assays.estimates import Label
    from rulescope.assays.results import Results

ENDINGS = ("pdf", "svg", "png")
DONORS = ("match-natural", "match-clamp", "cross-natural", "cross-clamp")


class Shown(NamedTuple):
    """Estimates that a figure is about."""

    assay: str
    quantity: str
    labels: tuple[tuple[str, Label], ...] = ()

    def known(self, results: Mapping[str, Results]) -> bool:
        """Return whether any of them could be made."""
        found = results.get(self.assay)
        rows = [] if found is None else found.estimates.where(self.quantity, **dict(self.labels))
        return any(row.known for row in rows)


def shown(assay: str, quantity: str, **labels: Label) -> Shown:
    """Return the estimates of ``quantity`` that have ``labels``."""
    return Shown(assay, quantity, tuple(labels.items()))


class Drawing(NamedTuple):
    """A function that draws a figure; its module is imported when something is drawn."""

    place: str
    """``module:function`` in this package."""
    shows: tuple[Shown, ...] = ()
    """A figure without any of these estimates is not drawn; a schematic has none."""

    def load(self) -> Callable[[Mapping[str, Results]], Figure]:
        """Import the function."""
        module, function = self.place.split(":")
        found: Callable[[Mapping[str, Results]], Figure]
        found = getattr(import_module(f"rulescope.assays.{module}"), function)
        return found

    def has_data(self, results: Mapping[str, Results]) -> bool:
        """Return whether ``results`` have anything that the figure is about."""
        return not self.shows or any(each.known(results) for each in self.shows)

    def __call__(self, results: Mapping[str, Results]) -> Figure:
        """Draw the figure from results by assay id; panels without any are left out.

        Raises if there is nothing to draw: ask :meth:`has_data` before.
        """
        return self.load()(results)

    @property
    def caption(self) -> str:
        """The first line of the function's description."""
        return (self.load().__doc__ or "").strip().split("\n")[0]


SCHEMATICS: dict[str, Drawing] = {
    "fig:framework": Drawing("schematic_figures:draw_framework"),
    "fig:interventions": Drawing("schematic_figures:draw_interventions"),
}
"""Drawings without data, by label."""
FLIP: dict[str, Label] = {"condition": "action-flip"}
NO_LABELS: dict[str, Label] = {}
MASKED: dict[str, Label] = {"condition": "masked"}
_SCORES = shown("E1", "score")
_SCALE = (
    shown("E1", "score", task="catch"),
    *(shown("E2", "score", arm=arm) for arm in ("live", *DONORS)),
    *(shown("E1", "width", task=task) for task in CATCH_NAMES),
    shown("E-IF", "score"),
    shown("E-IF", "bins"),
)
_BEHAVIOR = (
    shown("E-A3c", "score"),
    shown("exposure", "score", condition="natural"),
    shown("E-A4m", "endpoint", **FLIP),
    shown("E-A5", "solved"),
)
FIGURES: dict[str, Drawing] = {
    "fig:scale": Drawing("inheritance.inheritance_figures:draw_scale", _SCALE),
    "fig:detail-scale": Drawing("scale.scale_figures:draw_scale_detail", (_SCORES,)),
    "fig:detail-inheritance": Drawing(
        "inheritance.inheritance_figures:draw_inheritance_detail", (shown("E2", "score"),)
    ),
    "fig:detail-replay": Drawing(
        "change.change_figures:draw_replay_detail",
        tuple(
            shown("E3", "auc", condition=change, task="catch", arm=arm)
            for change in ("action-flip", "reward-move")
            for arm in ("rule", "dqn", "dqn-28672", "dqn-cleared")
        ),
    ),
    "v5:fig:app-baselines": Drawing(
        "horizon.baseline_figures:draw_baselines", (shown("E-LR", "score"), shown("E-POP", "score"))
    ),
    "v5:fig:app-scale": Drawing("scale.scale_figures:draw_scale_appendix", (_SCORES,)),
    "v5:fig:app-interface": Drawing(
        "interface.interface_figures:draw_interface",
        (shown("E-IF", "score"), shown("E-IF", "bins")),
    ),
    "fig:behavior": Drawing(
        "horizon.behavior_figures:draw_behavior", (shown("F2", "endpoint"), *_BEHAVIOR)
    ),
    "v5:fig:app-streams": Drawing(
        "streams.stream_figures:draw_streams",
        (shown("exposure", "score"), shown("E-A3c", "score"), shown("masking", "effect")),
    ),
    "orig:scale": Drawing("inheritance.inheritance_figures:draw_integrated_scale", _SCALE),
    "orig:behavior": Drawing(
        "horizon.behavior_figures:draw_integrated_behavior",
        (shown("E3", "auc", task="catch", **FLIP), *_BEHAVIOR),
    ),
    "synthetic-terminals": Drawing(
        "streams.stream_figures:draw_synthetic_terminals",
        tuple(
            shown(assay, "score", arm=arm, **at)
            for arm in ("rule", "a2c")
            for assay, at in (("synthetic", NO_LABELS), ("exposure", MASKED))
        ),
    ),
    "v5:fig:recovery-overview": Drawing(
        "change.recovery_figures:draw_recovery_overview",
        tuple(shown(assay, "auc") for assay in ("E3", "E-A4x", "E-A4m")),
    ),
    "v5:fig:recovery-catch": Drawing(
        "change.change_figures:draw_catch_recovery", (shown("E3", "auc", **FLIP),)
    ),
    "v5:fig:recovery-mapping": Drawing(
        "change.recovery_figures:draw_mapping_recovery", (shown("E-A4x", "auc"),)
    ),
    "v5:fig:app-exploration": Drawing(
        "exploration.exploration_figures:draw_exploration",
        (shown("E-A5", "solved"), shown("F1", "difference")),
    ),
    "ladder": Drawing("exploration.exploration_figures:draw_ladder", (shown("ladder", "solved"),)),
    "deepsea-discovery": Drawing(
        "exploration.discovery_figures:draw_discovery", (shown("discovery", "found"),)
    ),
    "directions": Drawing(
        "inheritance.directions_figures:draw_directions", (shown("directions", "contrast"),)
    ),
    "normalised-inheritance": Drawing(
        "inheritance.normalised_inheritance_figures:draw_normalised_inheritance",
        (shown("normalised-inheritance", "effect"),),
    ),
    "horizon-factorial": Drawing(
        "horizon.factorial_figures:draw_horizon_factorial",
        (shown("horizon-factorial", "score"),),
    ),
    "scale-audit": Drawing("scale.scale_figures:draw_scale_audit", (_SCORES,)),
    "change-streams": Drawing(
        "change.recovery_figures:draw_change_curves",
        tuple(shown(assay, "auc") for assay in ("E3", "E-A4x", "E-A4m")),
    ),
    "interface-state": Drawing(
        "interface.interface_figures:draw_interface_state", (shown("P1", "effect"),)
    ),
    "open-carry": Drawing("open.open_figures:draw_open_carry", (shown("OPEN", "rate"),)),
    "minatar-context": Drawing(
        "open.open_figures:draw_minatar_context", (shown("minatar-context", "rate"),)
    ),
    **SCHEMATICS,
}
"""By label."""


IN_ANY_WORLD = {"E1": ("scale-audit", "fig:detail-scale"), "E2": ("fig:detail-inheritance",)}
"""By assay: the figures whose panels are not of a certain world."""


def figures_in_worlds(results: Results) -> tuple[str, ...]:
    """Return the figures of results in worlds that the user named; their axes are of scores."""
    normalised = all(known.normalised for known in results.worlds.values())
    return IN_ANY_WORLD.get(results.assay, ()) if normalised else ()


def write_figure(label: str, results: Mapping[str, Results], folder: Path) -> list[Path]:
    """Draw a figure into ``folder`` as PDF, SVG and PNG; return the paths, none without data.

    The same results give the same bytes.
    """
    if label not in FIGURES:
        raise RulescopeError(f"no figure {label!r}{nearest(label, FIGURES)}")
    if not FIGURES[label].has_data(results):
        return []
    from rulescope.render.style import save

    figure = FIGURES[label](results)
    return [save(figure, folder / f"{stem(label)}.{ending}", title=label) for ending in ENDINGS]
