"""Checks of rule files that are archives of named arrays, whose shapes follow from a few sizes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np

from rulescope.core.arrays import Arrays
from rulescope.core.errors import nearest

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
Sizes = TypeVar("Sizes", bound=tuple[Any, ...])
"""A ``NamedTuple`` of sizes, all with defaults."""


def find_fault(
    arrays: Arrays,
    kind: str,
    example: Sizes,
    shapes: Callable[[Sizes], Shapes],
    sizes_of: Callable[[Arrays], Sizes],
) -> str | None:
    """Return why ``arrays`` are not a rule of this ``kind``, naming the array, or None.

    ``shapes`` gives every key and shape for some sizes, ``sizes_of`` reads the sizes from arrays
    that have all keys with the right number of dimensions.
    """
    return (
        _wrong_keys(arrays, kind, shapes(example).keys())
        or _wrong_values(arrays)
        or _wrong_dimensions(arrays, shapes(example))
        or _wrong_shape(arrays, shapes(sizes_of(arrays)), sizes_of(arrays))
    )


def _wrong_keys(arrays: Arrays, kind: str, keys: Collection[str]) -> str | None:
    unknown = sorted(set(arrays) - set(keys))
    missing = sorted(set(keys) - set(arrays))
    if unknown:
        # For a file of another kind, the list of all valid keys would hide the message.
        hint = nearest(unknown[0], missing or keys).partition("; valid:")[0]
        return f"holds an array {unknown[0]!r} that no {kind} rule has{hint}{_more(unknown)}"
    if missing:
        return f"lacks the array {missing[0]!r}{_more(missing)}"
    return None


def _more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more such)" if len(names) > 1 else ""


def _wrong_values(arrays: Arrays) -> str | None:
    for key, array in arrays.items():
        if array.dtype != np.dtype(np.float32):
            return f"array {key!r} is {array.dtype}, not float32"
        if array.size == 0:
            return f"array {key!r} is empty"
        if not np.isfinite(array).all():
            return f"array {key!r} holds values that are not finite"
    return None


def _wrong_dimensions(arrays: Arrays, example: Shapes) -> str | None:
    for key, shape in example.items():
        if arrays[key].ndim != len(shape):
            return f"array {key!r} has {arrays[key].ndim} dimensions, not {len(shape)}"
    return None


def _wrong_shape(arrays: Arrays, shapes: Shapes, sizes: Any) -> str | None:
    for key, shape in shapes.items():
        if arrays[key].shape != shape:
            known = ", ".join(f"{size} {count}" for size, count in sizes._asdict().items())
            return (
                f"array {key!r} has shape {arrays[key].shape}, but the other arrays require "
                f"{shape} (sizes read from them: {known})"
            )
    return None
