"""The carrier of a ``torch.optim`` optimiser: arrays of fixed names and shapes from the start.

Most optimisers create their state in the first step. A copy of the optimiser makes one step to find
out which arrays that will be. Until then they are zeros, and the array ``started`` is False.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Optimizer

from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError, nearest
from rulescope.kit.random_draws import unchanged_torch_random
from rulescope.kit.tensor_carriers import check_content, to_array, write_array
from rulescope.learners.learner import Carrier

_WHAT = "optimiser_carrier"
_STARTED = "started"
_NO_OPTIONS = ("params", "param_names")
_NUMBERS = (bool, int, float)

State = dict[str, Any]
"""The state of one parameter: tensors and numbers by name."""


def optimiser_carrier(optimiser: Optimizer, *, carried: Sequence[str] = ()) -> Carrier:
    """Return the carrier of the state of ``optimiser``.

    Its arrays are called ``parameter.name``, such as ``0.exp_avg``; the parameter has its own name
    if the optimiser was made from ``module.named_parameters()``. The array ``started`` has an entry
    for each parameter whose state torch creates in the first step. False means that there is none
    yet; then its arrays are zeros. So a carrier of zeros is a new optimiser.

    Options such as the learning rate must not change, unless they are named in ``carried``: then
    they are arrays too, with an entry for each parameter group (float64), and can be set to zero.
    """
    state = _OptimiserState(optimiser, carried)
    return Carrier(state.get, state.set)


class _OptimiserState:
    """Reads and replaces the state of an optimiser."""

    def __init__(self, optimiser: Optimizer, carried: Sequence[str]) -> None:
        self._optimiser = optimiser
        self._options = [_options(group) for group in optimiser.param_groups]
        self._carried = _checked_carried(carried, self._options)
        self._params = _named_parameters(optimiser)
        self._like = dict(zip(self._params, _state_after_a_step(optimiser), strict=True))
        """The state of each parameter in later iterations: names, shapes and types count."""
        self._lazy = [
            name
            for name, each in self._params.items()
            if self._like[name] and not optimiser.state.get(each)
        ]
        """Parameters whose state is created in their first step."""
        self._zeros = {
            f"{name}.{key}": np.zeros_like(_to_array(name, key, value))
            for name, state in self._like.items()
            for key, value in state.items()
        }
        self._expected = {name: np.zeros_like(each) for name, each in self.get().items()}

    def get(self) -> dict[str, NDArray[Any]]:
        """Return copies of all arrays."""
        self._check_options()
        content: dict[str, NDArray[Any]] = {}
        for key in self._carried:
            values = [float(group[key]) for group in self._optimiser.param_groups]
            content[key] = np.array(values, np.float64)
        if self._lazy:
            content[_STARTED] = np.array([self._is_started(name) for name in self._lazy])
        for name, param in self._params.items():
            state = self._optimiser.state.get(param) or {}
            found = self._arrays(name, state) if state else {}
            zeros = {f"{name}.{key}": self._zeros[f"{name}.{key}"] for key in self._like[name]}
            content |= found or {key: np.array(each) for key, each in zeros.items()}
        return content

    def set(self, content: Arrays) -> None:
        """Replace the state; nothing changes if ``content`` is refused."""
        self._check_options()
        check_content(_WHAT, content, self._expected)
        started = dict(zip(self._lazy, content.get(_STARTED, np.zeros(0)), strict=True))
        for name in self._lazy:
            filled = any(np.any(content[f"{name}.{key}"]) for key in self._like[name])
            if filled and not started[name]:
                raise SpecError(
                    f"{_WHAT}: {_STARTED} is False for {name!r}, but its arrays are not zero"
                )
        for key in self._carried:
            for group, value in zip(self._optimiser.param_groups, content[key], strict=True):
                group[key] = _like_before(group[key], value)
        for name in self._params:
            if started.get(name, True):
                self._write(name, content)
            else:
                self._optimiser.state.pop(self._params[name], None)

    def _is_started(self, name: str) -> bool:
        return bool(self._optimiser.state.get(self._params[name]))

    def _arrays(self, name: str, state: State) -> dict[str, NDArray[Any]]:
        """Return the state of the parameter ``name``, which must have the expected arrays."""
        held = {key: value for key, value in state.items() if value is not None}
        found = {f"{name}.{key}": _to_array(name, key, value) for key, value in held.items()}
        zeros = {f"{name}.{key}": self._zeros[f"{name}.{key}"] for key in self._like[name]}
        check_content(f"{_WHAT}: the state is not that after one step", found, zeros)
        return {key: found[key] for key in zeros}

    def _write(self, name: str, content: Arrays) -> None:
        state = self._optimiser.state[self._params[name]] if self._like[name] else {}
        for key, like in self._like[name].items():
            values = content[f"{name}.{key}"]
            if isinstance(like, Tensor):
                if key not in state:
                    state[key] = torch.empty_like(like)
                write_array(values, state[key])
            else:
                state[key] = type(like)(values.item())

    def _check_options(self) -> None:
        """Raise :class:`SpecError` if an option has another value than at first."""
        groups = self._optimiser.param_groups
        if sum(len(group["params"]) for group in groups) != len(self._params):
            raise SpecError(f"{_WHAT}: parameters were added to the optimiser later")
        for place, (before, group) in enumerate(zip(self._options, groups, strict=True)):
            for key, value in before.items():
                if key not in self._carried and _plain(group.get(key)) != value:
                    raise SpecError(
                        f"{_WHAT}: {key} of parameter group {place} was {value} and is now "
                        f"{_plain(group.get(key))}, which would be lost in a checkpoint; name it: "
                        f"carried=({key!r},)"
                    )


def _named_parameters(optimiser: Optimizer) -> dict[str, Tensor]:
    """Return the parameters by their names, or by their numbers where they have none."""
    named: list[tuple[str, Tensor]] = []
    for group in optimiser.param_groups:
        numbers = [str(len(named) + place) for place in range(len(group["params"]))]
        named += zip(group.get("param_names") or numbers, group["params"], strict=True)
    if len(dict(named)) < len(named):
        raise SpecError(f"{_WHAT}: two parameters of the optimiser have one name")
    return dict(named)


def _state_after_a_step(optimiser: Optimizer) -> list[State]:
    """Return the state of each parameter after a step of a copy with a gradient of ones."""
    params = [each for group in optimiser.param_groups for each in group["params"]]
    clones = [each.detach().clone().requires_grad_(each.requires_grad) for each in params]
    probe = object.__new__(type(optimiser))
    # In a copy of anything that refers to them, these stand for the parameters and the optimiser.
    memo: dict[int, Any] = {id(each): clone for each, clone in zip(params, clones, strict=True)}
    memo[id(optimiser)] = probe
    kind = type(optimiser).__name__
    try:
        vars(probe).update(_copied_attributes(optimiser, memo))
        for clone in clones:
            clone.grad = torch.ones_like(clone)
        with unchanged_torch_random():
            cast("Callable[[], Any]", probe.step)()
    except Exception as fault:
        raise SpecError(
            f"{_WHAT}: a copy of {kind} cannot make a step ({type(fault).__name__}: {fault}), so "
            "the arrays of its state are not known in advance; write its carrier by hand"
        ) from fault
    return [_checked_state(kind, probe.state.get(clone) or {}) for clone in clones]


def _copied_attributes(optimiser: Optimizer, memo: dict[int, Any]) -> dict[str, Any]:
    """Return copies of the attributes, without hooks: they would act on what is no copy."""
    attributes = vars(optimiser)
    hooks = [name for name in attributes if name.startswith("_optimizer_")]
    # A scheduler replaces `step` of the instance, in order to count the calls.
    kept = {name: each for name, each in attributes.items() if name not in (*hooks, "step")}
    return copy.deepcopy(kept, memo) | {name: type(attributes[name])() for name in hooks}


def _checked_state(kind: str, state: State) -> State:
    """Return the state of one parameter without what is None, if arrays can hold it."""
    held = {key: value for key, value in state.items() if value is not None}
    for key, value in held.items():
        if not isinstance(value, (Tensor, *_NUMBERS)):
            raise SpecError(
                f"{_WHAT}: the state {key!r} of {kind} is {type(value)}, neither a tensor nor a "
                "number; write its carrier by hand"
            )
    return held


def _to_array(name: str, key: str, value: Any) -> NDArray[Any]:
    """Return an entry of the state as an array; a counter of steps is an integer."""
    found = np.array(value) if isinstance(value, _NUMBERS) else to_array(_WHAT, key, value)
    if key != "step" or found.ndim or found.dtype.kind != "f":
        return found
    if not float(found).is_integer():
        raise SpecError(f"{_WHAT}: '{name}.step' is {found}, not a number of steps")
    return found.astype(np.int64)


def _options(group: dict[str, Any]) -> dict[str, Any]:
    return {key: _plain(value) for key, value in group.items() if key not in _NO_OPTIONS}


def _plain(value: Any) -> Any:
    """Return an option as plain data, which later changes of a tensor do not reach."""
    return value.tolist() if isinstance(value, Tensor) else copy.copy(value)


def _like_before(before: Any, value: Any) -> Any:
    """Return a carried option of the type that it had; a number that was whole need not stay so."""
    if isinstance(before, Tensor):
        return torch.full_like(before, float(value))
    whole = isinstance(before, int) and float(value).is_integer()
    return int(value) if whole else float(value)


def _checked_carried(carried: Sequence[str], groups: list[dict[str, Any]]) -> tuple[str, ...]:
    if isinstance(carried, str):
        raise SpecError(f"{_WHAT}: carried must be a list of names, not {carried!r}")
    for key in carried:
        for group in groups:
            if key not in group:
                raise SpecError(f"{_WHAT}: carried: no option {key!r}{nearest(key, group)}")
            if isinstance(group[key], bool) or not isinstance(group[key], int | float):
                raise SpecError(f"{_WHAT}: carried: {key} is {group[key]!r}, not a number")
    return tuple(dict.fromkeys(carried))
