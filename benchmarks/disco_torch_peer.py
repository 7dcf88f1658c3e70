"""The peer of Disco: disco-torch, the public PyTorch port of Disco103, with the same work.

The same agent (as a torch module), the same world, the same number of lanes, steps, trajectories in
a batch and in replay, and the same rule weights. One iteration is that of its documented
training loop: ``collect_rollout``, then ``DiscoTrainer.step``.

disco-torch is an optional dependency.
"""

from __future__ import annotations

import contextlib
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.peer_process import import_peer
from rulescope.envs.environment import Environment
from rulescope.learners.disco_config import Disco

NAME, MODULE = "disco-torch", "disco_torch"
PREDICTIONS, BINS = 600, 601
"""Widths of the predictions y, z and of the categorical values: fixed in the peer's rule."""

Carried = tuple[Tensor, Tensor]


class PeerAgent(nn.Module):
    """Our published agent as a torch module with the three methods that disco-torch requires.

    It has no recurrent state, so the state in its interface is a pair of zeros, and resets have no
    effect.
    """

    def __init__(self, inputs: int, actions: int, config: Disco) -> None:
        super().__init__()
        sizes = config.agent
        first, width = sizes.hidden
        self.actions = actions
        self.torso = nn.Sequential(
            nn.Linear(inputs, first), nn.ReLU(), nn.Linear(first, width), nn.ReLU()
        )
        self.policy = nn.Linear(width, actions)
        self.y = nn.Linear(width, PREDICTIONS)
        self.root = nn.Linear(width, sizes.model)
        self.model = nn.LSTMCell(actions, sizes.model)
        self.heads = nn.ModuleDict(
            {
                name: nn.Sequential(
                    nn.Linear(sizes.model, sizes.head), nn.ReLU(), nn.Linear(sizes.head, outputs)
                )
                for name, outputs in (("z", PREDICTIONS), ("aux_pi", actions), ("q", BINS))
            }
        )

    def init_lstm_state(self, lanes: int, device: torch.device | str = "cpu") -> Carried:
        """Return the pair of zeros, each [lanes, 1]."""
        return torch.zeros(lanes, 1, device=device), torch.zeros(lanes, 1, device=device)

    def forward_step(self, observation: Tensor, carried: Carried) -> tuple[dict[str, Tensor], Any]:
        """Evaluate one ``observation`` of every lane [N, inputs]; outputs are [N, ...]."""
        return self._outputs(observation), carried

    def forward(self, observations: Tensor, should_reset: Tensor) -> dict[str, Tensor]:
        """Evaluate ``observations`` [T, B, inputs]; outputs are [T, B, ...]."""
        del should_reset
        outputs = self._outputs(observations.flatten(0, 1))
        shape = observations.shape[:2]
        return {name: value.view(*shape, *value.shape[1:]) for name, value in outputs.items()}

    def _outputs(self, rows: Tensor) -> dict[str, Tensor]:
        """Return logits [R, A], y [R, P], z [R, A, P], aux_pi [R, A, A] and q [R, A, bins]."""
        embedding = self.torso(rows)
        cell = self.root(embedding)
        hidden, imagined = cell.tanh(), []
        for onehot in torch.eye(self.actions, device=rows.device):
            hidden, cell = self.model(onehot.expand(len(rows), -1), (hidden, cell))
            imagined.append(hidden)
        model = torch.stack(imagined, dim=1)
        outputs = {"logits": self.policy(embedding), "y": self.y(embedding)}
        return outputs | {name: head(model) for name, head in self.heads.items()}


class DiscoTorchPeer:
    """disco-torch's trainer in ``world``; :meth:`iterate` is one iteration."""

    def __init__(
        self, world: Environment, config: Disco, steps: int, weights: Path, seed: int = 0
    ) -> None:
        """Start in a fresh ``world``; ``weights`` is the npz file of the rule."""
        self._package = import_peer(NAME, MODULE)
        self._world, self._steps = world, steps
        torch.manual_seed(seed)  # the peer draws from torch's global generator
        self.agent = PeerAgent(math.prod(world.observation_shape), world.actions, config)
        # It prints to standard output, which is for our results.
        with contextlib.redirect_stdout(io.StringIO()):
            self.trainer = self._package.DiscoTrainer(
                self.agent,
                device=torch.device("cpu"),
                lr=config.learning_rate,
                replay_capacity=config.capacity,
                batch_size=config.batch,
                weights_path=str(weights),
            )
        self._discount = config.discount
        self._observation = world.reset(seed)
        self._carried = self.agent.init_lstm_state(world.lanes)

    def iterate(self) -> bool:
        """Collect and learn once; return whether the replay was large enough for an update."""
        rollout, self._observation, self._carried = self._package.collect_rollout(
            self.agent,
            self._step,
            self._observation,
            self._carried,
            rollout_len=self._steps,
            device=torch.device("cpu"),
            discount=self._discount,
        )
        return bool(self.trainer.step(rollout)["num_grad_steps_this_call"])

    def _step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        step = self._world.step(actions)
        return step.observation, step.reward, step.terminal.astype(np.float32)

    def warm_up(self, updates: int) -> None:
        """Iterate until the replay has a batch, then for ``updates`` updates.

        The cost of the peer's update does not depend on the content of its replay.
        """
        while updates > 0:
            updates -= self.iterate()
