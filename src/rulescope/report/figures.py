"""Every figure of a report by its label, drawn from results into files of fixed content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from rulescope.errors import RulescopeError, nearest
from rulescope.report.files import stem
from rulescope.report.inheritance_figures import detail_inheritance, scale
from rulescope.report.interface_figures import app_interface, interface_state
from rulescope.report.lifetime_figures import arms, describe, learning_curve
from rulescope.report.scale_figures import app_scale, detail_scale, scale_audit
from rulescope.report.style import save

if TYPE_CHECKING:
    from rulescope.assays.results import Results

__all__ = ["ENDINGS", "FIGURES", "arms", "describe", "learning_curve", "write_figure"]

ENDINGS = ("pdf", "svg", "png")
FIGURES: dict[str, Callable[[Mapping[str, Results]], Figure]] = {
    "fig:scale": scale,
    "fig:detail-scale": detail_scale,
    "fig:detail-inheritance": detail_inheritance,
    "v5:fig:app-scale": app_scale,
    "v5:fig:app-interface": app_interface,
    "scale-audit": scale_audit,
    "interface-state": interface_state,
}
"""Each takes results by assay id (E1, E2, E-IF, P1); panels of absent ones say so."""


def write_figure(label: str, results: Mapping[str, Results], folder: Path) -> list[Path]:
    """Draw a figure into ``folder`` as PDF, SVG and PNG; return the paths.

    The same results give the same bytes.
    """
    if label not in FIGURES:
        raise RulescopeError(f"no figure {label!r}{nearest(label, FIGURES)}")
    figure = FIGURES[label](results)
    return [save(figure, folder / f"{stem(label)}.{ending}", title=label) for ending in ENDINGS]
