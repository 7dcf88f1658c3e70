"""Losses of update rules that are written in JAX; JAX is imported when the first one is computed.

    class MyRule(UpdateRule):
        LOSS = JaxLoss(my_loss)

        def loss(self, seen, state):
            return self.LOSS(seen, state)

JAX computes the loss and its gradient at the outputs of the network, on the CPU; torch computes the
gradient of the network, and its optimiser makes the step.

The order in which XLA adds numbers depends on how many threads it has, which is by default the
number of cores. Here it has one, so that results do not depend on the machine's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rulescope.core.errors import SpecError
from rulescope.core.runtime import XLA_THREADS
from rulescope.learners.update_rule import Seen, State

Array = Any
"""A ``jax.Array``."""

_POOL = "tf_XLAEigen"
"""Name of the threads that share XLA's computations."""


class JaxSeen(NamedTuple):
    """A rollout of S steps and N lanes and the network's outputs, as arrays of JAX; time first."""

    logits: Array
    """[S, N, A] of the policy"""
    values: Array
    """[S + 1, N]: the last row is of the observation after the last action."""
    actions: Array
    """[S, N] int32"""
    rewards: Array
    """[S, N]"""
    terminals: Array
    """[S, N] 0 or 1: whether the action ended an episode."""
    before: Array
    """[S, N] log pi(action) at the time of acting."""
    observations: Array
    """[S + 1, N, *shape]"""
    heads: dict[str, Array]
    """[S + 1, N, size] by name: the outputs of the rule's ``HEADS``."""
    prepared: dict[str, Array]
    """[S, N, ...] by name: what ``UpdateRule.prepare`` returned, as constants."""

    @property
    def is_minibatch(self) -> bool:
        """Whether these are transitions in random order, and not a whole rollout."""
        return bool(self.actions.ndim == 1)

    def state_values(self) -> Array:
        """Return the values [S, N] of the observations of the actions."""
        return self.values if self.is_minibatch else self.values[:-1]

    def chosen(self) -> Array:
        """Return log pi(action) [S, N]."""
        jax = _import_jax()
        taken = jax.nn.one_hot(self.actions, self.logits.shape[-1])
        return (jax.nn.log_softmax(self.logits) * taken).sum(-1)

    def entropy(self) -> Array:
        """Return the policy's entropy [S, N]."""
        jax = _import_jax()
        logs = jax.nn.log_softmax(self.logits)
        return -(jax.numpy.exp(logs) * logs).sum(-1)

    def advantages(
        self, rewards: Array, discount: float = 0.997, trace: float = 0.95
    ) -> tuple[Array, Array]:
        """Return generalised advantages and returns, [S, N] each, as constants.

        ``rewards`` [S, N] are in the units of the values. A terminal cuts off later rewards.
        """
        if self.is_minibatch:
            raise SpecError(
                "JaxSeen.advantages needs the whole rollout; in a rule with minibatches, compute "
                "them in prepare()"
            )
        jax = _import_jax()
        rewards, values = jax.lax.stop_gradient((rewards, self.values))
        continuation = discount * (1.0 - self.terminals)
        errors = rewards + continuation * values[1:] - values[:-1]

        def step(later: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
            error, continues = now
            advantage = error + trace * continues * later
            return advantage, advantage

        last = jax.numpy.zeros_like(values[0])
        _, found = jax.lax.scan(step, last, (errors, continuation), reverse=True)
        return found, found + values[:-1]


class JaxLoss:
    """A loss in JAX, called with torch's tensors: as ``loss`` of an ``UpdateRule`` is.

    ``function(seen, state)`` gets a :class:`JaxSeen` and a dictionary of arrays. It returns a
    scalar loss and the new state, and is compiled once per process. What a call gives by name
    (weights, settings) are further arguments of the function: arrays or numbers, no gradient.
    """

    def __init__(self, function: Callable[..., tuple[Array, dict[str, Array]]]) -> None:
        self._function = function

    def __call__(self, seen: Seen, state: State, **constants: Any) -> tuple[Tensor, State]:
        """Return the loss, through which gradients flow, and the new state."""
        _refuse_wide(state)
        tree = JaxSeen(*(getattr(seen, name) for name in JaxSeen._fields))
        leaves, shape = _import_jax().tree.flatten(tree)
        free = {place: each for place, each in enumerate(leaves) if each.requires_grad}
        fixed = {place: _view(each) for place, each in enumerate(leaves) if place not in free}
        before = {name: _view(each) for name, each in state.items()}
        given = {name: _view(each) for name, each in constants.items()}
        found: list[dict[str, Array]] = []
        compute = partial(self._compute, fixed, before, given, shape)
        loss = _Call.apply(compute, found, *free, *free.values())  # type: ignore[no-untyped-call]
        [new] = found
        return loss, {name: _tensor(each, seen.logits) for name, each in new.items()}

    def _compute(
        self,
        fixed: dict[int, Any],
        state: dict[str, Any],
        constants: dict[str, Any],
        shape: Any,
        free: dict[int, Any],
    ) -> tuple[Array, dict[str, Array], dict[int, Array]]:
        """Return the loss, the new state, and the gradient at ``free``.

        ``free`` and ``fixed`` are the leaves of the tree of this ``shape``, by their places in it.
        """
        with _import_jax().default_device(_cpu()):
            (loss, new), gradient = self._compiled(free, fixed, state, constants, shape)
        return loss, new, gradient

    @cached_property
    def _compiled(self) -> Callable[..., Any]:
        jax = _import_jax()

        def evaluate(
            free: dict[int, Array],
            fixed: dict[int, Array],
            state: dict[str, Array],
            constants: dict[str, Array],
            shape: Any,
        ) -> tuple[Array, dict[str, Array]]:
            leaves = free | fixed
            seen = shape.unflatten([leaves[place] for place in range(len(leaves))])
            answer = self._function(seen, state, **constants)
            if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], dict):
                raise self._fault(f"must return (loss, state), not {type(answer)}")
            size = jax.numpy.shape(answer[0])
            if size:
                raise self._fault(f"must return a scalar loss, not one of shape {list(size)}")
            return answer

        gradient: Callable[..., Any] = jax.jit(
            jax.value_and_grad(evaluate, has_aux=True), static_argnums=4
        )
        return gradient

    def _fault(self, what: str) -> SpecError:
        name = getattr(self._function, "__qualname__", repr(self._function))
        return SpecError(f"JaxLoss: {getattr(self._function, '__module__', '')}.{name} {what}")


