"""The records of an assay as arrays along named axes, from which analyses are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.estimates import Label
from rulescope.assays.grid import Cell
from rulescope.core.errors import RulescopeError, nearest
from rulescope.learners.disco_config import Disco
from rulescope.learners.further_config import Dpo, Lpg, Lpo
from rulescope.learners.learner_config import Plugin
from rulescope.learners.open_config import Open
from rulescope.render.display_names import subject_name

if TYPE_CHECKING:
    from rulescope.envs.world_references import WorldReferences
    from rulescope.learners.learner_config import LearnerSpec
    from rulescope.records import Record
    from rulescope.run_spec import RunSpec

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Frame:
    """The lifetimes of an assay along named axes; values of missing ones are NaN.

    The axes are those of the cells in their own order, such as (task, arm, scale), then ``seed``.
    """

    axes: Mapping[str, tuple[Label, ...]]
    """The labels along each axis, in the order of the arrays' axes (``seed`` is not among them)."""
    seeds: tuple[int, ...]
    iteration: Floats
    """[rows]: the iterations of all log rows, of any cell."""
    columns: Mapping[str, Floats]
    """Log columns, each [*axes, seeds, rows]."""
    states: Mapping[str, Floats]
    """Terminal states such as ``recurrent/h``, flat, each [*axes, seeds, units]."""
    iterations: int
    """Length of the longest lifetime."""
    interactions: int
    """Interactions of the longest lifetime."""
    completed: Bools
    """[*axes, seeds]: which lifetimes have a record."""
    planned: Bools
    """[*axes, seeds]: which are planned; a grid may have holes, and cells of fewer seeds."""
    lengths: NDArray[np.int64]
    """[*axes]: iterations of a lifetime in each cell; 0 where none is planned."""
    rule: str = "disco103"
    """The rule under audit, as in specifications."""
    agent: str = "published"
    """Conventions of the learner."""
    intervals: NDArray[np.int64] | None = None
    """[*axes]: iterations between the log rows of each cell; None if all log every row."""
    ruled: bool = True
    """Whether the rule drives any of the learners."""
    spans: NDArray[np.int64] | None = None
    """[*axes]: interactions of a lifetime in each cell, with those before a fork; None if they
    follow from its iterations."""
    trial: int = 0
    """Steps of each lane in the evaluation of policies after their lifetimes."""
    episodes: int | None = None
    """Planned episodes of a lifetime, where its length is counted in episodes."""
    learning_rates: Mapping[Label, float] = field(default_factory=dict)
    """By arm: the learning rate of its learner, if it has one."""
    worlds: Mapping[str, WorldReferences] = field(default_factory=dict)
    """By name: the references of the worlds that the user named. Scores there are made from them,
    whichever column an analysis reads."""

    @property
    def normalised(self) -> bool:
        """Whether all scores are shares of the way from random play to an upper reference."""
        return all(each.normalised for each in self.worlds.values())

    @property
    def subject(self) -> str:
        """The rule under audit as it is printed."""
        return subject_name(self.rule)

    @property
    def counts(self) -> NDArray[np.int64]:
        """[*axes]: how many lifetimes of each cell have a record."""
        counts: NDArray[np.int64] = self.completed.sum(axis=-1)
        return counts

    def part(self, **labels: Label) -> Frame:
        """Return the lifetimes at ``labels``, without those axes, with their own log rows only.

        They must have one length and one interval of the log.
        """
        lengths = self._at(self.lengths, labels)
        longest = _common(lengths, lengths > 0, f"lifetimes at {dict(labels)} differ in length")
        rows = self.iteration <= longest
        intervals = None if self.intervals is None else self._at(self.intervals, labels)
        if intervals is not None:
            every = _common(intervals, lengths > 0, f"logs at {dict(labels)} differ in interval")
            rows &= self.iteration % max(every, 1) == 0
        spans = None if self.spans is None else self._at(self.spans, labels)
        in_proportion = self.interactions * longest // max(self.iterations, 1)
        return replace(
            self,
            axes={axis: values for axis, values in self.axes.items() if axis not in labels},
            iteration=self.iteration[rows],
            columns={
                name: self._at(values, labels)[..., rows] for name, values in self.columns.items()
            },
            states={name: self._at(values, labels) for name, values in self.states.items()},
            iterations=longest,
            interactions=in_proportion if spans is None else int(spans.max(initial=0)),
            completed=self._at(self.completed, labels),
            planned=self._at(self.planned, labels),
            lengths=lengths,
            intervals=intervals,
            spans=spans,
        )

    def cells(self) -> Iterator[tuple[dict[str, Label], tuple[int, ...]]]:
        """Yield the labels of every planned cell, such as ``{"arm": "a2c"}``, and its place."""
        for place in np.argwhere(self.planned.any(axis=-1)).tolist():
            yield (
                {axis: known[i] for (axis, known), i in zip(self.axes.items(), place, strict=True)},
                (*place,),
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


def _common(values: NDArray[np.int64], planned: Bools, complaint: str) -> int:
    """Return the one value of all planned cells (0 if there are none)."""
    found = np.unique(values[planned])
    if len(found) > 1:
        raise RulescopeError(complaint)
    return int(found.max(initial=0))


def _named(arrays: Mapping[str, Floats], name: str) -> Floats:
    if name not in arrays:
        raise RulescopeError(f"no {name!r} in the frame{nearest(name, arrays)}")
    return arrays[name]


def gather(
    cells: Sequence[Cell],
    read: Callable[[str], Record | None],
    *,
    columns: Sequence[str] = ("score", "effective_bins"),
    episodes: int | None = None,
    states: Sequence[str] = ("recurrent/h", "recurrent/c"),
    rule: str = "disco103",
    agent: str = "published",
    worlds: Mapping[str, WorldReferences] | None = None,
) -> Frame:
    """Return the frame of ``cells``; ``read`` returns the record of a run id, or None.

    ``worlds`` are the references of worlds that the user named: of the task of a cell, or of all
    cells if they have no tasks. Cells share their axes. They need not fill the grid, and may differ
    in their seeds, in the length of their lifetimes and in how often they log.
    """
    axes: dict[str, tuple[Label, ...]] = {
        axis: tuple(dict.fromkeys(cell.labels[axis] for cell in cells)) for axis in cells[0].labels
    }
    runs = [run for cell in cells for run in cell.runs]
    seeds = tuple(sorted({run.seed for run in runs}))
    longest = max(runs, key=lambda run: run.iterations)
    iteration = _rows(runs)
    grid = tuple(len(values) for values in axes.values())
    shape = (*grid, len(seeds))
    logs = {name: np.full((*shape, len(iteration)), np.nan) for name in columns}
    ends: dict[str, Floats] = {}
    completed, planned = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    lengths, intervals, spans = (np.zeros(grid, dtype=np.int64) for _ in range(3))
    for cell in cells:
        where = tuple(axes[axis].index(label) for axis, label in cell.labels.items())
        lengths[where], intervals[where] = cell.runs[0].iterations, cell.runs[0].log_every
        spans[where] = _interactions(cell.runs[0])
        for run in cell.runs:
            place = (*where, seeds.index(run.seed))
            planned[place] = True
            record = read(run.id)
            if record is None:
                continue
            completed[place] = True
            rows = np.searchsorted(iteration, record.log["iteration"])
            known = _references_of(cell, worlds or {})
            for name in columns:
                if known is not None and name in SCORES:
                    logs[name][place][rows] = known.score(record.log[known.column])
                elif name in record.log:
                    logs[name][place][rows] = record.log[name]
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
        interactions=_interactions(longest),
        completed=completed,
        planned=planned,
        lengths=lengths,
        rule=rule,
        agent=agent,
        intervals=intervals,
        ruled=any(_driven(run.learner, rule) for run in runs),
        spans=spans,
        trial=_trial(runs),
        episodes=episodes,
        learning_rates={
            cell.labels["arm"]: rate
            for cell in cells
            if "arm" in cell.labels
            and (rate := getattr(cell.runs[0].learner, "learning_rate", None)) is not None
        },
        worlds=worlds or {},
    )


