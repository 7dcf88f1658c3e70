"""An assay: a question to a rule, as a grid of runs and a pure analysis of their records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import REFERENCE_INDEXED, Cohort
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Cell
from rulescope.assays.results import Results
from rulescope.core.errors import SpecError, nearest


@dataclass(frozen=True)
class Assay:
    """One question to a rule."""

    id: str
    """As in the published catalogue: E1, E2, E-IF, P1."""
    name: str
    """As typed: scale, inheritance, interface, interface-state."""
    question: str
    arms: tuple[str, ...]
    """All arms; control arms that are in no preset come last."""
    tasks: tuple[str, ...]
    presets: Mapping[str, Budget]
    grid: Callable[[Budget], list[Cell]]
    analyse: Callable[[Frame], Results]
    conditions: tuple[str, ...] = ()
    """All conditions, if the assay varies something besides tasks, arms and scales."""
    columns: tuple[str, ...] = ("score", "effective_bins")
    """Log columns that the analysis reads."""
    states: tuple[str, ...] = ("recurrent/h", "recurrent/c")
    """Terminal states that the analysis reads."""
    tables: tuple[str, ...] = ()
    """Labels of the published tables that this assay fills, such as ``tab:e1-all``."""
    figures: tuple[str, ...] = ()
    """Labels of the published figures that this assay feeds, such as ``fig:scale``."""
    cohort: Cohort = REFERENCE_INDEXED
    """The agent that the published counterpart fits, and why."""
    any_world: bool = False
    """Whether it can be run in any world, named by the user, besides its own ``tasks``."""
    arm_words: Mapping[str, str] = field(default_factory=dict)
    """Phrases that explain arms below figures, by arm; see :attr:`rulescope.assays.grid.Arm`."""

    def budget(self, preset: str) -> Budget:
        """Return the budget called ``preset``, with the agent of the assay's cohort."""
        if preset not in self.presets:
            raise SpecError(f"--preset: no {preset!r}{nearest(preset, self.presets)}")
        return replace(self.presets[preset], agent=self.cohort.agent)
