"""Continual Backprop (Dohare et al., 2024): PPO whose least useful hidden units are replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor

from rulescope.core import seeds
from rulescope.core.flat_vector import Parameters
from rulescope.core.structs import Decay, Fraction, Frozen
from rulescope.learners.torso import Evaluation
from rulescope.learners.update_rule import Seen, Setup, State, UpdateRule


class ContinualBackprop(UpdateRule):
    """Its history is the age and the utility of each hidden unit.

    Pinned, none is replaced if ``maturity`` is at least the 16 steps of an iteration.
    """

    class Options(Frozen, frozen=True):
        """What a run can set, as in ``--option rate=1e-3``."""

        rate: Fraction = 1e-4
        maturity: Annotated[int, Meta(ge=0)] = 1000
        decay: Decay = 0.99

    LEARNING_RATE = 3e-4
    EPOCHS = 4
    MINIBATCHES = 4
    STEPWISE = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.streams["replacement"] = seeds.stream(setup.seed, "replacement")
        self.after_step.append(self.replace_units)

    def start(self) -> State:
        """Return ages and utilities of zero."""
        layers = enumerate(self.network.hidden_layers(self.views))
        names = [(f"{what}.{k}", layer.units) for k, layer in layers for what in ("age", "utility")]
        return {name: torch.zeros(units) for name, units in names}

    def prepare(self, seen: Seen, state: State) -> Mapping[str, Tensor]:  # noqa: ARG002
        """Return advantages and returns, which stay the same in all passes."""
        advantages, returns = seen.advantages(seen.rewards)
        return {"advantages": advantages, "returns": returns}

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return the loss of PPO; the history changes after the step."""
        advantages = seen.prepared["advantages"]
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        ratio = (seen.chosen() - seen.before).exp()
        policy = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        value = (seen.state_values() - seen.prepared["returns"]).square().mean()
        return policy + 0.5 * value - 0.01 * seen.entropy().mean(), state

    def network_outputs(
        self, params: Parameters, rows: Tensor
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the network's outputs for ``rows``; the activations behind them are remembered."""
        evaluation = Evaluation(self.network, params, rows)
        self.activations = [each.detach() for each in evaluation.hidden(len(rows))]
        return evaluation.outputs, {}

    def replace_units(self) -> None:
        """Replace a small share of the mature units, those of least utility, after a step."""
        state = self.carriers["recurrent"].get()
        rng, options = self.streams["replacement"], self.setup.options
        layers, due = self.network.hidden_layers(self.views), []
        for k, (layer, active) in enumerate(zip(layers, self.activations, strict=True)):
            age, utility = state[f"age.{k}"], state[f"utility.{k}"]
            contribution = (layer.outgoing.abs().mean(2) * active.abs().mean(0)).mean(0)
            age += 1
            utility += (1.0 - options.decay) * (contribution.cpu().numpy() - utility)
            mature = np.flatnonzero(age > options.maturity)
            count = options.rate * len(mature)
            if 0.0 < count < 1.0:
                count = rng.random() <= count
            rank = utility[mature] / (1.0 - options.decay ** age[mature])
            due.append(mature[rank.argsort(kind="stable")[: int(count)]])
        for k, (layer, units) in enumerate(zip(layers, due, strict=True)):
            inputs = len(layer.incoming)
            fresh = rng.uniform(-1.0, 1.0, size=(len(units), inputs)) * (3.0 / inputs) ** 0.5
            layer.incoming[:, units] = torch.from_numpy(fresh.T).to(layer.incoming)
            layer.bias[units] = 0.0
            layer.outgoing[:, units] = 0.0
            state[f"age.{k}"][units] = state[f"utility.{k}"][units] = 0.0
        self.carriers["recurrent"].set(state)
