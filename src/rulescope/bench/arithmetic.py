"""The arithmetic limit: how long an update's matrix products alone must take on this machine.

Counted are the multiply-adds of the products that one update needs on the distinct rows of a batch
(none of the softmaxes, gathers, optimiser or acting). Divided by the machine's measured rate of
float32 matrix products on one thread, they bound any implementation that does each product once.
"""

from __future__ import annotations

import math
import time

import torch

from rulescope.agents.network import PER_ACTION_HEADS, Agent
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.features import LIFETIME, OUTER
from rulescope.learners.disco.learner import DiscoLearner

PROBE = 768
"""Size of the square product that measures the machine; its operands fit in the cache."""


def update_products(learner: DiscoLearner, batch: Batch) -> int:
    """Return the multiply-adds that one update of ``learner`` on ``batch`` needs."""
    agent, rows = learner.update.agent, len(batch.rows)
    online = forward_products(agent, rows)
    slow = online - rows * agent.actions * _head(agent, "aux")
    # Backward, every product appears twice, for its input and for its weight; but the observation
    # itself needs no gradient.
    back = 2 * online - rows * _observation(agent)
    return online + slow + back + rule_products(learner, batch)


def forward_products(agent: Agent, rows: int) -> int:
    """Return the multiply-adds of the agent on ``rows`` observations."""
    shapes = agent.layout.shapes
    per_row = _observation(agent) + sum(
        math.prod(shapes[f"{name}.w"]) for name in ("torso.1", "policy", "y", "root")
    )
    heads = sum(_head(agent, head) for head in PER_ACTION_HEADS)
    # Independent actions start from the same root, so they share the recurrent product.
    starts = 1 if agent.conventions.action_model == "independent" else agent.actions
    model = starts * math.prod(shapes["model.hidden.w"])
    return rows * (per_row + model + agent.actions * heads)


def _observation(agent: Agent) -> int:
    """Return the multiply-adds of the first layer for one observation."""
    shapes = agent.layout.shapes
    if agent.sizes.torso == "grid":
        return math.prod(shapes["torso.0.w"])
    _, height, width = agent.observation_shape
    return math.prod(shapes["torso.conv.w"]) * (height - 2) * (width - 2)


def _head(agent: Agent, name: str) -> int:
    shapes = agent.layout.shapes
    return math.prod(shapes[f"{name}.0.w"]) + math.prod(shapes[f"{name}.1.w"])


def rule_products(learner: DiscoLearner, batch: Batch) -> int:
    """Return the multiply-adds of the rule on ``batch``; the lifetime step itself is negligible."""
    arrays = learner.rule.arrays
    rows, actions, steps = len(batch.rows), learner.update.agent.actions, batch.actions.numel()

    def weights(name: str) -> int:
        return sum(
            int(a.size) for key, a in arrays.items() if key.startswith(name) and key[-1] == "w"
        )

    encoders = sum(
        2 * rows * weights(f"{net}/mlp/")  # of the online and the target network
        + 2 * rows * actions * weights(f"{net}/mlp_1/")
        + steps * actions * weights(f"{net}/sequential/")
        for net in (OUTER, LIFETIME)
    )
    height, gates = arrays[f"{OUTER}/lstm/linear/w"].shape
    # Where an episode (or the trajectory) ends, the state is empty: no recurrent product.
    starts = batch.actions.shape[1] + int(batch.terminals[:-1].sum())
    trajectory = steps * height * gates - starts * (gates // 4) * gates
    heads = sum(weights(f"{OUTER}/{head}/") for head in ("linear_1", "linear_2", "linear_3"))
    policy = weights(f"{OUTER}/sequential_1/") // 2 + actions * weights(f"{OUTER}/linear_4/")
    return encoders + trajectory + steps * (heads + policy + weights(f"{LIFETIME}/mlp/"))


def product_rate(seconds: float = 0.2) -> float:
    """Measure multiply-adds per second of a float32 product on this thread (best of several)."""
    a, b = torch.rand(PROBE, PROBE), torch.rand(PROBE, PROBE)
    out = torch.empty(PROBE, PROBE)
    torch.mm(a, b, out=out)
    best, end = math.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - start)
    return PROBE**3 / best