class _Call(torch.autograd.Function):
    """One evaluation of a loss; its gradient is computed with it."""

    @staticmethod
    def forward(
        ctx: Any,
        compute: Callable[[dict[int, Any]], tuple[Array, dict[str, Array], dict[int, Array]]],
        found: list[dict[str, Array]],
        *free: Any,
    ) -> Tensor:
        """Return the loss; append the new state to ``found``.

        ``free`` are the places of the tensors that need a gradient, and then these tensors.
        """
        places, tensors = free[: len(free) // 2], free[len(free) // 2 :]
        views = {place: _view(each) for place, each in zip(places, tensors, strict=True)}
        loss, new, gradient = compute(views)
        found.append(new)
        gradients = zip(places, tensors, strict=True)
        ctx.save_for_backward(*(_tensor(gradient[place], like) for place, like in gradients))
        return _tensor(loss, tensors[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient at the tensors: that of the loss times ``scale`` []."""
        gradients = [scale * each for each in ctx.saved_tensors]
        return (None,) * (2 + len(gradients)) + tuple(gradients)


def _view(value: Any) -> Any:
    """Return what JAX gets for a tensor; JAX itself makes 32 bits of 64."""
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


def _tensor(array: Any, like: Tensor) -> Tensor:
    """Return a copy of an array of JAX as a tensor on the device of ``like``."""
    return torch.from_numpy(np.array(array)).to(like.device)


def _refuse_wide(state: State) -> None:
    """Raise :class:`SpecError` for types that JAX would silently make narrower."""
    if _import_jax().config.jax_enable_x64:
        return
    for name, each in state.items():
        if each.dtype in (torch.float64, torch.int64):
            narrow = "float32" if each.dtype.is_floating_point else "int32"
            raise SpecError(
                f"JaxLoss: state {name!r} is {each.dtype}, which JAX holds in 32 bits; start with "
                f"torch.{narrow}"
            )


def _import_jax() -> Any:
    """Return JAX with what is used of it here."""
    try:
        jax = import_module("jax")
    except ImportError as fault:
        raise SpecError(
            f"JaxLoss: JAX is not installed ({fault}); pip install 'rulescope[jax]'"
        ) from None
    return jax


def _cpu() -> Any:
    """Return JAX's CPU, which computes in one thread."""
    global _device
    if _device is None:
        os.environ[XLA_THREADS] = "1"
        jax = _import_jax()
        if jax.config.jax_platforms is None:
            # Otherwise JAX would start on every device, and take most of the memory of a GPU.
            jax.config.update("jax_platforms", "cpu")
        _device = jax.local_devices(backend="cpu")[0]
        _require_one_thread()
    return _device


_device: Any = None


def _require_one_thread() -> None:
    """Raise :class:`SpecError` if JAX has several threads because it started before (Linux)."""
    names = (_read(path / "comm") for path in Path("/proc/self/task").glob("*"))
    count = sum(name == _POOL for name in names)
    if count > 1:
        raise SpecError(
            f"JaxLoss: JAX started in this process with {count} threads, on whose number results "
            f"depend; set {XLA_THREADS}=1 before it first computes"
        )


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:  # the thread has ended
        return ""
