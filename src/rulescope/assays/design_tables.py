"""The audit's design as tables, generated from the code: axes, operations on a state, grids.

``tab:axes``, ``tab:state-operations`` and ``v5:tab:app-matrices`` have no results. What they say is
read off the assays, their published budgets, and the operations of a run's specification.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, get_args

from rulescope.assays.assay import Assay
from rulescope.assays.grid import Cell
from rulescope.assays.results import Column, Table, Value, counted
from rulescope.run_spec import Intervention, Mode, RandomState, Transplant

LABELS = ("tab:axes", "tab:state-operations", "v5:tab:app-matrices")


class AuditAxis(NamedTuple):
    """One property of experience that an audit varies."""

    name: str
    question: str
    readouts: str
    controls: str
    assays: tuple[str, ...]
    """By id; assays about all axes are in none of them."""


AXES = (
    AuditAxis(
        "Horizon",
        "How fast does a learner improve over a long lifetime, and how far?",
        "last score; interactions until it is within a tenth of its own final level",
        "learning rate; state pinned, or frozen after 40 or 400 iterations",
        ("F2", "E-LR", "horizon-factorial"),
    ),
    AuditAxis(
        "Scale",
        "At which reward scales does it learn?",
        "widest run of neighbouring scales at or above a score",
        "state pinned; moving averages held; donor of the state; value interface; PopArt",
        (
            "E1",
            "E2",
            "E-IF",
            "P1",
            "E-POP",
            "M1",
            "minatar-context",
            "directions",
            "normalised-inheritance",
        ),
    ),
    AuditAxis(
        "Streams",
        "What changes without reported episode ends, and without resets?",
        "reward per interaction, as a score",
        "masked ends; ends at regular intervals; worlds without any end",
        ("exposure", "synthetic", "E-A3c", "masking"),
    ),
    AuditAxis(
        "Change",
        "How is competence rebuilt when the world changes?",
        "levels before and after; area under the score; time until competent",
        "kind of change, and none; size of the replay, and clearing it; state frozen; no auxiliary "
        "losses",
        ("E3", "E-A4x", "E-A4m"),
    ),
    AuditAxis(
        "Exploration",
        "When is a rare reward found, and is it kept?",
        "first goal; share of lifetimes that solve the task",
        "depth; added entropy; random policy; indexing of value targets",
        ("E-A5", "discovery", "F1", "ladder"),
    ),
)


def axes_table(assays: Sequence[Assay]) -> Table:
    """Return the axes of an audit: question, readout, control, and the assays along each."""
    known = {assay.id: assay for assay in assays}
    rows: list[tuple[Value, ...]] = [
        (
            axis.name,
            axis.question,
            axis.readouts,
            axis.controls,
            ", ".join(axis.assays),
            sum(_lifetimes(_grid(known[name])) for name in axis.assays),
        )
        for axis in AXES
    ]
    headings = ("Axis", "Question", "Readout", "Control", "Assays", "Lifetimes")
    return Table(
        "tab:axes",
        "What an audit varies, what it reads, and what it is compared with",
        tuple(Column(heading) for heading in headings),
        tuple(rows),
        "Lifetimes: of the published budgets; cells that two assays share count in both.",
    )


MODES: dict[Mode | None, str] = {
    None: "",
    "natural": "; then updated as usual",
    "clamp": "; and again after every later iteration",
}


def operations_table(assays: Sequence[Assay]) -> Table:
    """Return what each operation does to the state it is applied to, and to everything else."""
    used = _used(assays)
    rows: list[tuple[Value, ...]] = [
        ("live", "Updated as usual", "updated as usual", None, None, None)
    ]
    for kind in get_args(Intervention):
        for mode in get_args(Mode) if "mode" in kind.__struct_fields__ else (None,):
            tag = str(kind.__struct_config__.tag)
            where = [use for use in used if (use.operation, use.mode) == (tag, mode)]
            name = tag if mode is None else f"{tag}, {mode}"
            rows.append(
                (
                    name,
                    f"{_first_sentence(kind)}{MODES[mode]}",
                    _rest(where),
                    _listed(use.carrier for use in where),
                    _listed(use.assay for use in where),
                    _listed(use.arm for use in where),
                )
            )
    headings = ("Condition", "The state", "Everything else", "States", "Assays", "Arms")
    return Table(
        "tab:state-operations",
        "Operations on a learner's state",
        tuple(Column(heading) for heading in headings),
        tuple(rows),
        "The rule's weights never change. A transplant takes over the named state of a donor and "
        "nothing else of it. States, assays and arms: where the published grids and their control "
        "arms apply the operation; a dash where none does.",
    )


def matrices_table(assays: Iterable[Assay]) -> Table:
    """Return the grid of every assay as published: its cells, seeds and iterations."""
    rows: list[tuple[Value, ...]] = []
    for assay in assays:
        cells = _grid(assay)
        lengths = sorted({run.iterations for cell in cells for run in cell.runs})
        seeds = sorted({len(cell.runs) for cell in cells})
        rows.append((assay.id, _shape(cells), _span(seeds), _span(lengths), _lifetimes(cells)))
    headings = ("Assay", "Conditions", "Seeds", "Iterations", "Lifetimes")
    return Table(
        "v5:tab:app-matrices",
        "The published grids",
        tuple(Column(heading) for heading in headings),
        tuple(rows),
        "Seeds: of each cell, from 0. An iteration has 58 interactions (OPEN and its Adam: 8,192). "
        "Donors of E2 are trained for another 400 iterations; in DeepSea the number of episodes is "
        "fixed, so iterations grow with depth.",
    )


def tables(assays: Sequence[Assay]) -> tuple[Table, ...]:
    """Return the tables of the design."""
    return axes_table(assays), operations_table(assays), matrices_table(assays)


class _Use(NamedTuple):
    """An operation in an arm of an assay."""

    operation: str
    mode: Mode | None
    carrier: str
    assay: str
    arm: str
    donor: bool
    """Whether the learner is new and only the state is made from donors."""


def _used(assays: Iterable[Assay]) -> list[_Use]:
    """Return every operation in the grids of ``assays``, control arms included."""
    found = []
    for assay in assays:
        budget = replace(assay.budget("paper"), seeds=1, arms=assay.arms)
        for cell in assay.grid(budget):
            run = cell.runs[0]
            found += [
                _Use(
                    item.operation,
                    getattr(item, "mode", None),
                    item.carrier,
                    assay.id,
                    str(cell.labels.get("arm", "")),
                    isinstance(item, Transplant | RandomState),
                )
                for item in run.interventions
            ]
    return list(dict.fromkeys(found))


def _rest(where: Sequence[_Use]) -> str:
    """Return what becomes of all other states."""
    if any(use.donor for use in where):
        return "a new learner's, updated as usual"
    return "updated as usual"


def _first_sentence(kind: type) -> str:
    """Return the first sentence of a class's documentation, as plain text without its full stop."""
    text = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    return text.replace("``at``", "t").replace("`", "").removesuffix(".")


def _listed(names: Iterable[str]) -> str | None:
    return ", ".join(dict.fromkeys(names)) or None


def _grid(assay: Assay) -> list[Cell]:
    return assay.grid(assay.budget("paper"))


def _lifetimes(cells: Sequence[Cell]) -> int:
    return sum(len(cell.runs) for cell in cells)


def _shape(cells: Sequence[Cell]) -> str:
    """Return a grid in words: the product of its axes, or its cells if it has holes."""
    sizes = {axis: len({cell.labels[axis] for cell in cells}) for axis in cells[0].labels}
    product = " × ".join(counted(size, axis) for axis, size in sizes.items() if size > 1)
    whole = math.prod(sizes.values()) == len(cells)
    return product if whole else f"{len(cells)} cells of {product}"


def _span(numbers: Sequence[int]) -> str:
    ends = dict.fromkeys(f"{number:,}" for number in (numbers[0], numbers[-1]))
    return " to ".join(ends)
