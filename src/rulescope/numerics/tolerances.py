"""Comparisons of arrays with those of the original program, and their tolerances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

PRECISIONS = {"float64": ("f64", torch.float64), "float32": ("f32", torch.float32)}
"""Each precision with the suffix of its golden files and torch's name for it."""


class Comparison(NamedTuple):
    """One output against its expected value."""

    kind: str
    precision: str
    """``float32`` or ``float64``"""
    output: str
    """Its case and name, as ``case: name``."""
    absolute: float
    """Largest absolute error."""
    relative: float
    """The same, relative to the scale of the expected array."""
    tolerance: float
    """On the relative error."""
    floor: float = 0.0
    """An absolute error up to which rounding alone is the explanation."""

    @property
    def passed(self) -> bool:
        """Whether the error is within tolerance, or no more than rounding (NaN never is)."""
        return self.relative <= self.tolerance or self.rounding

    @property
    def rounding(self) -> bool:
        """Whether rounding explains the error: an array that is zero but for rounding has no
        meaningful relative error."""
        return self.absolute <= self.floor


ROUNDINGS = 16
"""Units in the last place of the largest number that rounding alone may amount to."""

TOLERANCES: dict[tuple[str, str], float] = {
    ("forward", "float64"): 1e-9,
    ("forward", "float32"): 5e-5,
    ("value estimator", "float64"): 1e-12,
    ("value interface", "float64"): 1e-9,
    ("value interface", "float32"): 1e-3,
    ("inner outputs", "float64"): 1e-9,
    ("inner outputs", "float32"): 1e-3,
    ("gradients", "float64"): 1e-9,
    ("gradients", "float32"): 2e-5,
    ("updated parameters", "float64"): 1e-9,
    ("updated parameters", "float32"): 2e-4,
    ("meta-gradient", "float64"): 1e-8,
    ("meta-gradient", "float32"): 5e-3,
    ("float32/float64", "float32"): 5e-3,
    ("rule value", "float64"): 1e-12,
    ("rule value", "float32"): 1e-6,
    ("rule gradient", "float64"): 1e-12,
    ("rule gradient", "float32"): 1e-6,
    ("rule update", "float64"): 1e-12,
    # Adam divides by the size of a gradient, so one of rounding's size moves a weight noticeably.
    ("rule update", "float32"): 5e-5,
}


ACCELERATOR_FACTOR = 10.0
"""By how much errors on another device than the CPU may be larger: its sums have another order and
its exponentials other last digits. It is chosen, not measured: no GPU was at hand."""


def widen_for(item: Comparison, device: str) -> Comparison:
    """Return ``item`` with the tolerance of ``device``."""
    if device.partition(":")[0] == "cpu":
        return item
    return item._replace(
        tolerance=ACCELERATOR_FACTOR * item.tolerance, floor=ACCELERATOR_FACTOR * item.floor
    )


def compare(
    kind: str,
    precision: str,
    output: str,
    actual: ArrayLike | Tensor,
    expected: ArrayLike | Tensor,
    scale: float | None = None,
    magnitude: float = 1.0,
) -> Comparison:
    """Compare ``actual`` with ``expected``; shapes must agree.

    In float64 an error is relative to the largest magnitude in ``expected``. In float32 it counts
    in absolute terms until that magnitude exceeds one, because cancellation in the inverse value
    transform leaves an absolute noise that small outputs inherit. ``scale`` overrides both.
    ``magnitude`` is that of the largest numbers that the output was computed from: errors of some
    units in their last place count as rounding, and pass.
    """
    ours, theirs = (np.asarray(_on_host(array), np.float64) for array in (actual, expected))
    tolerance = TOLERANCES[kind, precision]
    if ours.shape != theirs.shape:
        return Comparison(kind, precision, output, np.inf, np.inf, tolerance)
    absolute = float(np.max(np.abs(ours - theirs), initial=0.0))
    largest = float(np.max(np.abs(theirs), initial=0.0))
    if scale is None:
        scale = largest if precision == "float64" else max(largest, 1.0)
    relative = absolute / scale if scale else (0.0 if absolute == 0.0 else np.inf)
    floor = ROUNDINGS * magnitude * float(np.finfo(precision).eps)
    return Comparison(kind, precision, output, absolute, relative, tolerance, floor)


def _on_host(array: ArrayLike | Tensor) -> ArrayLike:
    """Return ``array`` in main memory."""
    return array.detach().cpu().numpy() if isinstance(array, Tensor) else array


class Summary(NamedTuple):
    """One kind of comparison as a line of a table."""

    kind: str
    precision: str
    outputs: int
    """Number of different outputs."""
    comparisons: int
    """Over all weights, starts, forms and steps."""
    absolute: float
    relative: float
    tolerance: float
    worst: str
    """Where the largest relative error was found."""
    passed: bool


def summarise(comparisons: Iterable[Comparison]) -> list[Summary]:
    """Return one line for each kind and precision, in order of first appearance."""
    groups: dict[tuple[str, str], list[Comparison]] = {}
    for item in comparisons:
        groups.setdefault((item.kind, item.precision), []).append(item)
    lines = []
    for (kind, precision), items in groups.items():
        # NaN counts as the largest error, so that it is shown. Rounding counts as the smallest,
        # because its relative error has no meaning.
        worst = max(
            items,
            key=lambda item: -1.0 if item.rounding else np.nan_to_num(item.relative, nan=np.inf),
        )
        lines.append(
            Summary(
                kind,
                precision,
                outputs=len({item.output.rpartition(": ")[2] for item in items}),
                comparisons=len(items),
                absolute=float(np.max([item.absolute for item in items])),
                relative=worst.relative,
                tolerance=items[0].tolerance,
                worst=worst.output,
                passed=all(item.passed for item in items),
            )
        )
    return lines
