"""Made-up batches and learner states in float64, for comparing two forms of one computation."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from learners.small import SIZES, small_disco
from rulescope.learners.adam import Moments
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.rule_network import MetaNetwork, RuleState
from rulescope.learners.disco.update import DiscoUpdate, LearnerState
from rulescope.learners.disco.value_estimates import Averages
from rulescope.learners.disco_config import Disco
from rulescope.numerics.golden import load_rule_weights

GRID = (4, 4)
IMAGE = (2, 5, 5)


class Shape(NamedTuple):
    """The size of a batch and how eventful it is."""

    transitions: int = 7
    width: int = 5
    rows: int = 6
    """Distinct observations: few, so that most steps share theirs."""
    terminal: float = 0.25
    """Probability of a terminal transition."""
    seed: int = 0


@cache
def network(rule: str, sign_log: str = "log", dtype: torch.dtype = torch.float64) -> MetaNetwork:
    """Return a rule network, built once."""
    return MetaNetwork(load_rule_weights(rule, dtype), sign_log)


def small_update(
    rule: str,
    config: Disco | None = None,
    observation: tuple[int, ...] = GRID,
    actions: int = 3,
    dtype: torch.dtype = torch.float64,
) -> DiscoUpdate:
    """Return the update of a small learner."""
    config = config or small_disco(agent=SIZES)
    rule_network = network(rule, config.conventions.sign_log, dtype)
    agent = Agent(
        observation,
        actions,
        rule_network.predictions,
        config.interface.bins,
        config.agent,
        config.conventions,
    )
    return DiscoUpdate(agent, rule_network, config)


def made_up_batch(
    shape: Shape,
    observation: tuple[int, ...] = GRID,
    actions: int = 3,
    dtype: torch.dtype = torch.float64,
) -> Batch:
    """Return a batch whose steps look at a few distinct rows, over and over."""
    rng = np.random.default_rng(shape.seed)
    length, width = shape.transitions, shape.width

    def tensor(values: object) -> Tensor:
        return torch.tensor(values, dtype=dtype)

    return Batch(
        rows=tensor(rng.standard_normal((shape.rows, *observation))),
        index=torch.tensor(rng.integers(shape.rows, size=(length + 1, width))),
        actions=torch.tensor(rng.integers(actions, size=(length, width))),
        rewards=tensor(rng.standard_normal((length, width))),
        terminals=tensor(rng.random((length, width)) < shape.terminal),
        behaviour=tensor(rng.standard_normal((length, width, actions))),
        began=tensor(rng.random(width) < shape.terminal),
    )


def spread_out(batch: Batch) -> Batch:
    """Return the same batch with every step a row of its own."""
    rows = batch.rows[batch.index].flatten(0, 1)
    return Batch(
        rows=rows,
        index=torch.arange(len(rows)).view(batch.index.shape),
        actions=batch.actions,
        rewards=batch.rewards,
        terminals=batch.terminals,
        behaviour=batch.behaviour,
        began=batch.began,
    )


def lived_in(update: DiscoUpdate, seed: int = 0) -> LearnerState:
    """Return the state of a learner with a past: nothing in it is zero or equal to another part."""
    rng = np.random.default_rng(seed + 1000)
    dtype, size, units = update.network.dtype, update.agent.layout.size, update.network.units

    def normal(count: int, scale: float) -> Tensor:
        return torch.tensor(rng.standard_normal(count) * scale, dtype=dtype)

    return LearnerState(
        params=normal(size, 0.3),
        target=normal(size, 0.3),
        recurrent=RuleState(normal(units, 0.5), normal(units, 0.5)),
        averages=Averages(
            torch.tensor([0.1, 2.0, 0.8], dtype=dtype), torch.tensor([-0.1, 3.0, 0.7], dtype=dtype)
        ),
        moments=Moments(normal(size, 1e-3), normal(size, 1e-2).square() + 1e-5, 11),
    )


def cloned(state: LearnerState) -> LearnerState:
    """Return a copy that shares no memory."""
    return LearnerState(
        params=state.params.clone(),
        target=state.target.clone(),
        recurrent=RuleState(*(part.clone() for part in state.recurrent)),
        averages=Averages(*(part.clone() for part in state.averages)),
        moments=Moments(
            state.moments.first.clone(), state.moments.second.clone(), state.moments.updates
        ),
    )
