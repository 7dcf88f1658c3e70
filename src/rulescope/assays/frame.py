"""The records of an assay as arrays: what an analysis gets to see, and all it gets to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rulescope.errors import RulescopeError, nearest

if TYPE_CHECKING:
    from rulescope.assays.base import Cell
    from rulescope.records import Record

Label = str | float
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Frame:
    """Every lifetime of an assay along named axes; what is missing is NaN.

    The axes are those of the cells in their own order, such as (task, arm, scale), then ``seed``.
    """

    axes: Mapping[str, tuple[Label, ...]]
    """The labels along each axis, in the order of the arrays' axes (``seed`` is not among them)."""
    seeds: tuple[int, ...]
    iteration: Floats
    """[rows]: the iteration of each log row."""
    columns: Mapping[str, Floats]
    """Log columns, each [*axes, seeds, rows]."""
    states: Mapping[str, Floats]
    """Terminal states such as ``recurrent/h``, flat, each [*axes, seeds, units]."""
    iterations: int
    """Length of a lifetime."""
    interactions: int
    """Interactions of a lifetime."""
    rule: str = "disco103"
    profile: str = "published"
    """Conventions of the learner."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """[*axes]: how many lifetimes there are of each cell."""
        lived = np.isfinite(self.columns["score"]).any(axis=-1)
        counts: NDArray[np.int64] = lived.sum(axis=-1)
        return counts

    def log(self, column: str, **labels: Label) -> Floats:
        """Return a log column [..., seeds, rows]; each axis named in ``labels`` is taken there."""
        return self._at(self.columns, column, labels)

    def state(self, name: str, **labels: Label) -> Floats:
        """Return a terminal state [..., seeds, units]; as :meth:`log`."""
        return self._at(self.states, name, labels)

    def _at(self, arrays: Mapping[str, Floats], name: str, labels: Mapping[str, Label]) -> Floats:
        if name not in arrays:
            raise RulescopeError(f"no {name!r} in the frame{nearest(name, arrays)}")
        unknown = [axis for axis in labels if axis not in self.axes]
        if unknown:
            raise RulescopeError(f"no axis {unknown[0]!r}{nearest(unknown[0], self.axes)}")
        where = tuple(
            self._place(axis, labels[axis]) if axis in labels else slice(None) for axis in self.axes
        )
        return arrays[name][where]

    def _place(self, axis: str, label: Label) -> int:
        if label not in self.axes[axis]:
            known = ", ".join(str(value) for value in self.axes[axis])
            raise RulescopeError(f"no {axis} {label!r} in the frame; there are: {known}")
        return self.axes[axis].index(label)


def gather(
    cells: Sequence[Cell],
    read: Callable[[str], Record | None],
    *,
    columns: Sequence[str] = ("score", "effective_bins"),
    states: Sequence[str] = ("recurrent/h", "recurrent/c"),
    rule: str = "disco103",
    profile: str = "published",
) -> Frame:
    """Return the frame of ``cells``; ``read`` gives the record of a run id, or None.

    Cells form a full grid over their axes, with the same seeds and the same length of lifetimes.
    """
    axes: dict[str, tuple[Label, ...]] = {
        axis: tuple(dict.fromkeys(cell.labels[axis] for cell in cells)) for axis in cells[0].labels
    }
    first = cells[0].runs[0]
    seeds = tuple(run.seed for run in cells[0].runs)
    longest = max((run for cell in cells for run in cell.runs), key=lambda run: run.iterations)
    every = first.log_every
    iteration = np.arange(every, longest.iterations + 1, every, dtype=np.float64)
    shape = (*(len(values) for values in axes.values()), len(seeds))
    logs = {name: np.full((*shape, len(iteration)), np.nan) for name in columns}
    ends: dict[str, Floats] = {}
    for cell in cells:
        where = tuple(axes[axis].index(label) for axis, label in cell.labels.items())
        for turn, run in enumerate(cell.runs):
            record = read(run.id)
            if record is None:
                continue
            for name in columns:
                if name in record.log:
                    values = record.log[name]
                    logs[name][(*where, turn)][: len(values)] = values
            for name in states:
                if name in record.state:
                    flat = record.state[name].reshape(-1)
                    if name not in ends:
                        ends[name] = np.full((*shape, flat.size), np.nan)
                    ends[name][(*where, turn)] = flat
    return Frame(
        axes=axes,
        seeds=seeds,
        iteration=iteration,
        columns=logs,
        states=ends,
        iterations=longest.iterations,
        interactions=longest.iterations * longest.lanes * longest.steps,
        rule=rule,
        profile=profile,
    )
