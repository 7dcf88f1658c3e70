"""A fake GPU: tensors on a device of their own, called ``meta``, that compute on the processor.

(Torch's own tensors of that name have shapes but no values; these have values.) It has the rules
of a GPU that matter here: an operation on tensors of two devices is an error, and so is ``numpy()``
without ``cpu()``. It says nothing about the arithmetic, the operations or the speed of a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("meta")
COPIES = ("copy_", "_to_copy")
"""Operations that may read one device and write another."""


INDEXING = ("index", "index_put_")
"""Operations whose indices may be in main memory, as with a GPU."""


class GpuTensor(torch.Tensor):
    """A tensor on the fake GPU."""

    inner: torch.Tensor  # type: ignore[assignment]
    """Its values, in main memory."""

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> GpuTensor:
        made: GpuTensor = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=DEVICE,
        )
        made.inner = inner
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"GpuTensor({self.inner!r})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return _compute(func, args, kwargs or {})


def _compute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an operation with the values of its tensors; its results are where they belong."""
    name = func.overloadpacket.__name__
    given = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    on_gpu = [x for x in given if isinstance(x, GpuTensor)]
    if name not in COPIES and on_gpu:
        # As with a GPU, a single number may be in main memory.
        foreign = [x for x in given if not isinstance(x, GpuTensor) and x.ndim]
        if name in INDEXING and isinstance(args[0], GpuTensor):
            foreign = []
        if foreign:
            raise RuntimeError(
                f"{name}: one tensor on the fake GPU, another on {foreign[0].device}"
            )
    asked = kwargs.get("device")
    if name == "copy_":
        to_gpu = isinstance(args[0], GpuTensor)
    else:
        to_gpu = bool(on_gpu) if asked is None else torch.device(asked) == DEVICE
    if asked is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    values = pytree.tree_map_only(GpuTensor, lambda x: x.inner, (args, kwargs))
    with torch.inference_mode(False):  # a wrapper must not be a tensor of that mode
        found = func(*values[0], **values[1])
        known = {id(x.inner): x for x in on_gpu}
        if not to_gpu:
            return found

        def wrapped(x: torch.Tensor) -> torch.Tensor:
            return known[id(x)] if id(x) in known else GpuTensor(x)  # known: changed in place

        return pytree.tree_map_only(torch.Tensor, wrapped, found)


class _Operations(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sends operations that ask for the fake GPU there."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        used = any(isinstance(x, GpuTensor) for x in pytree.tree_leaves((args, kwargs)))
        if used or kwargs.get("device") == DEVICE:
            return _compute(func, args, kwargs)
        return func(*args, **kwargs)


class _Constructors(TorchFunctionMode):
    """Makes tensors from Python values there, and refuses generators of another device."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        asked, generator = kwargs.get("device"), kwargs.get("generator")
        there = asked is not None and torch.device(asked) == DEVICE
        if there and generator is not None:
            raise RuntimeError(f"a generator of {generator.device} for a tensor on the fake GPU")
        if func is torch.Tensor.to and args[0].device != DEVICE and args[1] in (DEVICE, "meta"):
            with torch.inference_mode(False):
                return GpuTensor(args[0].detach().clone())
        if func is torch.tensor and there:
            return torch.tensor(*args, **(kwargs | {"device": "cpu"})).to(DEVICE)
        if func is torch.Tensor.new_tensor and args[0].device == DEVICE:
            return torch.tensor(args[1], dtype=args[0].dtype).to(DEVICE)
        return func(*args, **kwargs)


@contextmanager
def fake_gpu() -> Iterator[str]:
    """Give torch a fake GPU; yield its name."""
    with _Operations(), _Constructors():  # type: ignore[no-untyped-call]
        yield str(DEVICE)
