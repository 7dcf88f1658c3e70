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
    "fig:framework": Drawing("schematic_figures:framework"),
    "fig:interventions": Drawing("schematic_figures:interventions"),
}
"""Drawings without data, by label."""
FIGURES: dict[str, Drawing] = {
    "fig:scale": Drawing("inheritance.inheritance_figures:scale"),
    "fig:detail-scale": Drawing("scale.scale_figures:detail_scale"),
    "fig:detail-inheritance": Drawing("inheritance.inheritance_figures:detail_inheritance"),
    "fig:detail-replay": Drawing("change.change_figures:detail_replay"),
    "v5:fig:app-baselines": Drawing("horizon.baseline_figures:app_baselines"),
    "v5:fig:app-scale": Drawing("scale.scale_figures:app_scale"),
    "v5:fig:app-interface": Drawing("interface.interface_figures:app_interface"),
    "fig:behavior": Drawing("horizon.behavior_figures:behavior"),
    "v5:fig:app-streams": Drawing("streams.stream_figures:app_streams"),
    "orig:scale": Drawing("inheritance.inheritance_figures:integrated_scale"),
    "orig:behavior": Drawing("horizon.behavior_figures:integrated_behavior"),
    "synthetic-terminals": Drawing("streams.stream_figures:synthetic_terminals"),
    "v5:fig:recovery-overview": Drawing("change.recovery_figures:recovery_overview"),
    "v5:fig:recovery-catch": Drawing("change.change_figures:recovery_catch"),
    "v5:fig:recovery-mapping": Drawing("change.recovery_figures:recovery_mapping"),
    "v5:fig:app-exploration": Drawing("exploration.exploration_figures:app_exploration"),
    "ladder": Drawing("exploration.exploration_figures:ladder"),
    "deepsea-discovery": Drawing("exploration.discovery_figures:discovery"),
    "directions": Drawing("inheritance.directions_figures:directions"),
    "scale-audit": Drawing("scale.scale_figures:scale_audit"),
    "change-streams": Drawing("change.recovery_figures:change_streams"),
    "interface-state": Drawing("interface.interface_figures:interface_state"),
    "open-carry": Drawing("open.open_figures:open_carry"),
    "minatar-context": Drawing("open.open_figures:minatar_context"),
    **SCHEMATICS,
}
"""By label."""


def write_figure(label: str, results: Mapping[str, Results], folder: Path) -> list[Path]:
    """Draw a figure into ``folder`` as PDF, SVG and PNG; return the paths.

    The same results give the same bytes.
    """
    if label not in FIGURES:
        raise RulescopeError(f"no figure {label!r}{nearest(label, FIGURES)}")
    from rulescope.render.style import save

    figure = FIGURES[label](results)
    return [save(figure, folder / f"{stem(label)}.{ending}", title=label) for ending in ENDINGS]
