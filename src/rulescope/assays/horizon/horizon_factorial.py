"""Horizon factorial: is it the horizon, the discount or the reward scale at which a learner fails?

In CatchLong the rule fails at small rewards where it does not in Catch. CatchLong has twice as many
steps until the reward, and a wider board; what a learner makes of that depends on its discount. All
combinations of world, discount and reward scale are run; effects and their interactions are
contrasts of that grid within seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from rulescope.assays.analysis import (
    CORE_DRAWS,
    SCORE,
    add_differences,
    collect_tail_warnings,
    estimate_cells,
    make_results,
    note_missing,
    table_note,
    tail20,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import UNPUBLISHED
from rulescope.assays.estimates import Estimates, Label, label_text
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import CONTROLS, Arm, Cell, make_runs, sweep
from rulescope.assays.pivot import Entry, Index, keep_filled, known, names, pivot_table
from rulescope.assays.results import Column, Results, Table
from rulescope.render.arm_styles import arm_name
from rulescope.render.display_names import CATCH_NAMES
from rulescope.stats import paired_differences

ID = "horizon-factorial"
WORLD_NAMES = {
    "catch": CATCH_NAMES["catch"],
    "catch-tall": "CatchTall",
    "catch-long": CATCH_NAMES["catch-long"],
    "catch-big": "CatchBig",
}
"""8x8, 16x8, 16x16 and 24x24: an episode lasts as many steps as there are rows, less one. CatchTall
has the horizon of CatchLong and the width of Catch."""
WORLDS = tuple(WORLD_NAMES)
DISCOUNTS = ("0.99", "0.997", "0.999")
"""0.997 is that of the learners in the other assays."""
SCALES = (1e-3, 1e-2, 1e-1, 1.0)
ARMS = {"rule": Arm(), "rule-pin": CONTROLS["rule-pin"], "a2c": Arm("a2c")}
PAIRS = {"rule-minus-pin": ("rule", "rule-pin"), "rule-minus-a2c": ("rule", "a2c")}
"""Arms whose effects are compared with each other."""
FACTORS = ("task", "discount", "scale")
"""In the order of the frame's axes."""
FACTOR_NAMES = {"task": "world", "discount": "discount", "scale": "scale"}
TAIL = SCORE.format(part="fifth")


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every world, discount, scale and arm of ``budget``."""
    axes = {
        "task": budget.tasks,
        "discount": budget.conditions,
        "scale": sorted(budget.scales, reverse=True),
        "arm": budget.arms,
    }
    return sweep(
        axes,
        lambda at: make_runs(
            budget,
            ARMS[str(at["arm"])]._replace(discount=float(at["discount"])),
            task=str(at["task"]),
            scale=float(at["scale"]),
        ),
    )


class Effect(NamedTuple):
    """A contrast of the grid: the last level of each pair minus the first, in all combinations."""

    levels: Mapping[str, tuple[Label, Label]]
    """The two levels of each factor of the effect; over the others the score is averaged."""

    @property
    def name(self) -> str:
        """Such as ``world: CatchLong − Catch``, or ``CatchLong × scale``.

        An interaction names the world that is compared with the first one, because worlds may
        differ in more than the horizon.
        """
        if len(self.levels) == 1:
            ((factor, pair),) = self.levels.items()
            return f"{FACTOR_NAMES[factor]}: {_difference(pair)}"
        return " × ".join(
            _world_name(pair[1]) if factor == "task" else FACTOR_NAMES[factor]
            for factor, pair in self.levels.items()
        )

    def by_seed(self, frame: Frame, scores: Floats) -> Floats:
        """Return the effect [seeds] in ``scores`` [task, discount, scale, seeds].

        A seed without all of these lifetimes has none.
        """
        for factor in FACTORS:
            if factor in self.levels:
                first, last = (frame.axes[factor].index(each) for each in self.levels[factor])
                scores = paired_differences(scores[last], scores[first])
            else:
                scores = scores.mean(axis=0)
        return scores


def _difference(levels: tuple[Label, Label]) -> str:
    first, last = map(_world_name, levels)
    return f"{last} − {first}"


def _world_name(level: Label) -> str:
    text = label_text(level)
    return WORLD_NAMES.get(text, text)


def effects_of(axes: Mapping[str, Sequence[Label]]) -> Iterator[Effect]:
    """Yield the effects of a grid with these levels.

    A main effect is that of any other level against the first: the shortest horizon, the lowest
    discount, the largest scale. Interactions are between the first level of a factor and its last
    one; of worlds, between the first one and each other.
    """
    crossed = [factor for factor in FACTORS if len(axes[factor]) > 1]
    for factor in crossed:
        first, *others = axes[factor]
        yield from (Effect({factor: (first, other)}) for other in others)
    for size in range(2, len(crossed) + 1):
        for chosen in combinations(crossed, size):
            ends = {factor: (axes[factor][0], axes[factor][-1]) for factor in chosen}
            if "task" not in chosen:
                yield Effect(ends)
                continue
            first, *others = axes["task"]
            yield from (Effect(ends | {"task": (first, other)}) for other in others)


def analyse(frame: Frame) -> Results:
    """Estimate every cell, and the effects and interactions of the factors in each arm."""
    scores = tail20(frame)
    notes = note_missing(frame)
    with collect_tail_warnings(notes):
        found = estimate_cells(frame, "score", scores, CORE_DRAWS)
        by_arm = {str(arm): scores[..., i, :] for i, arm in enumerate(frame.axes["arm"])}
        for pair, (one, other) in PAIRS.items():
            if one in by_arm and other in by_arm:
                by_arm[pair] = paired_differences(by_arm[one], by_arm[other])
        for effect in effects_of(frame.axes):
            for arm, values in by_arm.items():
                at = {"effect": effect.name, "arm": arm}
                add_differences(found, "effect", at, effect.by_seed(frame, values))
    tables = keep_filled(_scores(frame, found), _effects(frame, found))
    return make_results(ID, frame, found, tables, notes)


def _scores(frame: Frame, found: Estimates) -> Table:
    scales = names(frame.axes["scale"])
    return pivot_table(
        f"{ID}-scores",
        "Scores by world, discount and reward scale",
        found,
        (
            Index("World", "task", names(frame.axes["task"], WORLD_NAMES)),
            Index("Discount", "discount", names(frame.axes["discount"])),
            Index("Arm", "arm", names(frame.axes["arm"], _arm_names(frame))),
        ),
        [
            Entry(Column(f"Scale {text} [95% CI]", 3), "score", {"scale": scale})
            for scale, text in scales.items()
        ],
        table_note(frame, TAIL, CORE_DRAWS),
    )


def _arm_names(frame: Frame) -> dict[str, str]:
    """Return the printed names of arms, and of the pairs that are compared."""
    own = {arm: arm_name(arm, frame.subject) for arm in ARMS}
    return own | {pair: f"{own[one]} − {own[other]}" for pair, (one, other) in PAIRS.items()}


def _effects(frame: Frame, found: Estimates) -> Table:
    effects = [effect.name for effect in effects_of(frame.axes)]
    columns = [arm for arm in _arm_names(frame) if found.where("effect", arm=arm)]
    return pivot_table(
        ID,
        "Main effects and interactions of horizon, discount and reward scale",
        found,
        [Index("Effect on the score", "effect", names(effects))],
        [
            Entry(Column(f"{_arm_names(frame)[arm]} [95% CI]", 3), "effect", {"arm": arm})
            for arm in columns
        ],
        table_note(
            frame,
            "last level minus first within each seed, averaged over the levels of the other "
            "factors, then the trimmed mean over seeds; an interaction is the difference of such "
            "differences between the extreme levels, and between the named world and the first; "
            "intervals at least as wide as Student's; "
            f"{TAIL}",
            CORE_DRAWS,
        ),
        shown=known,
    )


PAPER = Budget(
    seeds=12,
    iterations=2000,
    arms=tuple(ARMS),
    scales=SCALES,
    tasks=("catch", "catch-tall", "catch-long"),
    conditions=DISCOUNTS,
)
_CORNERS = replace(
    PAPER, scales=(1e-3, 1.0), tasks=("catch", "catch-long"), conditions=("0.99", "0.999")
)
PRESETS = {
    "smoke": replace(_CORNERS, seeds=1, iterations=60, arms=("rule", "a2c"), conditions=("0.999",)),
    "quick": replace(_CORNERS, seeds=2, iterations=600, arms=("rule",)),
    "standard": replace(_CORNERS, seeds=4),
    "paper": PAPER,
}
"""All but ``paper`` run corners of the grid alone."""

ASSAY = Assay(
    id=ID,
    name=ID,
    question="Is it the horizon, the discount or the reward scale at which a learner fails?",
    arms=tuple(ARMS),
    tasks=WORLDS,
    conditions=DISCOUNTS,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("score",),
    states=(),
    figures=(ID,),
    cohort=UNPUBLISHED,
)
