"""The weights of a rule in the making: drawn afresh, copied for each agent, and back to a file."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from rulescope import seeds
from rulescope.agents import initialisers
from rulescope.arrays import Arrays
from rulescope.discover.spec import RuleSizes
from rulescope.rules.disco_format import DiscoSizes, shapes

Rule = dict[str, Tensor]
"""Every array of a Disco-family rule by its key."""

GATE, HEADS = "lstm/linear", tuple(f"lstm/linear_{i}" for i in range(1, 5))
GATE_STD, HEAD_STD = 1.0, 0.3


def sizes(config: RuleSizes) -> DiscoSizes:
    """Return all fourteen sizes of the rule that ``config`` describes."""
    return DiscoSizes(
        predictions=config.predictions,
        trajectory=config.trajectory,
        lifetime=config.lifetime,
        lifetime_input=config.summary,
        **{
            f"{net}{part}": width
            for net in ("", "lifetime_")
            for part, width in (
                ("y_hidden", config.hidden),
                ("z_hidden", config.hidden),
                ("action_hidden", config.hidden),
                ("action_embedding", config.embedding),
            )
        },
        policy_hidden=config.hidden,
    )


def fresh(config: RuleSizes, seed: int) -> Rule:
    """Draw the weights that a discovery starts from: truncated normals, biases zero."""
    return {name: _draw(name, shape, seed) for name, shape in shapes(sizes(config)).items()}


def _draw(name: str, shape: tuple[int, ...], seed: int) -> Tensor:
    layer, _, kind = name.rpartition("/")
    if kind == "b":
        return torch.zeros(shape)
    std = HEAD_STD if layer in HEADS else GATE_STD if layer == GATE else 1 / math.sqrt(shape[-2])
    draw = initialisers.truncated_normal(seeds.stream(seed, "rule", name), shape, std)
    return torch.tensor(draw, dtype=torch.float32)


def copies(rule: Rule, agents: int) -> Rule:
    """Return a leaf [agents, ...] of every array, so that each agent has a gradient of its own."""
    return {
        name: array.detach().expand(agents, *array.shape).clone().requires_grad_()
        for name, array in rule.items()
    }


def as_arrays(rule: Rule) -> dict[str, np.ndarray]:
    """Return the rule as it is written to a file."""
    return {name: array.detach().numpy().copy() for name, array in rule.items()}


def from_arrays(arrays: Arrays) -> Rule:
    """Return the rule that :func:`as_arrays` wrote."""
    return {name: torch.tensor(array) for name, array in arrays.items()}
