"""Frames made of given scores, and plain re-implementations to check analyses against."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.estimates import Label
from rulescope.assays.frame import Floats, Frame
from rulescope.render.arm_styles import arm_name
from rulescope.render.display_names import canonical_arm

Axes = Mapping[str, tuple[Label, ...]]


def constant_frame(
    axes: Axes,
    values: Floats,
    *,
    iterations: int = 2000,
    states: Mapping[str, Floats] | None = None,
    bins: Floats | None = None,
) -> Frame:
    """Return lifetimes whose log says ``values`` [*axes, seeds] in every row."""
    iteration = np.arange(20.0, iterations + 1, 20.0)

    def column(array: Floats) -> Floats:
        return np.repeat(array[..., np.newaxis], len(iteration), axis=-1)

    columns = {"score": column(values)}
    if bins is not None:
        columns["effective_bins"] = column(bins)
    return Frame(
        axes=axes,
        seeds=tuple(range(values.shape[-1])),
        iteration=iteration,
        columns=columns,
        states=states or {},
        iterations=iterations,
        interactions=58 * iterations,
        completed=(completed := np.isfinite(values)),
        planned=np.ones_like(completed),
        lengths=np.full(values.shape[:-1], iterations),
    )


def axes_of(assay: Assay, budget: Budget) -> Axes:
    cells = assay.grid(budget)
    return {
        axis: tuple(dict.fromkeys(cell.labels[axis] for cell in cells)) for axis in cells[0].labels
    }


def our_name(printed: object) -> str:
    """Return how we print an arm that is printed so: by its name, the rule by its own."""
    name = arm_name(canonical_arm(str(printed)), "Disco103")
    return re.sub(r"\b[dD]isco\b", "Disco103", name)


def trim(values: Iterable[float]) -> float:
    ordered = sorted(values)
    n = len(ordered)
    kept = ordered if n < 4 else ordered[n // 4 : math.ceil(3 * n / 4)]
    return sum(kept) / len(kept)


def drawn_seeds(n: int, draws: int = 10_000) -> Iterator[list[int]]:
    generator = np.random.Generator(np.random.PCG64(20260920))
    yield from generator.integers(0, n, size=(draws, n)).tolist()


def bounds(samples: Sequence[float], family: int = 1) -> tuple[float, float]:
    tail = 0.05 / (2 * family)
    low, high = np.quantile(samples, [tail, 1 - tail])
    return float(low), float(high)


def widest(scales: Sequence[float], curve: Sequence[float], threshold: float) -> float:
    """Return the width of the widest window, by trying all of them."""
    found = [
        math.log10(scales[j] / scales[i])
        for i in range(len(scales))
        for j in range(i, len(scales))
        if all(score >= threshold for score in curve[i : j + 1])
    ]
    return max(found, default=0.0)
