"""Every figure of a report by its label, drawn from results into files of fixed content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rulescope.core.disk import stem
from rulescope.core.errors import RulescopeError, nearest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rulescope.assays.results import Results

ENDINGS = ("pdf", "svg", "png")


class Drawing(NamedTuple):
    """A function that draws a figure; its module is imported when something is drawn."""

    place: str
    """``module:function`` in this package."""

    def load(self) -> Callable[[Mapping[str, Results]], Figure]:
        """Import the function."""
        module, function = self.place.split(":")
        found: Callable[[Mapping[str, Results]], Figure]
        found = getattr(import_module(f"rulescope.assays.{module}"), function)
        return found

    def __call__(self, results: Mapping[str, Results]) -> Figure:
        """Draw the figure from results by assay id; panels of absent ones say so."""
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
FIGURES: dict[str, Drawing] = {
    "fig:scale": Drawing("inheritance.inheritance_figures:draw_scale"),
    "fig:detail-scale": Drawing("scale.scale_figures:draw_scale_detail"),
    "fig:detail-inheritance": Drawing("inheritance.inheritance_figures:draw_inheritance_detail"),
    "fig:detail-replay": Drawing("change.change_figures:draw_replay_detail"),
    "v5:fig:app-baselines": Drawing("horizon.baseline_figures:draw_baselines"),
    "v5:fig:app-scale": Drawing("scale.scale_figures:draw_scale_appendix"),
    "v5:fig:app-interface": Drawing("interface.interface_figures:draw_interface"),
    "fig:behavior": Drawing("horizon.behavior_figures:draw_behavior"),
    "v5:fig:app-streams": Drawing("streams.stream_figures:draw_streams"),
    "orig:scale": Drawing("inheritance.inheritance_figures:draw_integrated_scale"),
    "orig:behavior": Drawing("horizon.behavior_figures:draw_integrated_behavior"),
    "synthetic-terminals": Drawing("streams.stream_figures:draw_synthetic_terminals"),
    "v5:fig:recovery-overview": Drawing("change.recovery_figures:draw_recovery_overview"),
    "v5:fig:recovery-catch": Drawing("change.change_figures:draw_catch_recovery"),
    "v5:fig:recovery-mapping": Drawing("change.recovery_figures:draw_mapping_recovery"),
    "v5:fig:app-exploration": Drawing("exploration.exploration_figures:draw_exploration"),
    "ladder": Drawing("exploration.exploration_figures:draw_ladder"),
    "deepsea-discovery": Drawing("exploration.discovery_figures:draw_discovery"),
    "directions": Drawing("inheritance.directions_figures:draw_directions"),
    "normalised-inheritance": Drawing(
        "inheritance.normalised_inheritance_figures:draw_normalised_inheritance"
    ),
    "horizon-factorial": Drawing("horizon.factorial_figures:draw_horizon_factorial"),
    "scale-audit": Drawing("scale.scale_figures:draw_scale_audit"),
    "change-streams": Drawing("change.recovery_figures:draw_change_curves"),
    "interface-state": Drawing("interface.interface_figures:draw_interface_state"),
    "open-carry": Drawing("open.open_figures:draw_open_carry"),
    "minatar-context": Drawing("open.open_figures:draw_minatar_context"),
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
    """Draw a figure into ``folder`` as PDF, SVG and PNG; return the paths.

    The same results give the same bytes.
    """
    if label not in FIGURES:
        raise RulescopeError(f"no figure {label!r}{nearest(label, FIGURES)}")
    from rulescope.render.style import save

    figure = FIGURES[label](results)
    return [save(figure, folder / f"{stem(label)}.{ending}", title=label) for ending in ENDINGS]
