"""Evolutions whose generations take milliseconds."""

from __future__ import annotations

import msgspec

from rulescope.discover.discovery_spec import World
from rulescope.discover.evolution_spec import (
    Evolution,
    Imitation,
    Lifetimes,
    Lpg,
    Lpo,
    SmallAgents,
    Validation,
)
from rulescope.discover.evolution_strategy import Strategy
from rulescope.envs.world_config import Catch, Tracking

TINY_LPG = Evolution(
    rule=Lpg(hidden=4, predictions=3, embedding=2),
    agents=SmallAgents(hidden=(4, 4), steps=6, learning_rate=0.05),
    worlds=(
        World(environment=Catch(rows=3, columns=3), agents=2),
        World(environment=Tracking(columns=3), agents=1, scales=(0.1, 10.0)),
    ),
    lifetimes=Lifetimes(updates=3),
    strategy=Strategy(pairs=3, sigma=0.3),
    imitation=Imitation(lifetimes=2, updates=2, agents=1),
    validation=Validation(every=2, agents=1, updates=3),
    generations=4,
    group=2,
)
TINY_LPO = msgspec.structs.replace(
    TINY_LPG, rule=Lpo(hidden=3, entropy_coefficient=0.01), imitation=Imitation()
)


def tiny_evolution(**changes: object) -> Evolution:
    """Return the small LPG evolution with some fields changed."""
    return msgspec.structs.replace(TINY_LPG, **changes)
