"""The warm start of LPG: its weights are fitted to an advantage actor-critic.

A random LPG rule moves policies at random, and evolution would spend most of its generations on
learning that rewards matter. The teacher is expressible by the rule, and reads nothing but what
the rule reads: y is a normal distribution, discretised on m atoms, around the return after a
square-root transform. The value is the inverse transform of its mean, and the advantages are
generalised ones. The factor of an action is minus the clipped advantage, plus an entropy term.
"""

from __future__ import annotations

import numpy as np
import torch
from msgspec.structs import replace
from torch import Tensor

from rulescope.discover import candidate_rules
from rulescope.discover.batched_lifetimes import Cohort, LpgRules, Vectors
from rulescope.discover.candidate_rules import LpgInputs, LpgTargets
from rulescope.discover.evolution_spec import Evolution, Imitation, Lpg

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
        found = candidate_rules.advantages(
            *(x.movedim(0, 1) for x in (inputs.rewards, inputs.terminals, values)),
            config.discount,
            config.trace,
        ).movedim(1, 0)
        returns = found + values[:-1]
        root = returns.sign() * ((returns.abs() + 1.0).sqrt() - 1.0)
        distance = (root.clamp(-config.bound, config.bound).unsqueeze(-1) - self._atoms)
        logits = -0.5 * (distance / self._width).square()
        factor = config.entropy * inputs.chosen.log() - found.clamp(-config.clip, config.clip)
        return LpgTargets(factor, logits)


def imitate(spec: Evolution, start: Vectors) -> tuple[Vectors, list[float]]:
    """Return the weights [D] after the warm start, and the loss at the end of each lifetime.

    The agents of one lifetime learn from the teacher and those of the next from the weights, so
    that the weights are fitted where they lead, too. Targets are always the teacher's.
    """
    config = spec.imitation
    assert isinstance(spec.rule, Lpg)
    rules, teacher = LpgRules(spec.rule), Teacher(config, spec.rule.predictions)
    weights = torch.tensor(start, dtype=torch.float32).unsqueeze(0).requires_grad_()
    optimiser = torch.optim.Adam([weights], config.learning_rate)
    worlds = [replace(world, agents=world.agents * config.agents) for world in spec.worlds]
    total, step, losses = config.lifetimes * config.updates, 0, []
    for lifetime in range(config.lifetimes):
        cohort = Cohort(spec, worlds, 1, _seed(spec.seed, lifetime))
        recent = []
        for _ in range(config.updates):
            rollout, _ = cohort.collect()
            read = rules.read(cohort, rollout)
            inputs = candidate_rules.lpg_inputs(read[1], rollout)
            aim = teacher.targets(inputs)
            with torch.enable_grad():
                found = candidate_rules.lpg_targets(rules.stacked(weights), inputs)
                loss = _loss(found, aim)
                [weights.grad] = torch.autograd.grad(loss, weights)
            for group in optimiser.param_groups:
                group["lr"] = config.learning_rate * (1.0 - step / total)
            optimiser.step()
            step += 1
            recent.append(float(loss))
            follows = aim if lifetime % 2 == 0 else found
            rules.follow(cohort, rollout, read, LpgTargets(*(x.detach() for x in follows)))
        losses.append(float(np.mean(recent[-len(recent) // 4 :])))
    return weights.detach()[0].double().numpy(), losses


def _loss(found: LpgTargets, aim: LpgTargets) -> Tensor:
    """Return the squared error of the factors plus the divergence of the predictions' targets."""
    logs = found.logits.log_softmax(-1)
    wanted = aim.logits.log_softmax(-1)
    divergence = (wanted.exp() * (wanted - logs)).sum(-1).mean()
    return (found.policy - aim.policy).square().mean() + divergence


def _seed(seed: int, lifetime: int) -> int:
    from rulescope.core import seeds

    return int(seeds.stream(seed, "imitation", lifetime).integers(2**31))
