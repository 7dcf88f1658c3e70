"""Every view by name."""

from __future__ import annotations

from rulescope.errors import SpecError, nearest
from rulescope.mechanism import replay, targets, trajectory
from rulescope.mechanism.inquiry import View

VIEWS: dict[str, View] = {view.name: view for view in (trajectory.VIEW, targets.VIEW, replay.VIEW)}


def find(name: str) -> View:
    """Return the view called ``name``; an unknown name is an error that offers the nearest one."""
    if name not in VIEWS:
        raise SpecError(f"no view {name!r}{nearest(name, VIEWS)}")
    return VIEWS[name]
