"""Small learners and lifetimes: the real rule architecture, everything around it little."""

from __future__ import annotations

from typing import Any

import msgspec

from rulescope.envs.world_config import Catch
from rulescope.learners.disco_config import AGENTS, AgentSizes, Disco
from rulescope.run_spec import RunSpec

RULE = "random:20240"
SIZES = AgentSizes(hidden=(32, 32), model=16, head=16)
CHANNEL_SIZES = AgentSizes(torso="channel", hidden=(1, 24), channels=4, model=16, head=16)


def small_disco(bundle: str = "historical", **changes: Any) -> Disco:
    """Return a Disco learner that fills its replay, and starts to learn, within few iterations."""
    base = Disco(rule=RULE, agent=SIZES, conventions=AGENTS[bundle], batch=4, capacity=16)
    return msgspec.structs.replace(base, **changes)


def small_spec(**changes: Any) -> RunSpec:
    """Return a lifetime whose replay wraps around after 8 iterations; the second one learns."""
    base = RunSpec(
        learner=small_disco(),
        environment=Catch(rows=5, columns=5),
        iterations=24,
        log_every=3,
        steps=6,
    )
    return msgspec.structs.replace(base, **changes)
