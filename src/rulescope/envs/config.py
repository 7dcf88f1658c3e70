"""Worlds and boundaries as data; ``WORLDS`` gives them the names used on the command line."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from rulescope.frozen import Frozen


class Catch(Frozen, frozen=True, tag="catch", tag_field="kind"):
    """Catch a falling ball with a paddle: +1 if caught, -1 if missed; one episode a fall."""

    rows: Annotated[int, Meta(ge=2, le=256)] = 8
    columns: Annotated[int, Meta(ge=2, le=256)] = 8
    dense: bool = False
    """Also pay -|paddle - ball| / (columns - 1) at every step."""
    drift: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.0
    """Probability of a sideways ball move of one column at each step."""
    references: Literal["published", "exact"] = "published"
    """Dense Catch is normalised by the (sampled) constant of the published audit, or exactly."""


EnvironmentSpec = Catch

WORLDS: dict[str, EnvironmentSpec] = {
    "catch": Catch(),
    "catch-dense": Catch(dense=True),
    "catch-long": Catch(rows=16, columns=16),
    "catch-big": Catch(rows=24, columns=24),
}


class Boundary(Frozen, frozen=True):
    """What the learner is told about episode ends; the world itself is never changed.

    ``episodic`` tells the truth, ``masked`` never tells of an end, ``synthetic`` claims one every
    ``interval`` steps of a lane, counted from construction and never reset by a real episode.
    """

    terminals: Literal["episodic", "masked", "synthetic"] = "episodic"
    interval: Annotated[int, Meta(ge=1)] | None = None
