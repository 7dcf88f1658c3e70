"""Whole lifetimes of the agents of C candidate rules, stepped together.

All candidates share seeds: the agents' initial parameters, the noise that samples their actions
and the random numbers of their worlds. Differences between candidates are due to their weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rulescope.core import seeds
from rulescope.core.flat_vector import Layout
from rulescope.discover import candidate_rules
from rulescope.discover.batched_worlds import BatchedWorldMix
from rulescope.discover.candidate_rules import LpgOutputs, LpgTargets, Rollout
from rulescope.discover.discovery_spec import World
from rulescope.discover.evolution_spec import Evolution, Lpg, Lpo
from rulescope.discover.stacked_agents import Activations, StackedAgents, make_agents, stacked_views
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.rules import drawn_rules
from rulescope.rules.drift import EPSILON
from rulescope.rules.lpg_format import LpgSizes
from rulescope.rules.lpo_format import LpoSizes
from rulescope.rules.weight_vectors import flatten_weights

Vectors = NDArray[np.float64]


class Cohort:
    """The agents of C candidates in their worlds, advanced one update at a time."""

    def __init__(
        self, spec: Evolution, worlds: Sequence[World], candidates: int, seed: int
    ) -> None:
        sizes = spec.agents
        self.mix = BatchedWorldMix(worlds, candidates, sizes.lanes)
        self.candidates, self.each, self.lanes = self.mix.shape
        """C, E and B"""
        self.actions = self.mix.actions
        extra = spec.rule.predictions if isinstance(spec.rule, Lpg) else 1
        cells = int(np.prod(self.mix.observation_shape))
        drawn = seeds.stream(seed, "agents")
        self.network, initial = make_agents(
            cells,
            self.actions + extra,
            NetworkSizes(hidden=sizes.hidden),
            [int(number) for number in drawn.integers(2**31, size=self.each)],
            candidates,
        )
        self.agents = StackedAgents(self.network, initial, sizes.learning_rate, sizes.max_norm)
        choices = [world.scales for world in worlds for _ in range(world.agents)]
        self.mix.scales = np.array([[drawn.choice(scales)] for scales in choices], np.float32)
        self.streams = {name: seeds.stream(seed, name) for name in ("action", "world", "batch")}
        self.steps = sizes.steps
        self._next = self.mix.reset(self.streams["world"].random((self.each, self.lanes, 2)))

    def collect(self) -> tuple[Rollout, NDArray[np.float64]]:
        """Return a rollout of every agent, and its mean payoffs [C, E]."""
        shape = self.candidates, self.each, self.steps, self.lanes
        draws = self.streams["world"].random((self.steps, self.each, self.lanes, 2))
        noise = self.streams["action"].gumbel(
            size=(self.steps, self.each, self.lanes, self.actions)
        )
        noises = noise.astype(np.float32)
        cells = self._next.shape[-1]
        observations = np.empty((*shape[:2], self.steps + 1, self.lanes, cells), np.float32)
        rewards, terminals = np.empty(shape, np.float32), np.empty(shape, np.float32)
        actions, payoffs = np.empty(shape, np.int64), np.zeros(shape[:2])
        for t in range(self.steps):
            observations[:, :, t] = self._next
            rows = torch.from_numpy(self._next).view(-1, self.lanes, cells)
            logits = self.agents.forward(rows).outputs[..., : self.actions].numpy()
            chosen = (logits.reshape(*self.mix.shape, -1) + noises[t]).argmax(-1)
            step = self.mix.step(chosen, draws[t])
            actions[:, :, t], rewards[:, :, t] = chosen, step.reward
            terminals[:, :, t] = step.terminal
            payoffs += step.payoff.mean(2)
            self._next = step.observation
        observations[:, :, -1] = self._next
        arrays = (observations, actions, rewards, terminals)
        return Rollout(*(torch.from_numpy(each) for each in arrays)), payoffs / self.steps


class CandidateRules(ABC):
    """The learning of the agents of C candidates under their rules."""

    def __init__(self, initial: str) -> None:
        """``initial`` names a rule of these sizes with random weights, without the seed."""
        self._initial = initial
        self.like = drawn_rules.draw(initial, 0)
        """Arrays of the shapes of a rule"""
        self._layout = Layout({n.partition("/")[2]: a.shape for n, a in sorted(self.like.items())})

    def views(self, weights: Vectors) -> dict[str, Tensor]:
        """Return the arrays [C, ...] of the rules with the flat ``weights`` [C, D]."""
        return self.stacked(torch.tensor(weights, dtype=torch.float32))

    def stacked(self, weights: Tensor) -> dict[str, Tensor]:
        """Return the arrays [C, ...] inside flat ``weights`` [C, D]."""
        return stacked_views(self._layout, weights)

    @abstractmethod
    def learn(self, weights: dict[str, Tensor], cohort: Cohort, rollout: Rollout) -> None:
        """Update every agent once from ``rollout``."""

    def draw_initial(self, seed: int) -> Vectors:
        """Return random weights [D] for a discovery to start from."""
        return flatten_weights(drawn_rules.draw(self._initial, seed))


class LpgRules(CandidateRules):
    """LPG: the rule returns a factor for each action and a target for each prediction."""

    def __init__(self, config: Lpg) -> None:
        sizes = LpgSizes(config.predictions, config.embedding, config.hidden)
        super().__init__(_name(sizes))
        self.config = config

    def read(self, cohort: Cohort, rollout: Rollout) -> tuple[Activations, LpgOutputs]:
        """Return the agents' layers and outputs on the rollout."""
        layers = cohort.agents.forward(rollout.observations.flatten(0, 1).flatten(1, 2))
        outputs = layers.outputs.view(*rollout.observations.shape[:4], -1)
        return layers, candidate_rules.lpg_outputs(outputs, cohort.actions)

    def follow(
        self,
        cohort: Cohort,
        rollout: Rollout,
        read: tuple[Activations, LpgOutputs],
        targets: LpgTargets,
    ) -> None:
        """Move every agent towards ``targets``; ``read`` is what :meth:`read` returned."""
        layers, outputs = read
        gradient = candidate_rules.lpg_gradient(outputs, rollout, targets, self.config.weight)
        cohort.agents.descend(layers, gradient.view_as(layers.outputs))

    def learn(self, weights: dict[str, Tensor], cohort: Cohort, rollout: Rollout) -> None:
        """Make one optimiser step on the rollout."""
        read = self.read(cohort, rollout)
        inputs = candidate_rules.lpg_inputs(read[1], rollout)
        self.follow(cohort, rollout, read, candidate_rules.lpg_targets(weights, inputs))


