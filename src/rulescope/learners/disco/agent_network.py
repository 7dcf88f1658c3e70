"""The Disco agent: a feed-forward network with five heads, as a pure function of one flat vector.

    observation -> torso -> policy logits [A], y [P]
                       \\-> root cell -> action model (one LSTM step per action)
                                            -> z [A, P], aux policy [A, A], q [A, bins]

All functions take ``rows`` of observations, [R, *observation_shape]; the agent has no memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rulescope.core import seeds
from rulescope.core.errors import SpecError
from rulescope.core.flat_vector import Layout, Parameters, linear
from rulescope.learners.disco_config import AgentSizes, Conventions

SMALL = 0.01
"""Standard deviation of the last layers that start near zero."""
PER_ACTION_HEADS = ("z", "aux", "q")


class Outputs(NamedTuple):
    """The agent's outputs for R observations; every entry is a logit."""

    logits: Tensor
    """[R, A] policy."""
    y: Tensor
    """[R, P] observation-conditioned prediction."""
    z: Tensor
    """[R, A, P] action-conditioned prediction."""
    aux: Tensor
    """[R, A, A] predicted policy one step later, for each action."""
    q: Tensor
    """[R, A, bins] categorical action value."""


class Agent:
    """Shapes and functions of the agent; the parameters are passed in, never kept."""

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        actions: int,
        predictions: int,
        bins: int,
        sizes: AgentSizes,
        conventions: Conventions,
    ) -> None:
        if sizes.torso == "channel" and (
            len(observation_shape) != 3 or min(observation_shape[1:]) < 3
        ):
            raise SpecError(
                "learner.agent.torso: 'channel' needs observations [channels, height, width] of at "
                f"least 3x3, this world gives {list(observation_shape)}; use 'grid'"
            )
        self.observation_shape = observation_shape
        self.actions = actions
        self.sizes = sizes
        self.conventions = conventions
        self.layout = Layout(self._shapes(predictions, bins))

    def _shapes(self, predictions: int, bins: int) -> dict[str, tuple[int, ...]]:
        """List every parameter; weights are [inputs, outputs], LSTM gates in order i, g, f, o."""
        sizes, actions = self.sizes, self.actions
        first, width = sizes.hidden
        shapes: dict[str, tuple[int, ...]] = {}

        def linear(name: str, inputs: int, outputs: int) -> None:
            shapes[f"{name}.w"] = (inputs, outputs)
            shapes[f"{name}.b"] = (outputs,)

        if sizes.torso == "channel":
            channels, height, breadth = self.observation_shape
            shapes["torso.conv.w"] = (sizes.channels, channels, 3, 3)
            shapes["torso.conv.b"] = (sizes.channels,)
            linear("torso.1", sizes.channels * (height - 2) * (breadth - 2), width)
        else:
            linear("torso.0", math.prod(self.observation_shape), first)
            linear("torso.1", first, width)
        linear("policy", width, actions)
        linear("y", width, predictions)
        linear("root", width, sizes.model)
        shapes["model.action.w"] = (actions, 4 * sizes.model)
        shapes["model.hidden.w"] = (sizes.model, 4 * sizes.model)
        for index in range(self.conventions.model_biases):
            shapes[f"model.b{index}"] = (4 * sizes.model,)
        for head, outputs in zip(PER_ACTION_HEADS, (predictions, actions, bins), strict=True):
            linear(f"{head}.0", sizes.model, sizes.head)
            linear(f"{head}.1", sizes.head, outputs)
        return shapes

    def initial(self, seed: int) -> Tensor:
        """Draw fresh parameters [size] float32 for the lifetime with this ``seed``."""
        shapes = self.layout.shapes
        return self.layout.flatten(
            {name: self._draw(name, shape, seed) for name, shape in shapes.items()}
        )

    def _draw(self, name: str, shape: tuple[int, ...], seed: int) -> Tensor:
        rng = seeds.stream(seed, "agent", name)
        layer, _, kind = name.rpartition(".")
        bias = kind.startswith("b")
        torch_like = self.conventions.hidden_init == "torch-uniform"
        if layer in self._small_heads():
            draw = seeds.normal if torch_like else seeds.truncated_normal
            values = draw(rng, shape, 0.0 if bias else SMALL)
        elif torch_like:
            values = seeds.uniform(rng, shape, self._fan_in(layer, torch_like))
        else:
            std = 0.0 if bias else 1.0 / math.sqrt(self._fan_in(layer, torch_like))
            values = seeds.truncated_normal(rng, shape, std)
        return torch.tensor(values, dtype=torch.float32)

    def _small_heads(self) -> tuple[str, ...]:
        first = ("policy", "y")
        last = tuple(f"{head}.1" for head in PER_ACTION_HEADS)
        return first + last if self.conventions.head_init == "all-small" else first

    def _fan_in(self, layer: str, torch_like: bool) -> int:
        """Inputs of ``layer``; PyTorch scales every array of an LSTM by its hidden size instead."""
        if layer.startswith("model"):
            return self.sizes.model + (0 if torch_like else self.actions)
        weight = self.layout.shapes[f"{layer}.w"]
        return math.prod(weight[1:]) if layer == "torso.conv" else weight[0]

    def embed(self, params: Parameters, rows: Tensor) -> Tensor:
        """Return the torso's embedding [R, width] of ``rows`` [R, *observation_shape]."""
        if self.sizes.torso == "channel":
            maps = functional.conv2d(rows, params["torso.conv.w"], params["torso.conv.b"])
            return linear(params, "torso.1", maps.relu_().flatten(1)).relu_()
        hidden = linear(params, "torso.0", rows.flatten(1)).relu_()
        embedding = linear(params, "torso.1", hidden)
        return embedding.relu_() if self.conventions.final_relu else embedding

    def policy(self, params: Parameters, rows: Tensor) -> Tensor:
        """Return the policy logits [R, A] alone: all that acting needs."""
        return linear(params, "policy", self.embed(params, rows))

    def outputs(self, params: Parameters, rows: Tensor) -> Outputs:
        """Evaluate every head on ``rows`` [R, *observation_shape]."""
        embedding = self.embed(params, rows)
        model = self._action_model(params, linear(params, "root", embedding))
        z, aux, q = (
            linear(params, f"{head}.1", linear(params, f"{head}.0", model).relu())
            for head in PER_ACTION_HEADS
        )
        per_action = (rows.shape[0], self.actions, -1)
        return Outputs(
            logits=linear(params, "policy", embedding),
            y=linear(params, "y", embedding),
            z=z.view(per_action),
            aux=aux.view(per_action),
            q=q.view(per_action),
        )

    def model_inputs(self, params: Parameters) -> Tensor:
        """Return what each action adds to the gates of the action model, [A, 4H]."""
        biases = [params[f"model.b{i}"] for i in range(self.conventions.model_biases)]
        return params["model.action.w"] + sum(biases)  # a one-hot input picks a row

    def _action_model(self, params: Parameters, root: Tensor) -> Tensor:
        """Imagine each action by one LSTM step from ``root`` [R, H]; return hidden [R * A, H]."""
        inputs, recurrent = self.model_inputs(params), params["model.hidden.w"]
        if self.conventions.action_model == "independent":
            gates = (root.tanh() @ recurrent).unsqueeze(1) + inputs
            return self._cell(gates, root.unsqueeze(1))[0].flatten(0, 1)
        hidden, cell, imagined = root.tanh(), root, []
        for action in range(self.actions):
            gates = torch.addmm(inputs[action], hidden, recurrent)
            hidden, cell = self._cell(gates, cell)
            imagined.append(hidden)
        return torch.stack(imagined, dim=1).flatten(0, 1)

    def _cell(self, gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """Apply the LSTM nonlinearity to ``gates`` [..., 4H]; return (hidden, cell)."""
        admit, candidate, forget, emit = gates.chunk(4, dim=-1)
        forget = forget + self.conventions.forget_bias if self.conventions.forget_bias else forget
        cell = forget.sigmoid() * cell + admit.sigmoid() * candidate.tanh()
        return emit.sigmoid() * cell.tanh(), cell
