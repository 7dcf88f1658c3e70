"""What the released OPEN program computed, and our optimiser and learner on the same inputs.

Sets with random rule weights are kept here. Those with released weights hold these weights, so they
are not; where they lie beside the repository, they are compared too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import machine
from rulescope.core import arrays
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner import Rollout
from rulescope.learners.open_config import Open
from rulescope.learners.open_ppo import OpenLearner
from rulescope.learners.torso import Network
from rulescope.rules.open import open_step
from rulescope.rules.rule_weights import OPEN_KEY, RuleWeights

HERE = Path(__file__).parents[1] / "golden" / "open"
BESIDE = machine.BESIDE / "golden" / "open"
ACTOR = [f"actor/Dense_{layer}/{part}" for layer in range(3) for part in ("bias", "kernel")]
CRITIC = [name.replace("actor", "critic") for name in ACTOR]
LEAVES = [*ACTOR, *CRITIC]
TINY_STEPS = 5

Content = dict[str, NDArray[Any]]


def golden(prefix: str) -> list[Path]:
    """Return the sets of a kind: those kept here, then those beside the repository."""
    here = {path.name: path for path in sorted(HERE.glob(f"{prefix}*.npz"))}
    beside = {path.name: path for path in sorted(BESIDE.glob(f"{prefix}*.npz"))}
    return list((here | {name: path for name, path in beside.items() if name not in here}).values())


class Errors(NamedTuple):
    """The largest differences from the original."""

    update: float
    carry: float
    momenta: float
    """Relative, but for momenta below 1e-6."""

    def within(self, update: float, carry: float, momenta: float = 1e-6) -> bool:
        """Tell whether all are as small (nothing is smaller than NaN)."""
        return self.update <= update and self.carry <= carry and self.momenta <= momenta


TINY = (4e-9, 4e-6)
"""Tolerances of updates and carries of the tiny sets."""


def tiny_leaves(data: Content) -> list[open_step.Leaf]:
    """Return the tensors of the tiny networks, in the order of the golden arrays."""
    found = []
    for name in LEAVES:
        shape, layer = data[f"p0/{name}"].shape, int(name.split("_")[1][0])
        first = 3 if name in CRITIC else 0
        found.append(open_step.Leaf(shape, len(shape) - 1, first + layer, layer / 2))
    return found


def tiny_optimiser(data: Content) -> open_step.Open:
    """Return the optimiser of a tiny set."""
    leaves = tiny_leaves(data)
    explorers = sum(leaf.size for leaf in leaves[: len(ACTOR)])
    return open_step.Open(data["theta"], leaves, explorers)


def flat(data: Content, prefix: str, names: list[str] = LEAVES) -> Tensor:
    """Return the named tensors under ``prefix`` as one vector."""
    return torch.tensor(np.concatenate([data[f"{prefix}/{name}"].ravel() for name in names]))


def columns(data: Content, prefix: str) -> NDArray[np.float32]:
    """Return what is kept of every parameter, [k, parameters]."""
    parts = [data[f"{prefix}/{name}"] for name in LEAVES]
    return np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts]).T


def tiny_errors(
    path: Path, make: Callable[[Content], open_step.Open] = tiny_optimiser, noisy: list[str] = ACTOR
) -> Errors:
    """Make the steps of a tiny set and return how far they are from the original's."""
    data = arrays.read(path)
    optimiser, params = make(data), flat(data, "p0")
    worst = [0.0, 0.0, 0.0]
    for turn in range(TINY_STEPS):
        if "zero" in path.name or ("reset3" in path.name and turn == 3):
            optimiser.carry.zero_()
        at = f"s{turn}"
        update = optimiser.update(
            params,
            flat(data, f"{at}/grad"),
            [
                torch.tensor(data[f"{at}/act/{network}{layer}"])
                for network in ("actor", "critic")
                for layer in range(3)
            ],
            float(data[f"{at}/training_prop"]),
            float(data[f"{at}/batch_prop"]),
            flat(data, f"{at}/noise", noisy),
        )
        params = params - update
        momenta = columns(data, f"{at}/mom")
        off = np.abs(optimiser.momenta.numpy() - momenta) / (np.abs(momenta) + 1e-6)
        found = (
            float((update - flat(data, f"{at}/update")).abs().max()),
            float(np.abs(optimiser.carry.numpy() - columns(data, f"{at}/carry")).max()),
            float(off.max()),
        )
        worst = [float(np.maximum(old, new)) for old, new in zip(worst, found, strict=True)]
    return Errors(*worst)


class Given:
    """Stands in for a random stream: hands out what the original drew."""

    def __init__(self, draws: list[NDArray[Any]]) -> None:
        self.draws = list(draws)

    def permutation(self, _count: int) -> NDArray[Any]:
        return self.draws.pop(0)

    def standard_normal(self, _count: int, dtype: type) -> NDArray[Any]:
        return self.draws.pop(0).astype(dtype)


class PPOCase(NamedTuple):
    """A whole PPO update of the original, and a learner that is about to make it."""

    data: Content
    learner: OpenLearner
    rollout: Rollout


NAMES = {"torso.0": "Dense_0", "torso.1": "Dense_1", "head": "Dense_2"}


def theirs(name: str) -> str:
    """Return the original's name of a tensor of ours."""
    layer, _, part = name.rpartition(".")
    return f"{NAMES[layer]}/{'kernel' if part == 'w' else 'bias'}"


def ours(data: Content, prefix: str, *networks: tuple[str, Network]) -> NDArray[np.float32]:
    """Return the tensors under ``prefix`` as one vector in the order of our networks."""
    return np.concatenate(
        [
            data[f"{prefix}/{who}/{theirs(name)}"].ravel()
            for who, network in networks
            for name in network.layout.shapes
        ]
    )


def ppo_case(path: Path) -> PPOCase:
    data = arrays.read(path)
    config = Open(agent=NetworkSizes(hidden=(6, 6)), epochs=2, minibatches=2)
    rule = RuleWeights("golden", {OPEN_KEY: data["theta"]}, "", "")
    learner = OpenLearner(config, rule, (400,), 3, seed=0, iterations=3)
    actor, critic = ("actor", learner.policy), ("critic", learner.value)
    learner.params.copy_(torch.tensor(ours(data, "p0", actor, critic)))
    streams: dict[str, Any] = {
        "minibatch": Given([data["perm0"], data["perm1"]]),
        "noise": Given([ours(data, f"s{k}/noise", actor) for k in range(4)]),
    }
    learner.streams = streams
    rollout = Rollout(
        observations=np.concatenate([data["obs"], data["last_obs"][None]]).astype(np.float32),
        actions=data["action"].astype(np.int64),
        rewards=data["reward"],
        terminals=data["done"],
        began=np.zeros(4, np.bool_),
        behaviour={"log_chance": data["logp_behaviour"]},
    )
    return PPOCase(data, learner, rollout)


def ppo_param_error(path: Path) -> float:
    """Make the PPO update of a set; return the largest error of the parameters after it."""
    data, learner, rollout = ppo_case(path)
    learner.learn(rollout, measure=False)
    both = (("actor", learner.policy), ("critic", learner.value))
    return float(np.abs(learner.params.numpy() - ours(data, "final/param", *both)).max())
