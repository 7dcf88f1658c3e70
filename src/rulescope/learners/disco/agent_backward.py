"""The agent with its backward pass written out: the same function as ``Agent.outputs``, faster.

Automatic differentiation would go through every action of every row. Only actions that were taken
carry a loss, so the per-action heads are followed back on those alone; gradients are written
straight into one flat vector; and one sigmoid serves all gates of the action model, because
tanh(x) = 2 sigmoid(2 x) - 1.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rulescope.core.flat_vector import Parameters, linear, write_linear
from rulescope.learners.disco.agent_network import (
    PER_ACTION_HEADS,
    Agent,
    Outputs,
)

ONE = torch.tensor(1.0)
"""The number one, which takes the type and device of what it meets. (Torch makes a tensor of every
Python number first, which takes as long as a small operation.)"""


class OutputGradients(NamedTuple):
    """The gradient of a loss at the agent's outputs."""

    logits: Tensor
    """[R, A]"""
    y: Tensor
    """[R, P]"""
    taken: Tensor
    """[V] the flat (row, action) pairs that have a gradient, each once"""
    z: Tensor
    """[V, P]"""
    aux: Tensor
    """[V, A]"""
    q: Tensor
    """[V, bins]"""


class Evaluation:
    """The agent with the named ``params`` on ``rows`` [R, *observation_shape]; builds no graph."""

    @torch.no_grad()
    def __init__(self, agent: Agent, params: Parameters, rows: Tensor) -> None:
        self._layout, self._params = agent.layout, params
        self._torso = (
            _Convolution(params, rows)
            if agent.sizes.torso == "channel"
            else _Layers(params, rows, agent.conventions.final_relu)
        )
        self._embedding = self._torso.embedding
        root = linear(params, "root", self._embedding)
        imagine = _Independent if agent.conventions.action_model == "independent" else _Chained
        self._model = imagine(agent, params, root)
        self._heads = {
            head: linear(params, f"{head}.0", self._model.hidden).relu_()
            for head in PER_ACTION_HEADS
        }
        z, aux, q = (
            linear(params, f"{head}.1", hidden).view(len(rows), agent.actions, -1)
            for head, hidden in self._heads.items()
        )
        self.logits = linear(params, "policy", self._embedding)
        """[R, A]"""
        y = linear(params, "y", self._embedding)
        # The wide softmaxes take the place of their logits: written elsewhere, they would leave
        # the cache, and the logits are not used again.
        y, z, q = (torch.softmax(head, -1, out=head) for head in (y, z, q))
        self.probabilities = Outputs(self.logits.softmax(-1), y, z, aux.softmax(-1), q)
        """The softmax of every output."""

    @torch.no_grad()
    def gradient(self, pull: OutputGradients) -> Tensor:
        """Return the gradient [size] of the parameters from the one at the outputs."""
        flat = torch.empty(self._layout.size, dtype=pull.y.dtype, device=pull.y.device)
        into = self._layout.views(flat)
        model = self._model.hidden[pull.taken]
        chosen = torch.zeros_like(model)
        for head, at_output in zip(PER_ACTION_HEADS, (pull.z, pull.aux, pull.q), strict=True):
            hidden = self._heads[head][pull.taken]
            inner = _before_relu(self._back(f"{head}.1", hidden, at_output, into), hidden)
            chosen += self._back(f"{head}.0", model, inner, into)
        at_model = torch.zeros_like(self._model.hidden).index_copy_(0, pull.taken, chosen)

        at_embedding = self._back("root", self._embedding, self._model.back(at_model, into), into)
        at_embedding += self._back("policy", self._embedding, pull.logits, into)
        at_embedding += self._back("y", self._embedding, pull.y, into)
        self._torso.back(at_embedding, into)
        return flat

    def _back(self, name: str, inputs: Tensor, at_output: Tensor, into: Parameters) -> Tensor:
        """Write a linear layer's own gradients and return the one at its ``inputs``."""
        write_linear(name, inputs, at_output, into)
        return at_output @ self._params[f"{name}.w"].T


def _before_relu(at_output: Tensor, output: Tensor) -> Tensor:
    """Return the gradient at the input of a ReLU from the one at its ``output``."""
    before: Tensor = torch.ops.aten.threshold_backward(at_output, output, 0)
    return before


class _Layers:
    """The grid torso: two linear layers."""

    def __init__(self, params: Parameters, rows: Tensor, final_relu: bool) -> None:
        self._last, self._final_relu = params["torso.1.w"], final_relu
        self._rows = rows.flatten(1)
        self._hidden = linear(params, "torso.0", self._rows).relu_()
        self.embedding = linear(params, "torso.1", self._hidden)
        """[R, width]"""
        if final_relu:
            self.embedding.relu_()

    def back(self, at_embedding: Tensor, into: Parameters) -> None:
        """Write the torso's gradients from the one at the embedding."""
        if self._final_relu:
            at_embedding = _before_relu(at_embedding, self.embedding)
        write_linear("torso.1", self._hidden, at_embedding, into)
        at_hidden = _before_relu(at_embedding @ self._last.T, self._hidden)
        write_linear("torso.0", self._rows, at_hidden, into)


