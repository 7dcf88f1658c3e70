"""Every figure of a report by its label, drawn from results into files of fixed content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from rulescope.assays.change.change_figures import draw_catch_recovery, draw_replay_detail
from rulescope.assays.change.recovery_figures import (
    draw_change_curves,
    draw_mapping_recovery,
    draw_recovery_overview,
)
from rulescope.assays.exploration.discovery_figures import draw_discovery
from rulescope.assays.exploration.exploration_figures import draw_exploration, draw_ladder
from rulescope.assays.horizon.baseline_figures import draw_baselines
from rulescope.assays.horizon.behavior_figures import draw_behavior, draw_integrated_behavior
from rulescope.assays.inheritance.directions_figures import draw_directions
from rulescope.assays.inheritance.inheritance_figures import (
    draw_inheritance_detail,
    draw_integrated_scale,
    draw_scale,
)
from rulescope.assays.interface.interface_figures import draw_interface, draw_interface_state
from rulescope.assays.lifetime_figures import arms, describe, learning_curve
from rulescope.assays.open.open_figures import draw_minatar_context, draw_open_carry
from rulescope.assays.scale.scale_figures import (
    draw_scale_appendix,
    draw_scale_audit,
    draw_scale_detail,
)
from rulescope.assays.schematic_figures import SCHEMATICS
from rulescope.assays.streams.stream_figures import draw_streams, draw_synthetic_terminals
from rulescope.core.errors import RulescopeError, nearest
from rulescope.render.result_files import stem
from rulescope.render.style import save

if TYPE_CHECKING:
    from rulescope.assays.results import Results

__all__ = ["ENDINGS", "FIGURES", "arms", "describe", "learning_curve", "write_figure"]

ENDINGS = ("pdf", "svg", "png")
FIGURES: dict[str, Callable[[Mapping[str, Results]], Figure]] = {
    "fig:scale": draw_scale,
    "fig:detail-scale": draw_scale_detail,
    "fig:detail-inheritance": draw_inheritance_detail,
    "fig:detail-replay": draw_replay_detail,
    "v5:fig:app-baselines": draw_baselines,
    "v5:fig:app-scale": draw_scale_appendix,
    "v5:fig:app-interface": draw_interface,
    "fig:behavior": draw_behavior,
    "v5:fig:app-streams": draw_streams,
    "orig:scale": draw_integrated_scale,
    "orig:behavior": draw_integrated_behavior,
    "synthetic-terminals": draw_synthetic_terminals,
    "v5:fig:recovery-overview": draw_recovery_overview,
    "v5:fig:recovery-catch": draw_catch_recovery,
    "v5:fig:recovery-mapping": draw_mapping_recovery,
    "v5:fig:app-exploration": draw_exploration,
    "ladder": draw_ladder,
    "deepsea-discovery": draw_discovery,
    "directions": draw_directions,
    "scale-audit": draw_scale_audit,
    "change-streams": draw_change_curves,
    "interface-state": draw_interface_state,
    "open-carry": draw_open_carry,
    "minatar-context": draw_minatar_context,
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