SCORES = ("score", "rate_score")
"""Columns of the log that are scores."""


def _references_of(cell: Cell, worlds: Mapping[str, WorldReferences]) -> WorldReferences | None:
    """Return the references of the user's world that a cell is in, if it is in one."""
    if "task" in cell.labels:
        return worlds.get(str(cell.labels["task"]))
    return next(iter(worlds.values()), None)


def _driven(learner: LearnerSpec, rule: str) -> bool:
    """Return whether ``rule``, or its null rule, drives ``learner``; only OPEN's drive OPEN."""
    if isinstance(learner, Open):
        return rule in ("open", learner.rule)
    return isinstance(learner, Plugin) or (
        isinstance(learner, Disco | Dpo | Lpo | Lpg) and not rule.startswith("open")
    )


def _interactions(run: RunSpec) -> int:
    """Return the interactions of a lifetime, those before a fork too."""
    return run.interactions + run.start * run.steps * run.lanes


def _trial(runs: Sequence[RunSpec]) -> int:
    """Return the steps of the evaluation of policies (0 without one)."""
    found = {run.evaluation.steps for run in runs if run.evaluation is not None}
    if len(found) > 1:
        raise RulescopeError(
            f"policies are evaluated for different numbers of steps: {sorted(found)}"
        )
    return max(found, default=0)


def _rows(runs: Sequence[RunSpec]) -> Floats:
    """Return the iterations of all log rows of ``runs``, ascending."""
    logs = {(run.log_every, run.iterations) for run in runs}
    return np.unique([i for every, last in logs for i in range(every, last + 1, every)]).astype(
        np.float64
    )
