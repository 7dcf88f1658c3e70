"""Horizon factorial: which field a cell changes, and effects against plain loops over the grid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import product

import msgspec
import numpy as np
import pytest

from report.figure_checks import clashes, said
from rulescope.assays import ASSAYS, Selection, narrowed
from rulescope.assays.figures import FIGURES
from rulescope.assays.frame import Floats
from rulescope.assays.horizon.horizon_factorial import ARMS, DISCOUNTS, SCALES, analyse, grid
from rulescope.assays.results import Results
from rulescope.assays.subject import make_subject
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import Catch
from rulescope.learners.baseline_config import A2C
from rulescope.learners.disco_config import Disco
from rulescope.render.style import NothingToDrawError
from rulescope.run_spec import RunSpec, checked

from .frames import bounds, drawn_seeds, trim
from .lives import Labels, lived

ASSAY = ASSAYS["horizon-factorial"]
PAPER = ASSAY.budget("paper")
TASKS = ("catch", "catch-tall", "catch-long")
FALLING = tuple(sorted(SCALES, reverse=True))


def cells() -> dict[tuple[object, ...], tuple[RunSpec, ...]]:
    return {tuple(cell.labels.values()): cell.runs for cell in grid(PAPER)}


def test_every_combination_is_run_once() -> None:
    assert set(cells()) == set(product(TASKS, DISCOUNTS, FALLING, ARMS))
    runs = [run.id for found in cells().values() for run in found]
    assert len(set(runs)) == len(runs) == 3 * 3 * 4 * 3 * 12


def test_a_cell_changes_world_discount_and_scale_and_nothing_else() -> None:
    for (task, discount, scale, arm), runs in cells().items():
        run, world = runs[0], runs[0].environment
        checked(run)
        assert isinstance(world, Catch)
        sizes = {"catch": (8, 8), "catch-tall": (16, 8), "catch-long": (16, 16)}
        assert (world.rows, world.columns) == sizes[str(task)]
        assert isinstance(run.learner, A2C if arm == "a2c" else Disco)
        assert (run.learner.discount, run.scale) == (float(str(discount)), scale)
        usual = cells()["catch", "0.997", 1.0, arm][0]
        bare = msgspec.structs.replace(
            run,
            environment=Catch(),
            scale=1.0,
            learner=msgspec.structs.replace(run.learner, discount=0.997),
        )
        assert bare == usual


def test_at_the_usual_discount_the_cells_are_those_of_e1() -> None:
    e1 = {run.id for cell in ASSAYS["E1"].grid(ASSAYS["E1"].budget("paper")) for run in cell.runs}
    for task, scale, arm in product(("catch", "catch-long"), SCALES, ("rule", "rule-pin")):
        assert {run.id for run in cells()[task, "0.997", scale, arm]} <= e1


def test_a_learner_without_a_discount_is_refused() -> None:
    subject = replace(PAPER, subject=make_subject("random"), agent="")
    with pytest.raises(SpecError, match="the learner 'random' has no discount to vary"):
        grid(subject)


@cache
def scores() -> Floats:
    return np.random.default_rng(3).uniform(size=(3, 3, 4, 3, 12))


def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
    place = (
        TASKS.index(str(labels["task"])),
        DISCOUNTS.index(str(labels["discount"])),
        FALLING.index(float(labels["scale"])),
        list(ARMS).index(str(labels["arm"])),
        seed,
    )
    return {"score": np.where(rows >= 1600, scores()[place], -3.0)}


@cache
def analysed() -> Results:
    return analyse(lived(ASSAY, PAPER, log))


def effect(arm: int, levels: Mapping[int, tuple[int, int]]) -> list[float]:
    """Return an effect by seed: last minus first level, in all combinations, over all others."""
    each = []
    for seed in range(12):
        total = 0.0
        for place in product(range(3), range(3), range(4)):
            sign = 1.0
            for axis, (first, last) in levels.items():
                sign *= {first: -1.0, last: 1.0}.get(place[axis], 0.0)
            total += sign * float(scores()[(*place, arm, seed)])
        others = [size for axis, size in enumerate((3, 3, 4)) if axis not in levels]
        each.append(total / float(np.prod(others)))
    return each


CASES: dict[str, Mapping[int, tuple[int, int]]] = {
    "world: CatchTall − Catch": {0: (0, 1)},
    "world: CatchLong − Catch": {0: (0, 2)},
    "discount: 0.997 − 0.99": {1: (0, 1)},
    "discount: 0.999 − 0.99": {1: (0, 2)},
    "scale: 0.1 − 1": {2: (0, 1)},
    "scale: 0.01 − 1": {2: (0, 2)},
    "scale: 0.001 − 1": {2: (0, 3)},
    "CatchTall × discount": {0: (0, 1), 1: (0, 2)},
    "CatchLong × discount": {0: (0, 2), 1: (0, 2)},
    "CatchTall × scale": {0: (0, 1), 2: (0, 3)},
    "CatchLong × scale": {0: (0, 2), 2: (0, 3)},
    "discount × scale": {1: (0, 2), 2: (0, 3)},
    "CatchTall × discount × scale": {0: (0, 1), 1: (0, 2), 2: (0, 3)},
    "CatchLong × discount × scale": {0: (0, 2), 1: (0, 2), 2: (0, 3)},
}


@pytest.mark.parametrize("name", CASES)
def test_effects_are_those_of_a_plain_loop(name: str) -> None:
    found = analysed().estimates
    by_arm = {arm: effect(place, CASES[name]) for place, arm in enumerate(ARMS)}
    for other, pair in (("rule-pin", "rule-minus-pin"), ("a2c", "rule-minus-a2c")):
        by_arm[pair] = [a - b for a, b in zip(by_arm["rule"], by_arm[other], strict=True)]
    for arm, each in by_arm.items():
        one = found[f"effect/{name}/{arm}"]
        assert one.value == pytest.approx(trim(each))
        low, high = bounds([trim([each[k] for k in block]) for block in drawn_seeds(12)])
        assert one.low <= low + 1e-12
        assert one.high >= high - 1e-12
        assert (one.n, one.family) == (12, 1)


def test_these_are_all_effects() -> None:
    rows = analysed().estimates.where("effect")
    assert {str(row.labels["effect"]) for row in rows} == set(CASES)
    table = analysed().tables[1]
    assert [row[0] for row in table.rows] == list(CASES)
    assert [column.heading for column in table.columns][1:] == [
        "Disco103 [95% CI]",
        "Disco103, pinned [95% CI]",
        "A2C [95% CI]",
        "Disco103 − Disco103, pinned [95% CI]",
        "Disco103 − A2C [95% CI]",
    ]


def test_a_factor_with_one_level_has_no_effect() -> None:
    few = narrowed(ASSAY, PAPER, Selection(conditions=["0.997"], arms=["rule", "a2c"]))
    rows = analyse(lived(ASSAY, few, log)).estimates.where("effect")
    effects = {str(row.labels["effect"]) for row in rows}
    assert effects == {name for name in CASES if "discount" not in name}
    alone = narrowed(ASSAY, few, Selection(tasks=["catch"], scales=[1.0]))
    results = analyse(lived(ASSAY, alone, log))
    assert results.estimates.where("effect") == []
    assert len(results.tables) == 1


def test_a_seed_without_all_lifetimes_has_no_effect_of_the_grid() -> None:
    def torn(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats] | None:
        gone = seed == 4 and labels["task"] == "catch" and labels["arm"] == "a2c"
        return None if gone else log(labels, seed, rows)

    found = analyse(lived(ASSAY, PAPER, torn)).estimates
    assert found["effect/scale: 0.001 − 1/a2c"].n == 11
    assert found["effect/scale: 0.001 − 1/rule"].n == 12
    assert found["effect/scale: 0.001 − 1/rule-minus-a2c"].n == 11


@pytest.mark.parametrize("seeds", [1, 12])
@pytest.mark.parametrize(
    "some",
    [
        Selection(),
        Selection(tasks=["catch-big"], conditions=["0.99"], arms=["a2c"]),
        Selection(tasks=["catch", "catch-long"], conditions=["0.99", "0.999"], scales=[1e-3, 1.0]),
    ],
)
def test_the_figure_can_be_read(some: Selection, seeds: int) -> None:
    few = narrowed(ASSAY, PAPER, replace(some, seeds=seeds))

    def any_score(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        known = labels if labels["task"] in TASKS else {**labels, "task": "catch"}
        return log(known, seed, rows)

    results = analyse(lived(ASSAY, few, any_score))
    figure = FIGURES["horizon-factorial"]({"horizon-factorial": results})
    assert clashes(figure) == []
    assert f"n = {seeds} seed" in said(figure)


def test_there_is_no_figure_of_an_absent_assay() -> None:
    assert not FIGURES["horizon-factorial"].has_data({})
    with pytest.raises(NothingToDrawError):
        FIGURES["horizon-factorial"]({})
