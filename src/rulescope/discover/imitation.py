"""The warm start of LPG: its weights are fitted to an advantage actor-critic.

A random LPG rule moves policies at random, and evolution would spend most of its generations on
learning that rewards matter. The teacher is expressible by the rule, and reads nothing but what
the rule reads: y is a normal distribution, discretised on m atoms, around the return after a
square-root transform. The value is the inverse transform of its mean, and the advantages are
generalised ones. The factor of an action is minus the clipped advantage, plus an entropy term.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from msgspec.structs import replace
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.discover import candidate_rules
from rulescope.discover.batched_lifetimes import Cohort, LpgRules, Vectors
from rulescope.discover.candidate_rules import LpgInputs, LpgTargets
from rulescope.discover.evolution_spec import Evolution, Imitation, Lpg
from rulescope.learners.adam import Adam

WIDTH = 0.75
"""Standard deviation of the teacher's y, in distances between atoms."""


class Teacher:
    """The actor-critic that the weights are fitted to."""

    def __init__(self, config: Imitation, predictions: int) -> None:
        self.config = config
        self._atoms = torch.linspace(-config.bound, config.bound, predictions)
        self._width = WIDTH * 2.0 * config.bound / (predictions - 1)

    def values(self, predictions: Tensor) -> Tensor:
        """Return the values [...] that ``predictions`` [..., m] express."""
        root = (predictions * self._atoms).sum(-1)
        return root * (root.abs() + 2.0)

    def targets(self, inputs: LpgInputs) -> LpgTargets:
        """Return the teacher's targets."""
        config = self.config
        values = self.values(inputs.predictions)
        rewards, terminals = (x.movedim(0, 1) for x in (inputs.rewards, inputs.terminals))
        found = candidate_rules.advantages(
            rewards, terminals, values.movedim(0, 1), config.discount, config.trace
        ).movedim(1, 0)
        returns = found + values[:-1]
        root = returns.sign() * ((returns.abs() + 1.0).sqrt() - 1.0)
        distance = root.clamp(-config.bound, config.bound).unsqueeze(-1) - self._atoms
        logits = -0.5 * (distance / self._width).square()
        factor = config.entropy * inputs.chosen.log() - found.clamp(-config.clip, config.clip)
        return LpgTargets(factor, logits)


class WarmStart:
    """The fit, advanced one lifetime at a time; ``save`` and ``load`` continue to the bit.

    The agents of one lifetime learn from the teacher and those of the next from the weights, so
    that the weights are fitted where they lead, too. Targets are always the teacher's.
    """

    def __init__(self, spec: Evolution, start: Vectors) -> None:
        """``start`` [D] are the first weights."""
        assert isinstance(spec.rule, Lpg)
        self.spec = spec
        self.losses: list[float] = []
        """The loss late in each lifetime"""
        self._rules = LpgRules(spec.rule)
        self._teacher = Teacher(spec.imitation, spec.rule.predictions)
        self._weights = torch.tensor(start, dtype=torch.float32)
        self._adam = Adam(self._weights, spec.imitation.learning_rate, np.inf)

    @property
    def weights(self) -> Vectors:
        """The current weights [D]."""
        return self._weights.double().numpy()

    @property
    def finished(self) -> bool:
        """Whether the last lifetime is over."""
        return len(self.losses) >= self.spec.imitation.lifetimes

    @torch.no_grad()
    def advance(self) -> float:
        """Fit the weights to the experience of one lifetime of new agents; return the late loss."""
        config, lifetime = self.spec.imitation, len(self.losses)
        worlds = [replace(world, agents=world.agents * config.agents) for world in self.spec.worlds]
        seed = int(seeds.stream(self.spec.seed, "imitation", lifetime).integers(2**31))
        cohort = Cohort(self.spec, worlds, 1, seed)
        losses = []
        for update in range(config.updates):
            rollout, _ = cohort.collect()
            read = self._rules.read(cohort, rollout)
            inputs = candidate_rules.lpg_inputs(read[1], rollout)
            aim = self._teacher.targets(inputs)
            done = (lifetime + update / config.updates) / config.lifetimes
            found, loss = self._fit(inputs, aim, config.learning_rate * (1.0 - done))
            losses.append(loss)
            self._rules.follow(cohort, rollout, read, aim if lifetime % 2 == 0 else found)
        self.losses.append(float(np.mean(losses[-max(len(losses) // 4, 1) :])))
        return self.losses[-1]

    def _fit(self, inputs: LpgInputs, aim: LpgTargets, rate: float) -> tuple[LpgTargets, float]:
        """Make one step towards ``aim``; return the targets and the loss before it."""
        weights = self._weights.clone().requires_grad_()
        with torch.enable_grad():
            views = self._rules.stacked(weights.unsqueeze(0))
            found = candidate_rules.lpg_targets(views, inputs)
            loss = imitation_loss(found, aim)
            [gradient] = torch.autograd.grad(loss, weights)
        self._adam.descend_(gradient, rate)
        return LpgTargets(found.policy.detach(), found.logits.detach()), float(loss)

    def save(self) -> dict[str, NDArray[Any]]:
        """Return everything that :meth:`load` needs to continue to the bit."""
        moments = self._adam.carrier.get()
        return {**moments, "weights": self._weights.numpy().copy(), "losses": np.array(self.losses)}

    def load(self, state: Arrays) -> None:
        """Continue from what :meth:`save` returned."""
        self._weights.copy_(torch.tensor(state["weights"]))
        self.losses = state["losses"].tolist()
        self._adam.carrier.set({name: state[name] for name in ("first", "second", "updates")})


def imitation_loss(found: LpgTargets, aim: LpgTargets) -> Tensor:
    """Return the squared error of the factors plus the divergence of the predictions' targets."""
    logs, wanted = found.logits.log_softmax(-1), aim.logits.log_softmax(-1)
    divergence = (wanted.exp() * (wanted - logs)).sum(-1).mean()
    return (found.policy - aim.policy).square().mean() + divergence
