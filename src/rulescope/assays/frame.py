"""The records of an assay as arrays: what an analysis gets to see, and all it gets to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from rulescope.errors import RulescopeError, nearest

if TYPE_CHECKING:
    from rulescope.assays.base import Cell
    from rulescope.records import Record

Label = str | float
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


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
    """Length of the longest lifetime."""
    interactions: int
    """Interactions of the longest lifetime."""
    lived: Bools
    """[*axes, seeds]: which lifetimes there are."""
    planned: Bools
    """[*axes, seeds]: which there should be; a grid may have holes, and cells of fewer seeds."""
    lengths: NDArray[np.int64]
    """[*axes]: iterations of a lifetime in each cell; 0 where none is planned."""
    rule: str = "disco103"
    profile: str = "published"
    """Conventions of the learner."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """[*axes]: how many lifetimes there are of each cell."""
        counts: NDArray[np.int64] = self.lived.sum(axis=-1)
        return counts

    def part(self, **labels: Label) -> Frame:
        """Return the lifetimes at ``labels``, without those axes and without rows after their end.

        What remains must be of one length.
        """
        lengths = self._at(self.lengths, labels)
        longest = int(lengths.max(initial=0))
        if not np.isin(lengths, (0, longest)).all():
            raise RulescopeError(f"lifetimes at {dict(labels)} differ in length")
        rows = self.iteration <= longest
        return replace(
            self,
            axes={axis: values for axis, values in self.axes.items() if axis not in labels},
            iteration=self.iteration[rows],
            columns={
                name: self._at(values, labels)[..., rows] for name, values in self.columns.items()
            },
            states={name: self._at(values, labels) for name, values in self.states.items()},
            iterations=longest,
            interactions=self.interactions * longest // max(self.iterations, 1),
            lived=self._at(self.lived, labels),
            planned=self._at(self.planned, labels),
            lengths=lengths,
        )

    def log(self, column: str, **labels: Label) -> Floats:
        """Return a log column [..., seeds, rows]; each axis named in ``labels`` is taken there."""
        return self._at(_named(self.columns, column), labels)

    def state(self, name: str, **labels: Label) -> Floats:
        """Return a terminal state [..., seeds, units]; as :meth:`log`."""
        return self._at(_named(self.states, name), labels)

    def _at(self, array: NDArray[T], labels: Mapping[str, Label]) -> NDArray[T]:
        unknown = [axis for axis in labels if axis not in self.axes]
        if unknown:
            raise RulescopeError(f"no axis {unknown[0]!r}{nearest(unknown[0], self.axes)}")
        where = tuple(
            self._place(axis, labels[axis]) if axis in labels else slice(None) for axis in self.axes
        )
        part: NDArray[T] = array[where]
        return part

    def _place(self, axis: str, label: Label) -> int:
        if label not in self.axes[axis]:
            known = ", ".join(str(value) for value in self.axes[axis])
            raise RulescopeError(f"no {axis} {label!r} in the frame; there are: {known}")
        return self.axes[axis].index(label)


def _named(arrays: Mapping[str, Floats], name: str) -> Floats:
    if name not in arrays:
        raise RulescopeError(f"no {name!r} in the frame{nearest(name, arrays)}")
    return arrays[name]


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

    Cells share their axes and the interval of the log. They need not fill the grid, and may differ
    in their seeds and in the length of their lifetimes.
    """
    axes: dict[str, tuple[Label, ...]] = {
        axis: tuple(dict.fromkeys(cell.labels[axis] for cell in cells)) for axis in cells[0].labels
    }
    runs = [run for cell in cells for run in cell.runs]
    seeds = tuple(sorted({run.seed for run in runs}))
    longest = max(runs, key=lambda run: run.iterations)
    every = longest.log_every
    iteration = np.arange(every, longest.iterations + 1, every, dtype=np.float64)
    grid = tuple(len(values) for values in axes.values())
    shape = (*grid, len(seeds))
    logs = {name: np.full((*shape, len(iteration)), np.nan) for name in columns}
    ends: dict[str, Floats] = {}
    lived, planned = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    lengths = np.zeros(grid, dtype=np.int64)
    for cell in cells:
        where = tuple(axes[axis].index(label) for axis, label in cell.labels.items())
        lengths[where] = cell.runs[0].iterations
        for run in cell.runs:
            place = (*where, seeds.index(run.seed))
            planned[place] = True
            record = read(run.id)
            if record is None:
                continue
            lived[place] = True
            for name in columns:
                if name in record.log:
                    values = record.log[name]
                    logs[name][place][: len(values)] = values
            for name in states:
                if name in record.state:
                    flat = record.state[name].reshape(-1)
                    if name not in ends:
                        ends[name] = np.full((*shape, flat.size), np.nan)
                    ends[name][place] = flat
    return Frame(
        axes=axes,
        seeds=seeds,
        iteration=iteration,
        columns=logs,
        states=ends,
        iterations=longest.iterations,
        interactions=longest.interactions,
        lived=lived,
        planned=planned,
        lengths=lengths,
        rule=rule,
        profile=profile,
    )