class _Convolution:
    """The channel torso: a convolution and a linear layer."""

    def __init__(self, params: Parameters, rows: Tensor) -> None:
        self._last, self._kernels, self._rows = params["torso.1.w"], params["torso.conv.w"], rows
        self._maps = functional.conv2d(rows, self._kernels, params["torso.conv.b"]).relu_()
        self.embedding = linear(params, "torso.1", self._maps.flatten(1)).relu_()
        """[R, width]"""

    def back(self, at_embedding: Tensor, into: Parameters) -> None:
        """Write the torso's gradients from the one at the embedding."""
        at_embedding = _before_relu(at_embedding, self.embedding)
        write_linear("torso.1", self._maps.flatten(1), at_embedding, into)
        at_maps = (at_embedding @ self._last.T).view_as(self._maps)
        _, at_kernels, at_biases = torch.ops.aten.convolution_backward(
            _before_relu(at_maps, self._maps),
            self._rows,
            self._kernels,
            bias_sizes=[len(self._kernels)],
            stride=[1, 1],
            padding=[0, 0],
            dilation=[1, 1],
            transposed=False,
            output_padding=[0, 0],
            groups=1,
            output_mask=[False, True, True],  # the gradient at the observations is not needed
        )
        into["torso.conv.w"].copy_(at_kernels)
        into["torso.conv.b"].copy_(at_biases)


def _twice(values: Tensor) -> Tensor:
    """Double ``values`` in place (faster than a product with a Python number, and as exact)."""
    return values.add_(values)


class _Cell:
    """One step of the action model's LSTM, with what its derivative needs."""

    def __init__(self, gates: Tensor, before: Tensor) -> None:
        """``gates`` [..., 4H] are overwritten; ``before`` [..., H] is the cell to start from."""
        width = before.shape[-1]
        _twice(gates.narrow(-1, width, width))
        self.admit, half, self.forget, self.emit = gates.sigmoid_().chunk(4, dim=-1)
        self.candidate = _twice(half).sub_(ONE)
        self.before = before
        self.cell = torch.addcmul(self.forget * before, self.admit, self.candidate)
        self.tanh = _twice((self.cell + self.cell).sigmoid_()).sub_(ONE)
        self.hidden = self.emit * self.tanh

    def back(self, at_hidden: Tensor, at_cell: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the gradients at the gates [..., 4H] and at the cell before [..., H]."""
        through = at_hidden * self.emit * (ONE - self.tanh.square())
        inner = through if at_cell is None else through.add_(at_cell)
        gates = [
            inner * self.candidate * self.admit * (ONE - self.admit),
            inner * self.admit * (ONE - self.candidate.square()),
            inner * self.before * self.forget * (ONE - self.forget),
            at_hidden * self.tanh * self.emit * (ONE - self.emit),
        ]
        return torch.cat(gates, dim=-1), inner * self.forget


class _Model:
    """Base of both action models: inputs, parameters and gradient views."""

    hidden: Tensor
    """[R * A, H] the imagined outcome of each action"""

    def __init__(self, agent: Agent, params: Parameters, root: Tensor) -> None:
        self._agent, self._recurrent = agent, params["model.hidden.w"]
        self._root, self._start = root, root.tanh()
        self._inputs = agent.model_inputs(params)
        forget = slice(2 * root.shape[1], 3 * root.shape[1])
        self._inputs[:, forget] += agent.conventions.forget_bias

    def _write(self, at_inputs: Tensor, into: Parameters) -> None:
        """Write the gradients of the input weights and biases from those at the inputs [A, 4H]."""
        into["model.action.w"].copy_(at_inputs)
        for index in range(self._agent.conventions.model_biases):
            torch.sum(at_inputs, 0, out=into[f"model.b{index}"])

    def _at_root(self, at_start: Tensor, at_cell: Tensor) -> Tensor:
        return at_cell + at_start * (ONE - self._start.square())


class _Independent(_Model):
    """Every action starts from the root, so they share the recurrent product."""

    def __init__(self, agent: Agent, params: Parameters, root: Tensor) -> None:
        super().__init__(agent, params, root)
        gates = (self._start @ self._recurrent).unsqueeze(1) + self._inputs
        self._cell = _Cell(gates, root.unsqueeze(1))
        self.hidden = self._cell.hidden.flatten(0, 1)

    def back(self, at_hidden: Tensor, into: Parameters) -> Tensor:
        """Write the model's gradients; return the one at the root [R, H]."""
        gates, at_cell = self._cell.back(at_hidden.view(self._cell.hidden.shape), None)
        self._write(gates.sum(0), into)
        shared = gates.sum(1)
        torch.mm(self._start.T, shared, out=into["model.hidden.w"])
        return self._at_root(shared @ self._recurrent.T, at_cell.sum(1))


class _Chained(_Model):
    """Each action starts from the state that the action before it left."""

    def __init__(self, agent: Agent, params: Parameters, root: Tensor) -> None:
        super().__init__(agent, params, root)
        hidden, cell = self._start, root
        self._cells: list[_Cell] = []
        for action in range(agent.actions):
            gates = torch.addmm(self._inputs[action], hidden, self._recurrent)
            self._cells.append(_Cell(gates, cell))
            hidden, cell = self._cells[-1].hidden, self._cells[-1].cell
        self.hidden = torch.stack([step.hidden for step in self._cells], 1).flatten(0, 1)

    def back(self, at_hidden: Tensor, into: Parameters) -> Tensor:
        """Write the model's gradients; return the one at the root [R, H]."""
        outside = at_hidden.view(len(self._root), len(self._cells), -1).unbind(1)
        carried, at_cell = torch.zeros_like(self._root), None
        gates: list[Tensor] = []
        for step, from_heads in zip(reversed(self._cells), reversed(outside), strict=True):
            at_gates, at_cell = step.back(carried + from_heads, at_cell)
            carried = at_gates @ self._recurrent.T
            gates.insert(0, at_gates)
        self._write(torch.stack([g.sum(0) for g in gates]), into)
        starts = torch.cat([self._start, *(step.hidden for step in self._cells[:-1])])
        torch.mm(starts.T, torch.cat(gates), out=into["model.hidden.w"])
        assert at_cell is not None
        return self._at_root(carried, at_cell)
