"""The base of update rules whose agent has a memory: an LSTM between the torso and the heads.

    class MyRule(RecurrentRule):
        MEMORY = 32

        def loss(self, seen, state): ...

The memory of the agent is the carrier ``agent_state``: a part of acting, not of the rule's history.
It is cleared at the ends of episodes that the learner observes. The loss is backpropagated through
the rollout, from the memory with which it began. See docs/plugins.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core.arrays import Arrays
from rulescope.core.flat_vector import Layout, Parameters, linear
from rulescope.learners.adam import array
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner import Carrier, Choice, Rollout
from rulescope.learners.torso import Evaluation, Network
from rulescope.learners.update_rule import Setup, UpdateRule

AGENT_STATE = "agent_state"
"""The carrier of the agent's memory."""


class RecurrentNetwork(Network):
    """A torso, an LSTM of H units, and linear heads on its output.

    The head of the torso is the input projection of the LSTM's four gates.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        outputs: int,
        sizes: NetworkSizes,
        units: int,
        heads: Mapping[str, int],
    ) -> None:
        super().__init__(observation_shape, 4 * units, sizes)
        self.units = units
        self.names = {name: f"out.{name}" for name in heads}
        ends = {"out": outputs, **{f"out.{name}": size for name, size in heads.items()}}
        self.layout = Layout(
            {
                **self.layout.shapes,
                "memory.w": (units, 4 * units),
                **{f"{name}.w": (units, size) for name, size in ends.items()},
                **{f"{name}.b": (size,) for name, size in ends.items()},
            }
        )

    def advance(self, params: Parameters, gates: Tensor, memory: Tensor) -> Tensor:
        """Return the memory [N, 2 H] after one step; ``gates`` [N, 4 H] are the torso's."""
        hidden, cell = memory.chunk(2, dim=1)
        enter, keep, new, leave = (gates + hidden @ params["memory.w"]).chunk(4, dim=1)
        # The 1 keeps what is remembered in a new network.
        cell = (keep + 1.0).sigmoid() * cell + enter.sigmoid() * new.tanh()
        return torch.cat([leave.sigmoid() * cell.tanh(), cell], dim=1)


class RecurrentRule(UpdateRule):
    """An :class:`UpdateRule` whose agent has an LSTM; all minibatches are whole rollouts."""

    MEMORY: int = 64
    """Units of the LSTM."""
    acting_carriers = (AGENT_STATE,)
    network: RecurrentNetwork

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        if self.MINIBATCHES != 1:
            raise self._fault("MINIBATCHES must be 1: an agent with memory needs whole rollouts")
        self._memory = self._no_memory(setup.lanes)
        self._first: Tensor | None = None
        self._ended = torch.zeros(0)
        self.carriers = {**self.carriers, AGENT_STATE: Carrier(self._get_memory, self._set_memory)}

    @classmethod
    def declared_carriers(cls) -> tuple[str, ...]:
        """Return the carriers of such a learner, known without making one."""
        found = super().declared_carriers()
        return found if AGENT_STATE in found else (*found, AGENT_STATE)

    def make_network(
        self, observation_shape: tuple[int, ...], actions: int, sizes: NetworkSizes
    ) -> RecurrentNetwork:
        """Return the network, with an LSTM of ``MEMORY`` units."""
        return RecurrentNetwork(observation_shape, actions + 1, sizes, self.MEMORY, self.HEADS)

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Sample from the policy, and advance the memory; store it as it was before."""
        if len(observation) != len(self._memory):  # another number of lanes, as in an evaluation
            self._memory = self._no_memory(len(observation))
        before = self._memory
        gates = self.evaluate(self.tensor(observation)).outputs
        self._memory = self.network.advance(self.views, gates, before)
        hidden = self._memory[:, : self.MEMORY]
        logits = array(linear(self.views, "out", hidden))[:, :-1]
        noise = self.streams["action"].gumbel(size=logits.shape)
        actions = (logits + noise).argmax(axis=1)
        return Choice(actions, {"logits": logits, "memory": array(before)})

    def begin_episodes(self, began: NDArray[np.bool_]) -> None:
        """Clear the memory of the lanes [N] in which an episode begins."""
        if len(began) != len(self._memory):
            self._memory = self._no_memory(len(began))
        self._memory = self._memory * self.tensor(1.0 - began.astype(np.float32))[:, None]

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Minimise the rule's loss on the rollout, from the memory with which it began."""
        self._first = self.tensor(rollout.behaviour["memory"][0])
        self._ended = self.tensor(rollout.terminals.astype(np.float32))
        return super().learn(rollout, measure)

    def network_outputs(
        self, params: Parameters, rows: Tensor
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the outputs of all steps, the memory being cleared after terminals."""
        assert self._first is not None
        memory, lanes = self._first, len(self._first)
        gates = Evaluation(self.network, params, rows).outputs.view(-1, lanes, 4 * self.MEMORY)
        hidden = []
        for t in range(len(gates)):
            memory = self.network.advance(params, gates[t], memory)
            hidden.append(memory[:, : self.MEMORY])
            if t < len(self._ended):
                memory = memory * (1.0 - self._ended[t])[:, None]
        remembered = torch.cat(hidden)  # [(S + 1) * N, H]
        heads = {key: linear(params, name, remembered) for key, name in self.network.names.items()}
        return linear(params, "out", remembered), heads

    def _no_memory(self, lanes: int) -> Tensor:
        return torch.zeros(lanes, 2 * self.MEMORY, device=self.device)

    def _get_memory(self) -> dict[str, NDArray[Any]]:
        hidden, cell = self._memory.chunk(2, dim=1)
        return {"hidden": array(hidden.contiguous()), "cell": array(cell.contiguous())}

    def _set_memory(self, content: Arrays) -> None:
        parts = [self.tensor(content[name]) for name in ("hidden", "cell")]
        self._memory = torch.cat(parts, dim=1)