class LpoRules(CandidateRules):
    """LPO: PPO whose clipping is replaced by a learned drift."""

    def __init__(self, config: Lpo) -> None:
        super().__init__(_name(LpoSizes(config.hidden)))
        self.config = config

    def learn(self, weights: dict[str, Tensor], cohort: Cohort, rollout: Rollout) -> None:
        """Make ``epochs`` times ``minibatches`` optimiser steps on the rollout."""
        config, actions, agents = self.config, cohort.actions, cohort.agents
        count, steps, lanes = len(agents.params), cohort.steps, cohort.lanes
        inputs = rollout.observations.flatten(0, 1).flatten(1, 2)
        outputs = agents.forward(inputs).outputs
        values = outputs[..., -1].view(count, steps + 1, lanes)
        advantages = candidate_rules.advantages(
            rollout.rewards.flatten(0, 1),
            rollout.terminals.flatten(0, 1),
            values,
            config.discount,
            config.trace,
        )
        returns = (advantages + values[:, :-1]).flatten(1)
        rows = steps * lanes
        taken = functional.one_hot(rollout.actions.view(count, rows), actions)
        before = (outputs[:, :rows, :actions].log_softmax(-1) * taken).sum(-1)
        per_candidate = cohort.candidates, cohort.each
        for _ in range(config.epochs):
            order = torch.from_numpy(cohort.streams["batch"].permutation(rows))
            for chosen in order.tensor_split(config.minibatches):
                layers = agents.forward(inputs[:, chosen])
                logs = layers.outputs[..., :actions].log_softmax(-1)
                own = taken[:, chosen]
                moved = (logs * own).sum(-1) - before[:, chosen]
                gain = _normalised(advantages.flatten(1)[:, chosen])
                drift = candidate_rules.lpo_drift_slope(
                    weights,
                    moved.view(per_candidate[0], -1),
                    gain.view(per_candidate[0], -1),
                ).view_as(gain)
                pull = (drift - moved.exp() * gain).unsqueeze(-1)
                probabilities = logs.exp()
                negative = (probabilities * logs).sum(-1, keepdim=True)
                gradient = torch.empty_like(layers.outputs)
                gradient[..., :actions] = pull * (own - probabilities)
                gradient[..., :actions] += (
                    config.entropy_coefficient * probabilities * (logs - negative)
                )
                error = layers.outputs[..., -1] - returns[:, chosen]
                gradient[..., -1] = config.value_coefficient * error
                agents.descend(layers, gradient / len(chosen))


def make_rules(config: Lpg | Lpo) -> CandidateRules:
    """Return the learning under rules of this kind."""
    return LpgRules(config) if isinstance(config, Lpg) else LpoRules(config)


@torch.no_grad()
def evaluate(
    spec: Evolution, worlds: Sequence[World], weights: Vectors, updates: int, seed: int
) -> Vectors:
    """Return the scores [C, W] of the rules ``weights`` [C, D] late in lifetimes of ``updates``.

    An agent that is no longer finite makes its candidate's score of that world NaN.
    """
    rules = make_rules(spec.rule)
    views = rules.views(weights)
    cohort = Cohort(spec, worlds, len(weights), seed)
    first = updates - max(round(updates * spec.lifetimes.late), 1)
    total = np.zeros(cohort.mix.shape[:2])
    for update in range(updates):
        rollout, payoffs = cohort.collect()
        if update >= first:
            total += payoffs
        if update + 1 < updates:
            rules.learn(views, cohort, rollout)
    rates = total / (updates - first)
    rates[cohort.agents.broken.view(rates.shape).numpy()] = np.nan
    return cohort.mix.scores(rates)


def _normalised(advantages: Tensor) -> Tensor:
    """Return ``advantages`` [N, R] with mean 0 and deviation 1 for each of N agents."""
    centred = advantages - advantages.mean(1, keepdim=True)
    return centred / (centred.square().mean(1, keepdim=True).sqrt() + EPSILON)


def _name(sizes: LpgSizes | LpoSizes) -> str:
    return drawn_rules.name_drawn(sizes).partition(":")[0]
