"""Carriers of tensors: those of a dictionary, of a torch module, or of several carriers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from rulescope.core.arrays import Arrays, prefix_names, unprefix
from rulescope.core.errors import SpecError, nearest
from rulescope.learners.adam import array, write
from rulescope.learners.learner import Carrier

_NARROW = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
"""Types that NumPy does not have. Their arrays are float32, which holds all their values."""
_KINDS = "biuf"
"""Kinds of arrays that records can hold."""


def tensors_carrier(tensors: Mapping[str, Tensor]) -> Carrier:
    """Return the carrier of ``tensors``, which are read by name at every call.

    A learner may assign new tensors to the dictionary, of the same shapes and types. ``set`` writes
    into the tensors that are there.
    """
    return _live_carrier("tensors_carrier", lambda: tensors)


def module_carrier(module: nn.Module, names: Sequence[str] | None = None) -> Carrier:
    """Return the carrier of the parameters and buffers of ``module``, by their names.

    ``names`` selects some of them: parameters, buffers, or submodules with all they hold. A tensor
    that two names share is one array, under the first of the two.
    """
    for name, part in module.named_modules():
        if type(part).get_extra_state is not nn.Module.get_extra_state:
            raise SpecError(
                f"module_carrier: {name or 'the module'} has a state that is not in tensors "
                "(it defines get_extra_state); write its carrier by hand"
            )
    chosen = _select(list(_named_tensors(module)), names)

    def current() -> dict[str, Tensor]:
        found = _named_tensors(module)
        return {name: found[name] for name in chosen if name in found}

    return _live_carrier("module_carrier", current)


def join_carriers(carriers: Mapping[str, Carrier]) -> Carrier:
    """Return one carrier of all arrays of ``carriers``, named ``carrier/array``."""
    parts = dict(carriers)

    def read() -> dict[str, NDArray[Any]]:
        return prefix_names({name: each.get() for name, each in parts.items()})

    def replace(content: Arrays) -> None:
        unknown = sorted({name.partition("/")[0] for name in content} - parts.keys())
        if unknown:
            raise SpecError(f"join_carriers: no part {unknown[0]!r}{nearest(unknown[0], parts)}")
        before = read()
        try:
            for name, each in parts.items():
                each.set(unprefix(name, content))
        except BaseException:  # all parts or none
            for name, each in parts.items():
                each.set(unprefix(name, before))
            raise

    for name in parts:
        if not name or "/" in name:
            raise SpecError(f"join_carriers: {name!r} is not a name without '/'")
    return Carrier(read, replace)


def to_array(what: str, name: str, tensor: Any) -> NDArray[Any]:
    """Return a copy of a tensor as an array; ``what`` and ``name`` are for the error message."""
    if not isinstance(tensor, Tensor):
        raise SpecError(f"{what}: {name!r} is {type(tensor)}, not a tensor")
    if is_lazy(tensor):
        raise SpecError(f"{what}: {name!r} has no shape yet; evaluate the lazy module once before")
    if tensor.layout != torch.strided:
        raise SpecError(f"{what}: {name!r} is sparse, which an array cannot hold")
    tensor = tensor.detach()
    found = array(tensor.float() if tensor.dtype in _NARROW else tensor)
    if found.dtype.kind not in _KINDS:
        raise SpecError(f"{what}: {name!r} is {found.dtype}, which a record cannot hold")
    return found


def write_array(values: NDArray[Any], into: Tensor) -> None:
    """Copy ``values`` into a tensor, which may be a parameter."""
    with torch.no_grad():
        write(values, into)


def check_content(what: str, content: Arrays, expected: Arrays) -> None:
    """Raise :class:`SpecError` unless ``content`` has the names, shapes and types ``expected``."""
    for name in content:
        if name not in expected:
            raise SpecError(f"{what}: no array {name!r}{nearest(name, expected)}")
    for name, like in expected.items():
        if name not in content:
            raise SpecError(f"{what}: the array {name!r} is missing")
        given = np.asarray(content[name])
        if (given.shape, given.dtype) != (like.shape, like.dtype):
            raise SpecError(f"{what}: {name!r} is {_describe(given)} and must be {_describe(like)}")


def _describe(array: NDArray[Any]) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _live_carrier(what: str, current: Callable[[], Mapping[str, Tensor]]) -> Carrier:
    """Return the carrier of the tensors that ``current`` returns, now and at every call."""

    def read() -> dict[str, NDArray[Any]]:
        tensors = current()
        return {name: to_array(what, name, each) for name, each in tensors.items()}

    initial = read()
    for name in initial:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise SpecError(f"{what}: {name!r} is not a name for an array")

    def checked_read() -> dict[str, NDArray[Any]]:
        content = read()
        check_content(f"{what}: it changed since the learner was made", content, initial)
        return {name: content[name] for name in initial}

    def replace(content: Arrays) -> None:
        check_content(what, content, checked_read())
        for name, each in current().items():
            write_array(content[name], each)

    return Carrier(checked_read, replace)


def _named_tensors(module: nn.Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _select(every: list[str], names: Sequence[str] | None) -> list[str]:
    """Return the names in ``every`` that are in ``names``, or below one of them."""
    if names is None:
        return every
    if isinstance(names, str):
        raise SpecError(f"module_carrier: names must be a list of names, not {names!r}")
    for name in names:
        if not any(each == name or each.startswith(f"{name}.") for each in every):
            raise SpecError(f"module_carrier: names: no {name!r}{nearest(name, every)}")
    return [
        each for each in every if any(each == name or each.startswith(f"{name}.") for name in names)
    ]
