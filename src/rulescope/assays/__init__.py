"""The assays: each a question put to a rule, as a grid of lifetimes and a pure analysis."""

from __future__ import annotations

from rulescope.assays.assay import PRESETS, Assay, Budget, Cell, narrowed
from rulescope.assays.change import change, change_breakout, mapping
from rulescope.assays.exploration import discovery, exploration, exploration_conventions, ladder
from rulescope.assays.frame import Frame, gather
from rulescope.assays.horizon import horizon, learning_rate
from rulescope.assays.identity import agent_identity, conventions
from rulescope.assays.inheritance import directions, inheritance
from rulescope.assays.interface import interface, interface_state
from rulescope.assays.minatar import masking, minatar_context, scale_minatar
from rulescope.assays.open import open_carry
from rulescope.assays.results import Results
from rulescope.assays.scale import popart, scale
from rulescope.assays.streams import exposure, stream, synthetic
from rulescope.core.errors import SpecError, nearest

__all__ = [
    "ASSAYS",
    "PRESETS",
    "Assay",
    "Budget",
    "Cell",
    "Frame",
    "Results",
    "find",
    "gather",
    "narrowed",
]

ASSAYS: dict[str, Assay] = {
    module.ASSAY.id: module.ASSAY
    for module in (
        scale,
        inheritance,
        change,
        horizon,
        learning_rate,
        interface,
        popart,
        mapping,
        change_breakout,
        stream,
        exploration,
        exposure,
        synthetic,
        masking,
        scale_minatar,
        minatar_context,
        interface_state,
        conventions,
        exploration_conventions,
        ladder,
        discovery,
        directions,
        open_carry,
        agent_identity,
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
