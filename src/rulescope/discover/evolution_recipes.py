"""Discoveries by evolution with a name."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from rulescope.core.errors import SpecError, nearest
from rulescope.core.structs import parsed
from rulescope.discover.evolution_spec import (
    Evolution,
    Imitation,
    Lifetimes,
    Lpg,
    Lpo,
    SmallAgents,
    Validation,
    decode_evolution,
    validate_evolution,
)
from rulescope.discover.evolution_strategy import Strategy
from rulescope.discover.recipes import TRAINING_WORLDS, read_specification

_WORLDS = tuple(replace(world, agents=1) for world in TRAINING_WORLDS)
"""Those of the discoveries by meta-gradients, none of which a rule is tested in."""

_LPG = Evolution(
    # A generation measures as many directions as it has pairs: a small rule is found sooner.
    rule=Lpg(hidden=16),
    worlds=_WORLDS,
    agents=SmallAgents(learning_rate=1e-2),
    # Under the warm start most agents are still learning then: faster learning scores higher.
    lifetimes=Lifetimes(updates=100),
    strategy=Strategy(pairs=32, sigma=0.05, learning_rate=0.02, rate_decay=0.995, shaping="ranks"),
    imitation=Imitation(lifetimes=8),
    generations=120,
)
_LPO = Evolution(
    # With a longer horizon, the values of the worlds without ends dominate the clipped gradient.
    rule=Lpo(discount=0.95),
    worlds=_WORLDS,
    agents=SmallAgents(learning_rate=1e-2, max_norm=0.5),
    lifetimes=Lifetimes(updates=60),
    strategy=Strategy(pairs=16, sigma=0.05, learning_rate=0.02, rate_decay=0.995, shaping="ranks"),
    validation=Validation(updates=120),
)
_TINY = {
    "worlds": _WORLDS[:1],
    "agents": SmallAgents(hidden=(8, 8), steps=10),
    "lifetimes": Lifetimes(updates=4),
    "strategy": Strategy(pairs=2),
    "validation": Validation(every=1, agents=1, updates=4),
    "generations": 3,
    "group": 1,
}

EVOLUTIONS: dict[str, Evolution] = {
    "lpg-smoke": Evolution(
        rule=Lpg(hidden=8, predictions=4, embedding=4),
        imitation=Imitation(lifetimes=2, updates=3, agents=1),
        **_TINY,  # type: ignore[arg-type]
    ),
    "lpo-smoke": Evolution(rule=Lpo(hidden=8), **_TINY),  # type: ignore[arg-type]
    "lpg-start": replace(_LPG, generations=0),
    "lpg-small": _LPG,
    "lpg-scratch": replace(_LPG, imitation=Imitation()),
    "lpo": _LPO,
}
"""The first two take seconds and do not learn. ``lpg-start`` is the warm start of ``lpg-small``
alone, ``lpg-scratch`` is without it."""


def select_evolution(recipe: str | Path, **changes: int | None) -> Evolution:
    """Return the discovery of a recipe, or of a JSON file, with ``changes`` that are not None."""
    if isinstance(recipe, Path):
        found = decode_evolution(read_specification(recipe), str(recipe))
    elif recipe in EVOLUTIONS:
        found = EVOLUTIONS[recipe]
    else:
        raise SpecError(f"no recipe is called {recipe!r}{nearest(recipe, EVOLUTIONS)}")
    given = {name: value for name, value in changes.items() if value is not None}
    return validate_evolution(replace(found, **given), "options")


def is_evolution(path: Path) -> bool:
    """Return whether the JSON file at ``path`` is a discovery by evolution."""
    data = parsed(read_specification(path), str(path))
    return isinstance(data, dict) and data.get("method") == "evolution"
