"""Every mechanism view by name."""

from __future__ import annotations

from rulescope.core.errors import SpecError, nearest
from rulescope.mechanism import replay_view, targets_view, trajectory_view
from rulescope.mechanism.view_request import View

VIEWS: dict[str, View] = {
    view.name: view for view in (trajectory_view.VIEW, targets_view.VIEW, replay_view.VIEW)
}


def find_view(name: str) -> View:
    """Return the view called ``name``; the error for an unknown name offers the nearest one."""
    if name not in VIEWS:
        raise SpecError(f"no view {name!r}{nearest(name, VIEWS)}")
    return VIEWS[name]
