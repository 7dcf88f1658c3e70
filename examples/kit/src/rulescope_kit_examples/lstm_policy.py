"""An agent with a memory of its own: a policy that is an LSTM."""

from __future__ import annotations

import math
from typing import cast

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
    """A2C with an LSTM, whose memory runs through the whole lifetime, across episodes.

    That memory is the carrier ``agent``: it is the agent's, not the rule's, so it is not called
    ``recurrent``. A carrier changes only in :meth:`learn`. Inside a rollout :meth:`act` continues
    from a copy, and :meth:`learn` computes the memory after the rollout from its observations.
    """

    HISTORY = ("agent",)
    CARRIERS = ("agent", "moments", "params")
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
        self.memory = dict(zip(("output", "cell"), self._blank(setup.lanes), strict=True))
        self.while_acting: Memory | None = None
        self.streams = {"action": seeds.stream(setup.seed, "action")}
        self.carriers = {
            "agent": kit.tensors_carrier(self.memory),
            "moments": kit.optimiser_carrier(self.optimiser),
            "params": kit.module_carrier(self.network),
        }

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Sample an action for each lane's observation [N, *shape]."""
        lanes = len(observation)
        memory = self.while_acting or self._start()
        if memory[0].shape[1] != lanes:  # an evaluation in more lanes
            memory = self._blank(lanes)
        with torch.no_grad():
            logits, _, self.while_acting = self.network(self._tensor(observation[None]), memory)
        return Choice(kit.sample_actions(self.streams["action"], logits[0]), {})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Make one step on the rollout, through time; then take over the memory after it."""
        observed = self._tensor(rollout.observations)
        logits, values, after = self.network(observed[:-1], self._start())
        with torch.no_grad():  # the last observation is the first one of the next rollout
            _, bootstrap, _ = self.network(observed[-1:], after)
        seen = kit.see(rollout, logits, torch.cat([values, bootstrap]))
        loss = actor_critic_loss(seen, seen.rewards)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), 0.5)
        self.optimiser.step()
        self.memory |= {"output": after[0].detach(), "cell": after[1].detach()}
        self.while_acting = None
        if not measure:
            return {}
        return {"loss": loss.item(), **self.carrier_metrics()}

    def carrier_metrics(self) -> dict[str, float]:
        """Return the norm of the agent's memory."""
        return {"memory_norm": float(torch.stack(self._start()).norm())}

    def _start(self) -> Memory:
        return self.memory["output"], self.memory["cell"]

    def _blank(self, lanes: int) -> Memory:
        zeros = torch.zeros(1, lanes, self.width, device=self.device)
        return zeros, zeros.clone()

    def _tensor(self, array: NDArray[np.float32]) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self.device)
