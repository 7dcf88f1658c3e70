"""Every figure of a report by its label, drawn from results into files of fixed content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from rulescope.assays.change.change_figures import detail_replay, recovery_catch
from rulescope.assays.change.recovery_figures import (
    change_streams,
    recovery_mapping,
    recovery_overview,
)
from rulescope.assays.exploration.discovery_figures import discovery
from rulescope.assays.exploration.exploration_figures import app_exploration, ladder
from rulescope.assays.horizon.baseline_figures import app_baselines
from rulescope.assays.horizon.behavior_figures import behavior, integrated_behavior
from rulescope.assays.inheritance.directions_figures import directions
from rulescope.assays.inheritance.inheritance_figures import (
    detail_inheritance,
    integrated_scale,
    scale,
)
from rulescope.assays.interface.interface_figures import app_interface, interface_state
from rulescope.assays.lifetime_figures import arms, describe, learning_curve
from rulescope.assays.open.open_figures import minatar_context, open_carry
from rulescope.assays.scale.scale_figures import app_scale, detail_scale, scale_audit
from rulescope.assays.schematic_figures import SCHEMATICS
from rulescope.assays.streams.stream_figures import app_streams, synthetic_terminals
from rulescope.core.disk import stem
from rulescope.core.errors import RulescopeError, nearest
from rulescope.render.style import save

if TYPE_CHECKING:
    from rulescope.assays.results import Results

__all__ = ["ENDINGS", "FIGURES", "arms", "describe", "learning_curve", "write_figure"]

ENDINGS = ("pdf", "svg", "png")
FIGURES: dict[str, Callable[[Mapping[str, Results]], Figure]] = {
    "fig:scale": scale,
    "fig:detail-scale": detail_scale,
    "fig:detail-inheritance": detail_inheritance,
    "fig:detail-replay": detail_replay,
    "v5:fig:app-baselines": app_baselines,
    "v5:fig:app-scale": app_scale,
    "v5:fig:app-interface": app_interface,
    "fig:behavior": behavior,
    "v5:fig:app-streams": app_streams,
    "orig:scale": integrated_scale,
    "orig:behavior": integrated_behavior,
    "synthetic-terminals": synthetic_terminals,
    "v5:fig:recovery-overview": recovery_overview,
    "v5:fig:recovery-catch": recovery_catch,
    "v5:fig:recovery-mapping": recovery_mapping,
    "v5:fig:app-exploration": app_exploration,
    "ladder": ladder,
    "deepsea-discovery": discovery,
    "directions": directions,
    "scale-audit": scale_audit,
    "change-streams": change_streams,
    "interface-state": interface_state,
    "open-carry": open_carry,
    "minatar-context": minatar_context,
    **SCHEMATICS,
}
"""Each takes results by assay id; panels of absent ones say so."""


def write_figure(label: str, results: Mapping[str, Results], folder: Path) -> list[Path]:
    """Draw a figure into ``folder`` as PDF, SVG and PNG; return the paths.

    The same results give the same bytes.
    """
    if label not in FIGURES:
        raise RulescopeError(f"no figure {label!r}{nearest(label, FIGURES)}")
    figure = FIGURES[label](results)
    return [save(figure, folder / f"{stem(label)}.{ending}", title=label) for ending in ENDINGS]
