"""A discovery whose meta-steps take milliseconds."""

from __future__ import annotations

import msgspec

from rulescope.discover.discovery_spec import Discovery, Objective, RuleSizes, World
from rulescope.envs.world_config import Catch
from rulescope.learners.disco_config import SPROUT, AgentSizes, Interface

LEARNER = msgspec.structs.replace(
    SPROUT,
    agent=AgentSizes(hidden=(8, 8), model=4, head=4),
    interface=Interface(bound=2.0, bins=5),
    batch=3,
    capacity=4,
)
TINY = Discovery(
    sizes=RuleSizes(predictions=5, trajectory=6, lifetime=4, hidden=8, embedding=6, summary=3),
    learner=LEARNER,
    worlds=(World(environment=Catch(rows=3, columns=3), agents=3),),
    steps=5,
    updates=2,
    judged_lanes=2,
    lifetime=(3, 9),
    objective=Objective(critic_hidden=4, critic_updates=1),
    meta_steps=4,
    log_every=1,
)


def tiny(**changes: object) -> Discovery:
    """Return the small discovery with some fields changed."""
    return msgspec.structs.replace(TINY, **changes)
