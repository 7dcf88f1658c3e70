"""Sums and differences between the centres of cells, from common draws of seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rulescope.assays.analysis import FEWEST, missing_estimate
from rulescope.assays.frame import Floats
from rulescope.stats import (
    Estimate,
    EstimateArray,
    Statistic,
    bootstrap,
    estimate_from,
    seed_blocks,
)

DRAWS = 200_000
"""Enough for the tails of families of more than thirty."""


@dataclass(frozen=True, eq=False)
class Marginals:
    """Cells by name, and their centres in every draw; one draw of seeds serves all cells."""

    cells: Mapping[str, Floats]
    """The values [seeds] of each cell; NaN where there is none."""
    centre: Mapping[str, float]
    samples: Mapping[str, Floats]
    """[draws] of each cell."""

    @classmethod
    def of(cls, cells: Mapping[str, Floats], statistic: Statistic, draws: int = DRAWS) -> Marginals:
        """Centre ``cells`` [seeds] by ``statistic``, as they are and in every draw."""
        if not cells:
            return cls({}, {}, {})
        values = np.stack(list(cells.values()))
        drawn = common_draws(values, draws, statistic)
        centres = statistic(values)
        return cls(
            dict(cells),
            {name: float(centres[i]) for i, name in enumerate(cells)},
            {name: drawn[i] for i, name in enumerate(cells)},
        )

    def n(self, name: str) -> int:
        """Return the number of values of a cell; 0 if there is no such cell."""
        return int(np.isfinite(self.cells[name]).sum()) if name in self.cells else 0

    def level(self, name: str) -> Estimate:
        """Estimate the centre of one cell; few values get their range for an interval."""
        n = self.n(name)
        if 0 < n < FEWEST:
            values = self.cells[name]
            low, high = float(np.nanmin(values)), float(np.nanmax(values))
            return Estimate(self.centre[name], low, high, n, method="range")
        return self.contrast([name])

    def by_seed(self, plus: Sequence[str], minus: Sequence[str] = ()) -> Floats | None:
        """Return the sum of ``plus`` less ``minus`` within each seed [seeds]; None without cells.

        The contrast itself is one of centres; these values are what single seeds show.
        """
        if any(name not in self.cells for name in (*plus, *minus)):
            return None
        values: Floats = np.add.reduce([self.cells[name] for name in plus])
        for name in minus:
            values = values - self.cells[name]
        return values

    def contrast(self, plus: Sequence[str], minus: Sequence[str] = (), family: int = 1) -> Estimate:
        """Estimate the sum of the centres of ``plus`` less those of ``minus``."""
        n = min(self.n(name) for name in (*plus, *minus))
        if n == 0:
            return missing_estimate(family)
        value = sum(self.centre[name] for name in plus) - sum(self.centre[name] for name in minus)
        drawn = np.add.reduce([self.samples[name] for name in plus])
        for name in minus:
            drawn = drawn - self.samples[name]
        return estimate_from(value, drawn, n, family)


def difference_of_cells(
    cells: EstimateArray,
    here: tuple[int, ...],
    there: tuple[int, ...],
    others: EstimateArray | None = None,
) -> Estimate:
    """Estimate the difference between the centres of two cells, from common draws of seeds.

    The second cell is one of ``others``, if they are given.
    """
    others = cells if others is None else others
    first, second = (np.moveaxis(each.samples, 0, -1) for each in (cells, others))
    value = float(cells.value[here] - others.value[there])
    n = int(min(cells.n[here], others.n[there]))
    return estimate_from(value, first[here] - second[there], n)


def common_draws(values: Floats, draws: int, statistic: Statistic) -> Floats:
    """Return ``statistic`` of cells [cells, seeds] in every draw of seeds: [cells, draws].

    Which seeds are drawn matters and their order does not. Of eight seeds there are 6,435
    selections, so each is computed once however many draws there are.
    """
    n = values.shape[-1]
    blocks = seed_blocks(n, draws)
    if (n + 1) ** n > np.iinfo(np.int64).max:  # so many seeds hardly ever repeat a selection
        return bootstrap(values, blocks, statistic).T
    place = (n + 1) ** np.arange(n)  # a digit of this base counts how often a seed is drawn
    _, first, which = np.unique(place[blocks].sum(axis=1), return_index=True, return_inverse=True)
    return bootstrap(values, blocks[first], statistic).T[:, which]
