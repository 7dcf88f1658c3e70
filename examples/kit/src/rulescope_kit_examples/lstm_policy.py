"""An agent with a memory of its own: a policy that is an LSTM."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rulescope import kit
from rulescope.core import seeds
from rulescope.learners.learner import Choice, Learner, Rollout
from rulescope.learners.plugin_rule import Setup
from rulescope_kit_examples.actor_critic_loss import actor_critic_loss

Memory = tuple[Tensor, Tensor]
"""Output and cell of the LSTM: [1, N, width] each."""
NAMES = ("output", "cell")


class RecurrentNetwork(nn.Module):
    """An LSTM with a head for policy and value."""

    def __init__(self, inputs: int, width: int, actions: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width)
        self.head = nn.Linear(width, actions + 1)

    def forward(self, observations: Tensor, memory: Memory) -> tuple[Tensor, Tensor, Memory]:
        """Return logits [T, N, A], values [T, N] and the memory after [T, N, *shape]."""
        hidden, after = self.lstm(observations.flatten(2), memory)
        outputs = self.head(hidden)
        return outputs[..., :-1], outputs[..., -1], cast("Memory", after)


class LstmPolicy(Learner):
    """A2C with an LSTM, whose memory is cleared where an episode begins.

    That memory is the carrier ``agent``: it is the agent's, not the rule's, so it is not called
    ``recurrent``. It is stored in the rollout as it was before each step.
    """

    CARRIERS = ("agent", "moments", "params")
    acting_carriers = ("agent",)
    metrics = ("loss", "memory_norm")

    def __init__(self, setup: Setup) -> None:
        self.device = torch.device(setup.device)
        self.width = setup.agent.hidden[0]
        with kit.torch_random(seeds.stream(setup.seed, "network")):
            inputs = math.prod(setup.observation_shape)
            self.network = RecurrentNetwork(inputs, self.width, setup.actions)
        self.network.to(self.device)
        named = self.network.named_parameters()
        self.optimiser = torch.optim.Adam(named, setup.learning_rate)
        self.memory: dict[str, Tensor] = {}
        self._keep(self._blank(setup.lanes))
        self.streams = {"action": seeds.stream(setup.seed, "action")}
        self.carriers = {
            "agent": kit.tensors_carrier(self.memory),
            "moments": kit.optimiser_carrier(self.optimiser),
            "params": kit.module_carrier(self.network),
        }

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Sample an action for each lane's observation [N, *shape], and advance the memory."""
        before = self.memory["output"], self.memory["cell"]
        with torch.no_grad():
            logits, _, after = self.network(self._tensor(observation[None]), before)
        self._keep(after)
        stored = {name: each[0].cpu().numpy() for name, each in zip(NAMES, before, strict=True)}
        return Choice(kit.sample_actions(self.streams["action"], logits[0]), stored)

    def begin_episodes(self, began: NDArray[np.bool_]) -> None:
        """Clear the memory of the lanes [N] in which an episode begins."""
        if len(began) != self.memory["output"].shape[1]:  # an evaluation in other lanes
            self._keep(self._blank(len(began)))
        self._keep(_cleared((self.memory["output"], self.memory["cell"]), self._tensor(began)))

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Make one step on the rollout, through time, from the memory with which it began."""
        observed, ended = self._tensor(rollout.observations), self._tensor(rollout.terminals)
        first = [self._tensor(rollout.behaviour[name][:1]) for name in NAMES]
        memory: Memory = first[0], first[1]
        logits, values = [], []
        for step, lanes in enumerate(ended):
            policy, value, memory = self.network(observed[step : step + 1], memory)
            logits.append(policy)
            values.append(value)
            memory = _cleared(memory, lanes)
        with torch.no_grad():
            _, bootstrap, _ = self.network(observed[-1:], memory)
        seen = kit.see(rollout, torch.cat(logits), torch.cat([*values, bootstrap]))
        loss = actor_critic_loss(seen, seen.rewards)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), 0.5)
        self.optimiser.step()
        if not measure:
            return {}
        return {"loss": loss.item(), **self.carrier_metrics()}

    def carrier_metrics(self) -> dict[str, float]:
        """Return the norm of the agent's memory."""
        return {"memory_norm": float(torch.stack(list(self.memory.values())).norm())}

    def _keep(self, memory: Memory) -> None:
        self.memory |= dict(zip(NAMES, memory, strict=True))

    def _blank(self, lanes: int) -> Memory:
        zeros = torch.zeros(1, lanes, self.width, device=self.device)
        return zeros, zeros.clone()

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.array(array, np.float32)).to(self.device)


def _cleared(memory: Memory, began: Tensor) -> Memory:
    """Return ``memory`` with zeros in the lanes in which an episode ``began`` [N]."""
    rest = (1.0 - began)[:, None]
    return memory[0] * rest, memory[1] * rest
