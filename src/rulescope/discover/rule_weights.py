"""The weights of a rule in the making: drawn afresh, copied for each agent, and back to a file."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core.arrays import Arrays
from rulescope.discover.discovery_spec import RuleSizes
from rulescope.rules.disco_format import DiscoSizes
from rulescope.rules.random_weights import fresh as drawn

Rule = dict[str, Tensor]
"""Every array of a Disco-family rule by its key."""


def sizes(config: RuleSizes) -> DiscoSizes:
    """Return all fourteen sizes of the rule that ``config`` describes."""
    c = config
    return DiscoSizes(
        predictions=c.predictions,
        trajectory=c.trajectory,
        lifetime=c.lifetime,
        policy_hidden=c.hidden,
        y_hidden=c.hidden,
        z_hidden=c.hidden,
        action_hidden=c.hidden,
        action_embedding=c.embedding,
        lifetime_input=c.summary,
        lifetime_y_hidden=c.hidden,
        lifetime_z_hidden=c.hidden,
        lifetime_action_hidden=c.hidden,
        lifetime_action_embedding=c.embedding,
    )


def fresh(config: RuleSizes, seed: int) -> Rule:
    """Draw the weights that a discovery starts from."""
    return from_arrays(drawn(sizes(config), seed))


def copies(rule: Rule, agents: int) -> Rule:
    """Return a leaf [agents, ...] of every array, so that each agent has a gradient of its own."""
    return {
        name: array.detach().expand(agents, *array.shape).clone().requires_grad_()
        for name, array in rule.items()
    }


def as_arrays(rule: Rule) -> dict[str, NDArray[np.float32]]:
    """Return the rule as it is written to a file."""
    return {name: array.detach().numpy().copy() for name, array in rule.items()}


def from_arrays(arrays: Arrays) -> Rule:
    """Return the rule that :func:`as_arrays` wrote."""
    return {name: torch.tensor(array) for name, array in arrays.items()}
