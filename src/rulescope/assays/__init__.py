"""The assays: each a question put to a rule, as a grid of lifetimes and a pure analysis."""

from __future__ import annotations

from rulescope.assays import (
    agent_identity,
    change,
    change_breakout,
    conventions,
    directions,
    discovery,
    exploration,
    exploration_conventions,
    exposure,
    horizon,
    inheritance,
    interface,
    interface_state,
    ladder,
    learning_rate,
    mapping,
    masking,
    minatar_context,
    open_carry,
    popart,
    scale,
    scale_minatar,
    stream,
    synthetic,
)
from rulescope.assays.base import PRESETS, Assay, Budget, Cell, narrowed
from rulescope.assays.frame import Frame, gather
from rulescope.assays.results import Results
from rulescope.errors import SpecError, nearest

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
