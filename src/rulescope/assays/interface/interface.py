"""E-IF, interface: does the rule need the value interface that it was discovered with?

The value of a state reaches the rule as a categorical distribution. Arms differ in its atoms: a
tenth of the support, or no squashing of the values.
"""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import ATLAS_DRAWS, SCORE, below, missing, noted, summed_up, tail15
from rulescope.assays.assay import Assay, Budget, Cell, learner, lifetime
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import Column, Results, Table, Value, scale_label
from rulescope.stats import Estimate, Estimates, estimate_from, estimates, seed_blocks

ARMS = ("default", "support30", "linear")
AS_PRINTED = ("default", "linear", "support30")


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every interface (and scale, of which one is usual) of ``budget``."""
    return [
        Cell(
            {"arm": arm, "scale": scale},
            tuple(
                lifetime(budget, learner(budget, interface=arm), seed, scale=scale)
                for seed in range(budget.seeds)
            ),
        )
        for arm in budget.arms
        for scale in budget.scales
    ]


def analyse(frame: Frame) -> Results:
    """Estimate score and effective bins of every interface, and differences from the default."""
    scores = tail15(frame)
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    series: dict[str, Floats] = {}
    blocks = seed_blocks(len(frame.seeds), ATLAS_DRAWS)
    with noted(notes):
        cells = estimates(scores, blocks)
        logged = tail15(frame, "effective_bins")
        bins = estimates(logged, blocks)
        for i, arm in enumerate(frame.axes["arm"]):
            for j, scale in enumerate(frame.axes["scale"]):
                name = f"{arm}{_suffix(float(scale))}"
                found[f"score/{name}"] = cells[i, j]
                found[f"bins/{name}"] = bins[i, j]
                series[f"seeds/score/{name}"] = scores[i, j]
                series[f"seeds/bins/{name}"] = logged[i, j]
                if "default" in frame.axes["arm"]:
                    default = (frame.axes["arm"].index("default"), j)
                    found[f"difference/{name}"] = _difference(cells, (i, j), default)
    return summed_up("E-IF", frame, found, (_table(frame, found),), notes, series)


def _suffix(scale: float) -> str:
    """Return what tells the scale in a key: nothing at 1, where the assay is published."""
    return "" if scale == 1.0 else f"/{scale_label(scale)}"


def _difference(cells: Estimates, here: tuple[int, int], there: tuple[int, int]) -> Estimate:
    """Estimate the difference between two cells' own means, from common draws of seeds."""
    return estimate_from(
        float(cells.value[here] - cells.value[there]),
        cells.samples[(slice(None), *here)] - cells.samples[(slice(None), *there)],
        int(min(cells.n[here], cells.n[there])),
    )


def _table(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scale in frame.axes["scale"]:
        for arm in (arm for arm in AS_PRINTED if arm in frame.axes["arm"]):
            name = f"{arm}{_suffix(float(scale))}"
            score, bins = found[f"score/{name}"], found[f"bins/{name}"]
            rows.append((name, score.n, score, bins, found.get(f"difference/{name}")))
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
        below(
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
    figures=("fig:scale", "v5:fig:app-interface", "orig:scale"),
)
