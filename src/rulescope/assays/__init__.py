"""The assays: each a question to a rule, as a grid of runs and a pure analysis of their records."""

from __future__ import annotations

from rulescope.assays.assay import Assay
from rulescope.assays.budget import PRESETS, Budget
from rulescope.assays.change.change import ASSAY as CHANGE
from rulescope.assays.change.change_breakout import ASSAY as CHANGE_BREAKOUT
from rulescope.assays.change.mapping import ASSAY as MAPPING
from rulescope.assays.exploration.discovery import ASSAY as DISCOVERY
from rulescope.assays.exploration.exploration import ASSAY as EXPLORATION
from rulescope.assays.exploration.exploration_conventions import ASSAY as EXPLORATION_CONVENTIONS
from rulescope.assays.exploration.ladder import ASSAY as LADDER
from rulescope.assays.frame import Frame, gather
from rulescope.assays.grid import Cell
from rulescope.assays.horizon.horizon import ASSAY as HORIZON
from rulescope.assays.horizon.horizon_factorial import ASSAY as HORIZON_FACTORIAL
from rulescope.assays.horizon.learning_rate import ASSAY as LEARNING_RATE
from rulescope.assays.identity.agent_identity import ASSAY as AGENT_IDENTITY
from rulescope.assays.identity.conventions import ASSAY as CONVENTIONS
from rulescope.assays.inheritance.directions import ASSAY as DIRECTIONS
from rulescope.assays.inheritance.inheritance import ASSAY as INHERITANCE
from rulescope.assays.inheritance.normalised_inheritance import ASSAY as NORMALISED_INHERITANCE
from rulescope.assays.interface.interface import ASSAY as INTERFACE
from rulescope.assays.interface.interface_state import ASSAY as INTERFACE_STATE
from rulescope.assays.minatar.masking import ASSAY as MASKING
from rulescope.assays.minatar.minatar_context import ASSAY as MINATAR_CONTEXT
from rulescope.assays.minatar.scale_minatar import ASSAY as SCALE_MINATAR
from rulescope.assays.open.open_carry import ASSAY as OPEN_CARRY
from rulescope.assays.results import Results
from rulescope.assays.scale.popart import ASSAY as POPART
from rulescope.assays.scale.scale import ASSAY as SCALE
from rulescope.assays.selection import Selection, narrowed
from rulescope.assays.streams.exposure import ASSAY as EXPOSURE
from rulescope.assays.streams.stream import ASSAY as STREAM
from rulescope.assays.streams.synthetic import ASSAY as SYNTHETIC
from rulescope.core.errors import SpecError, nearest

__all__ = [
    "ASSAYS",
    "PRESETS",
    "Assay",
    "Budget",
    "Cell",
    "Frame",
    "Results",
    "Selection",
    "find",
    "gather",
    "narrowed",
]

ASSAYS: dict[str, Assay] = {
    assay.id: assay
    for assay in (
        SCALE,
        INHERITANCE,
        CHANGE,
        HORIZON,
        LEARNING_RATE,
        INTERFACE,
        POPART,
        MAPPING,
        CHANGE_BREAKOUT,
        STREAM,
        EXPLORATION,
        EXPOSURE,
        SYNTHETIC,
        MASKING,
        SCALE_MINATAR,
        MINATAR_CONTEXT,
        INTERFACE_STATE,
        CONVENTIONS,
        EXPLORATION_CONVENTIONS,
        LADDER,
        DISCOVERY,
        DIRECTIONS,
        OPEN_CARRY,
        AGENT_IDENTITY,
        NORMALISED_INHERITANCE,
        HORIZON_FACTORIAL,
    )
}
"""By id, in the order of the published catalogue."""


def find(name: str) -> Assay:
    """Return the assay with this id or name, in upper or lower case.

    >>> find("scale").id
    'E1'
    """
    known = {key.lower(): assay for assay in ASSAYS.values() for key in (assay.id, assay.name)}
    if name.lower() not in known:
        raise SpecError(f"no assay {name!r}{nearest(name.lower(), known)}")
    return known[name.lower()]
