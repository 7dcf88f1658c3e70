"""Discoveries that have a name; ``sprout`` is the one that made the embedded rule."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from rulescope.core.errors import SpecError, nearest
from rulescope.discover.discovery_spec import (
    Discovery,
    Objective,
    RuleSizes,
    World,
    checked,
    decode,
)
from rulescope.rules.embedded import EMBEDDED
from rulescope.rules.loading import name_of
from rulescope.spec.disco_config import SPROUT as LEARNER
from rulescope.spec.world_config import Boundary, Catch, DeepSea, Tracking

_WORLDS = (
    World(environment=Catch(rows=5, columns=5), agents=4),
    World(environment=Catch(rows=6, columns=6, drift=0.2), agents=4),
    World(environment=Catch(rows=5, columns=5), agents=2, boundary=Boundary(terminals="masked")),
    World(environment=Catch(rows=6, columns=5, dense=True, references="exact"), agents=2),
    World(environment=Tracking(columns=5), agents=2),
    World(environment=DeepSea(depth=4), agents=2),
)
"""Small worlds of every kind but those that a rule is tested in: no 8x8 board, no stream, no
change within a lifetime, no sea deeper than four."""

_SCALES = (1e-2, 0.1, 1.0, 10.0, 100.0)


def _scaled(world: World) -> World:
    return replace(world, scales=_SCALES)


START = Discovery(worlds=_WORLDS, warm_start=600, meta_steps=0)
EARLY = Discovery(
    worlds=_WORLDS,
    # Plenty of fresh experience for every update, so that a few updates make a difference that the
    # objective can see. With little, what a rule does for newborns is lost in noise.
    lanes=16,
    learner=replace(LEARNER, batch=16, capacity=32),
    lifetime=(20, 300),
    # What is judged is a policy a few updates later, which is best if it is greedy. A learner that
    # lives on is better off undecided for longer: a tenth of the bonus made policies certain early.
    objective=Objective(entropy=0.1),
    start=f"sha256:{EMBEDDED['sprout-start'].content}",
    meta_steps=600,
)
SPROUT = replace(
    EARLY,
    # A rule whose agents die young forgets what it taught once they live longer than any it knew.
    # It can be raised on long lives once most agents learn something: before, they are wasted.
    lifetime=(20, 1500),
    objective=Objective(entropy=0.05),
    start=f"sha256:{EMBEDDED['sprout-early'].content}",
    # Sixteen agents move the rule to and fro; what they have in common is in the average.
    averaging=0.995,
    meta_steps=600,
    seed=1,  # not the agents that it met before
)

RECIPES: dict[str, Discovery] = {
    "smoke": Discovery(
        sizes=RuleSizes(predictions=4, trajectory=8, lifetime=4, hidden=4, embedding=2, summary=4),
        worlds=(World(environment=Catch(rows=4, columns=4), agents=2),),
        objective=Objective(critic_hidden=8),
        judged_lanes=4,
        warm_start=2,
        meta_steps=4,
        log_every=1,
    ),
    "sprout-start": START,
    "sprout-early": EARLY,
    "sprout": SPROUT,
    "sprout-scales": replace(SPROUT, worlds=tuple(_scaled(world) for world in _WORLDS)),
    "sprout-transplants": replace(SPROUT, transplants=0.05),
}
"""``smoke`` takes seconds and learns nothing; the last two add one term of an audit's profile to
what a rule is judged by: reward scales, or recurrent states of another history."""


def select_discovery(
    recipe: str | Path, *, start: Path | None = None, **changes: int | None
) -> Discovery:
    """Return the discovery of a recipe, or of a JSON file, with ``changes`` that are not None.

    ``start`` is a file with the rule to start from.
    """
    if isinstance(recipe, Path):
        try:
            found = decode(recipe.read_bytes(), str(recipe))
        except OSError as fault:
            raise SpecError(f"{recipe}: cannot be read ({fault.strerror})") from None
    elif recipe in RECIPES:
        found = RECIPES[recipe]
    else:
        raise SpecError(f"no recipe is called {recipe!r}{nearest(recipe, RECIPES)}")
    given = {name: value for name, value in changes.items() if value is not None}
    if start is not None:
        found = replace(found, start=name_of(start))
    return checked(replace(found, **given), "options")
