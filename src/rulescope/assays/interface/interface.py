"""E-IF, interface: does the rule need the value interface that it was discovered with?

The value of a state reaches the rule as a categorical distribution. Arms differ in its atoms: a
tenth of the support, or values that are not squashed.
"""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import (
    ATLAS_DRAWS,
    SCORE,
    collect_tail_warnings,
    make_results,
    note_missing,
    table_note,
    tail15,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.estimates import Estimates, Label, label_text
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Cell, make_run, subject_learner, sweep
from rulescope.assays.marginals import difference_of_cells
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.run_spec import RunSpec
from rulescope.stats import estimates, seed_blocks

ARMS = ("default", "support30", "linear")
AS_PRINTED = ("default", "linear", "support30")


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every interface (and scale, of which one is usual) of ``budget``."""

    def runs(at: Mapping[str, Label]) -> list[RunSpec]:
        subject = subject_learner(budget, interface=str(at["arm"]))
        scale = float(at["scale"])
        return [make_run(budget, subject, seed, scale=scale) for seed in range(budget.seeds)]

    return sweep({"arm": budget.arms, "scale": budget.scales}, runs)


def analyse(frame: Frame) -> Results:
    """Estimate score and effective bins of every interface, and differences from the default."""
    scores, bins = tail15(frame), tail15(frame, "effective_bins")
    notes = note_missing(frame)
    found = Estimates()
    blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
    arms = frame.axes["arm"]
    with collect_tail_warnings(notes):
        score_cells, bin_cells = estimates(scores, blocks), estimates(bins, blocks)
        for labels, place in frame.cells():
            at = _labels(labels["arm"], labels["scale"])
            found.add("score", score_cells[place], at, seeds=scores[place])
            found.add("bins", bin_cells[place], at, seeds=bins[place])
            if "default" in arms:
                default = (arms.index("default"), place[1])
                found.add("difference", difference_of_cells(score_cells, place, default), at)
    return make_results("E-IF", frame, found, (_table(frame, found),), notes)


def _labels(arm: Label, scale: Label) -> dict[str, Label]:
    """Return the labels of a cell: no scale at 1, where the assay is published."""
    return {"arm": arm} if scale == 1.0 else {"arm": arm, "scale": scale}


def _table(frame: Frame, found: Estimates) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scale in frame.axes["scale"]:
        for arm in (arm for arm in AS_PRINTED if arm in frame.axes["arm"]):
            at = _labels(arm, scale)
            score, bins = (found.at(quantity, **at) for quantity in ("score", "bins"))
            row = found.find("difference", **at)
            name = "/".join(map(label_text, at.values()))
            rows.append((name, score.n, score, bins, None if row is None else row.estimate))
    return Table(
        "v5:tab:app-interface",
        "Value interfaces: score, and how many atoms are in use",
        (
            Column("Interface"),
            Column("n"),
            Column("Score [95% CI]", 5),
            Column("Effective bins [95% CI]", 4),
            Column("Score difference [95% CI]", 5),
        ),
        tuple(rows),
        table_note(
            frame,
            f"{SCORE.format(part='15 % of the log')}; differences are between trimmed means",
            ATLAS_DRAWS,
        ),
    )


PRESETS = {
    "smoke": Budget(seeds=1, iterations=60, arms=("default", "linear")),
    "quick": Budget(seeds=2, iterations=600, arms=ARMS),
    "standard": Budget(seeds=4, iterations=2000, arms=ARMS),
    "paper": Budget(seeds=12, iterations=2000, arms=ARMS),
}

ASSAY = Assay(
    id="E-IF",
    name="interface",
    question="Does the rule need the value interface that it was discovered with?",
    arms=ARMS,
    tasks=("catch",),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    tables=("v5:tab:app-interface",),
    figures=("fig:scale", "v5:fig:app-interface", "orig:scale"),
)
