"""Weights of a rule during its discovery: initial draw, one copy for each agent, file format."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core.arrays import Arrays
from rulescope.discover.discovery_spec import RuleSizes
from rulescope.rules import rule_weights
from rulescope.rules.disco_format import DiscoSizes

Rule = dict[str, Tensor]
"""Every array of a Disco rule by its key."""


def all_sizes(config: RuleSizes) -> DiscoSizes:
    """Return all sizes of the rule that ``config`` describes."""
    return DiscoSizes(
        predictions=config.predictions,
        trajectory=config.trajectory,
        lifetime=config.lifetime,
        policy_hidden=config.hidden,
        y_hidden=config.hidden,
        z_hidden=config.hidden,
        action_hidden=config.hidden,
        action_embedding=config.embedding,
        lifetime_input=config.summary,
        lifetime_y_hidden=config.hidden,
        lifetime_z_hidden=config.hidden,
        lifetime_action_hidden=config.hidden,
        lifetime_action_embedding=config.embedding,
    )


def draw_initial(config: RuleSizes, seed: int, device: str = "cpu") -> Rule:
    """Return random weights for a discovery to start from."""
    return from_arrays(rule_weights.fresh(all_sizes(config), seed), device)


def copy_per_agent(rule: Rule, agents: int) -> Rule:
    """Return a leaf [agents, ...] for every array, so that each agent has its own gradient."""
    return {
        name: array.detach().expand(agents, *array.shape).clone().requires_grad_()
        for name, array in rule.items()
    }


def to_arrays(rule: Rule) -> dict[str, NDArray[np.float32]]:
    """Return the rule as arrays for a file."""
    return {name: array.detach().cpu().numpy().copy() for name, array in rule.items()}


def from_arrays(arrays: Arrays, device: str = "cpu") -> Rule:
    """Return the rule with the given arrays: the inverse of :func:`to_arrays`."""
    return {name: torch.tensor(array, device=device) for name, array in arrays.items()}
