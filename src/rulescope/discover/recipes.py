"""Discoveries with a name; ``sprout`` is the one of the embedded rule."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from rulescope.core.errors import SpecError, nearest
from rulescope.discover.discovery_spec import (
    Discovery,
    Objective,
    RuleSizes,
    World,
    decode_discovery,
    validate_discovery,
)
from rulescope.envs.world_config import Boundary, Catch, DeepSea, Tracking
from rulescope.learners.disco_config import SPROUT as LEARNER
from rulescope.rules.embedded import EMBEDDED
from rulescope.rules.rule_weights import name_of

TRAINING_WORLDS = (
    World(environment=Catch(rows=5, columns=5), agents=4),
    World(environment=Catch(rows=6, columns=6, drift=0.2), agents=4),
    World(environment=Catch(rows=5, columns=5), agents=2, boundary=Boundary(terminals="masked")),
    World(environment=Catch(rows=6, columns=5, dense=True, references="exact"), agents=2),
    World(environment=Tracking(columns=5), agents=2),
    World(environment=DeepSea(depth=4), agents=2),
)
"""Small worlds, none of which a rule is tested in: no 8x8 board, no stream, no change within a
lifetime, no DeepSea deeper than four."""

_SCALES = (1e-2, 0.1, 1.0, 10.0, 100.0)


def _scaled(world: World) -> World:
    return replace(world, scales=_SCALES)


START = Discovery(worlds=TRAINING_WORLDS, warm_start=600, meta_steps=0)
EARLY = Discovery(
    worlds=TRAINING_WORLDS,
    # Much fresh experience for every update, so that the effect of a few updates on the objective
    # exceeds its noise, also for agents at the start of their lifetime.
    lanes=16,
    learner=replace(LEARNER, batch=16, capacity=32),
    lifetime=(20, 300),
    # The objective evaluates a policy a few updates later, which favours greedy policies. A longer
    # lifetime needs exploration: with a tenth of this bonus policies became deterministic early.
    objective=Objective(entropy=0.1),
    start=f"sha256:{EMBEDDED['sprout-start'].content}",
    meta_steps=600,
)
SPROUT = replace(
    EARLY,
    # A rule that was trained on short lifetimes degrades in longer ones. Long ones are useful once
    # most agents learn something under the rule; before, they waste experience.
    lifetime=(20, 1500),
    objective=Objective(entropy=0.05),
    start=f"sha256:{EMBEDDED['sprout-early'].content}",
    # The gradient of sixteen agents is noisy; the average removes most of the noise.
    averaging=0.995,
    meta_steps=600,
    seed=1,  # other agents than those of the stages before
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
    "sprout-scales": replace(SPROUT, worlds=tuple(_scaled(world) for world in TRAINING_WORLDS)),
    "sprout-transplants": replace(SPROUT, transplants=0.05),
}
"""``smoke`` takes seconds and does not learn. The last two add one axis of an audit to the
training: reward scales, or recurrent states of another history."""


def read_specification(path: Path) -> bytes:
    """Return the content of a file that should be a specification."""
    try:
        return path.read_bytes()
    except OSError as fault:
        raise SpecError(f"{path}: cannot be read ({fault.strerror})") from None


def select_discovery(
    recipe: str | Path, *, start: Path | None = None, **changes: int | None
) -> Discovery:
    """Return the discovery of a recipe, or of a JSON file, with ``changes`` that are not None.

    ``start`` is a file with the rule to start from.
    """
    if isinstance(recipe, Path):
        found = decode_discovery(read_specification(recipe), str(recipe))
    elif recipe in RECIPES:
        found = RECIPES[recipe]
    else:
        raise SpecError(f"no recipe is called {recipe!r}{nearest(recipe, RECIPES)}")
    given = {name: value for name, value in changes.items() if value is not None}
    if start is not None:
        found = replace(found, start=name_of(start))
    return validate_discovery(replace(found, **given), "options")
