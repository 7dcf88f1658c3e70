"""Directions: which directions of the rule's state carry what it does at extreme reward scales?

Prefix lifetimes at four reward scales show along which directions the state varies. Recipients, of
other seeds, run on without those directions, without as many random ones, or with nothing else.
Published is only that such an assay was made, of 48 prefixes and 96 branches with eight contrasts,
each with an interval that includes zero; how it was made is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from rulescope.assays.analysis import (
    CORE_DRAWS,
    SCORE,
    collect_tail_warnings,
    make_results,
    missing_estimate,
    note_missing,
    table_note,
    tail20,
    without_interval,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget, prefix
from rulescope.assays.estimates import Estimates, Row, label_text
from rulescope.assays.frame import Frame
from rulescope.assays.grid import Arm, Cell, make_runs, subject_learner, sweep, table_names
from rulescope.assays.pivot import Entry, Index, count_of, keep_filled, known, names, pivot_table
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.run_spec import Ablate, RunSpec
from rulescope.stats import Estimate, estimate, estimates, paired_differences, seed_blocks

LIVE = "live"
Which = Literal["principal", "random", "complement"]
"""Directions that an arm is without, as the intervention names them."""
CONTRASTS = {
    "necessary": ("without-principal", LIVE),
    "sufficient": ("only-principal", LIVE),
    "control": ("without-random", LIVE),
    "specific": ("without-principal", "without-random"),
}
"""Which arm minus which, at each recipient scale. Does the rule need the directions, do they
suffice, does it need any two, and does it need these more than any?"""
CONTRAST_NAMES = {
    "necessary": "without principal − live",
    "sufficient": "only principal − live",
    "control": "without random − live",
    "specific": "without principal − without random",
}
SCALES = (1e-3, 1e3)
COMPONENTS = 2
"""The plane in which terminal states have nearly all of their variation between scales (E1)."""
TRAINING_SCALES = (1e-3, 1e-1, 1e1, 1e3)
TRAINING_SEEDS = range(2000, 2012)
"""Far from those of any grid: directions are tried on lifetimes that they were not taken from."""


def training_seeds(iterations: int) -> range:
    """Return the seeds of the prefixes at each scale: twelve, or fewer for a short lifetime.

    (They are the same whatever part of a grid is run: the identity of a run must not depend on
    what is run beside it.)

    >>> len(training_seeds(2000)), len(training_seeds(60))
    (12, 2)
    """
    return TRAINING_SEEDS[: min(max(iterations // 50, 2), len(TRAINING_SEEDS))]


def prefixes(budget: Budget) -> tuple[RunSpec, ...]:
    """Return the lifetimes whose terminal states the directions are taken from."""
    return tuple(
        RunSpec(
            learner=subject_learner(budget),
            scale=scale,
            iterations=budget.prefix,
            log_every=min(budget.log_every, budget.prefix),
            seed=seed,
        )
        for scale in TRAINING_SCALES
        for seed in training_seeds(budget.iterations)
    )


def _ablate(which: Which) -> Callable[[Budget], tuple[Ablate]]:
    """Return the intervention that removes these directions, from the age of the prefixes on."""

    def interventions(budget: Budget) -> tuple[Ablate]:
        return (
            Ablate(
                carrier="recurrent",
                donors=prefixes(budget),
                components=COMPONENTS,
                which=which,
                at=budget.prefix,
                mode="clamp",
            ),
        )

    return interventions


ARMS = {
    LIVE: Arm(table_name="Live"),
    "without-principal": Arm(
        interventions=_ablate("principal"), table_name="Without the principal directions"
    ),
    "without-random": Arm(interventions=_ablate("random"), table_name="Without random directions"),
    "only-principal": Arm(
        interventions=_ablate("complement"), table_name="With the principal directions only"
    ),
}


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every recipient scale and arm of ``budget``."""
    return sweep(
        {"scale": budget.scales, "arm": budget.arms},
        lambda at: make_runs(budget, ARMS[str(at["arm"])], scale=float(at["scale"])),
    )


def analyse(frame: Frame) -> Results:
    """Estimate every cell, and the contrasts at each recipient scale within seeds."""
    scores = tail20(frame)
    notes = note_missing(frame)
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    found = Estimates()
    with collect_tail_warnings(notes):
        cells = estimates(scores, blocks)
        for i, scale in enumerate(frame.axes["scale"]):
            for j, arm in enumerate(frame.axes["arm"]):
                found.add("score", cells[i, j], {"scale": scale, "arm": arm}, seeds=scores[i, j])
            arms = dict(zip(frame.axes["arm"], scores[i], strict=True))
            for contrast, pair in CONTRASTS.items():
                each = None
                if set(pair) <= set(arms):
                    each = paired_differences(*(arms[arm] for arm in pair))
                one = missing_estimate() if each is None else estimate(each, blocks)
                found.add("contrast", one, {"scale": scale, "contrast": contrast}, seeds=each)
    contrasts = [row.estimate for row in found.where("contrast")]
    found.add("spanning", _spanning(contrasts), {}, other_grid=not _whole(frame, contrasts))
    tables = keep_filled(_scores(frame, found), _contrasts(frame, found))
    return make_results("directions", frame, found, tables, notes)


def _spanning(contrasts: list[Estimate]) -> Estimate:
    """Count the contrasts whose interval includes zero, of those that have one."""
    judged = [one for one in contrasts if one.method == "bootstrap"]
    if not judged:
        return missing_estimate()
    return without_interval(
        sum(one.low <= 0.0 <= one.high for one in judged), min(o.n for o in judged)
    )


def _whole(frame: Frame, contrasts: list[Estimate]) -> bool:
    """Return whether these are the eight contrasts of the published count, and no others."""
    judged = sum(one.method == "bootstrap" for one in contrasts)
    return frame.axes["scale"] == SCALES and judged == len(contrasts) == 8


def _note(frame: Frame, what: str) -> str:
    count = len(TRAINING_SCALES) * len(training_seeds(frame.iterations))
    return table_note(
        frame,
        f"{what}; directions: the first {COMPONENTS} principal ones of {count} prefixes of "
        f"{prefix(frame.iterations):,} iterations at scales "
        f"{', '.join(map(label_text, TRAINING_SCALES))}, of other seeds; taken out "
        "after every iteration from then on",
        CORE_DRAWS,
    )


def _scores(frame: Frame, found: Estimates) -> Table:
    arms = [arm for arm in ARMS if arm in frame.axes["arm"]]
    return pivot_table(
        "directions-scores",
        "Scores without some directions of the rule's state",
        found,
        (
            Index("Recipient scale", "scale", names(frame.axes["scale"])),
            Index("State", "arm", names(arms, table_names(ARMS))),
        ),
        (Entry(Column("n"), "score", show=count_of), Entry(Column("Score [95% CI]", 4), "score")),
        _note(frame, SCORE.format(part="fifth")),
        shown=known,
        tells_n=False,
    )


def _contrasts(frame: Frame, found: Estimates) -> Table:
    return pivot_table(
        "directions",
        "What the directions of the rule's state do: contrasts within seeds",
        found,
        (
            Index("Recipient scale", "scale", names(frame.axes["scale"])),
            Index("Contrast", "contrast", names(tuple(CONTRAST_NAMES))),
        ),
        (
            Entry(Column("Arms"), "contrast", show=_arms_of),
            Entry(Column("n"), "contrast", show=count_of),
            Entry(Column("Difference of scores [95% CI]", 4), "contrast"),
        ),
        _note(frame, "difference of scores within each seed, then the trimmed mean over seeds"),
        shown=known,
        tells_n=False,
    )


def _arms_of(row: Row) -> Value:
    return CONTRAST_NAMES[str(row.labels["contrast"])]


PRESETS = {
    "smoke": Budget(seeds=1, iterations=60, arms=(LIVE, "without-principal"), scales=(1e-3,)),
    "quick": Budget(
        seeds=2, iterations=600, arms=(LIVE, "without-principal", "without-random"), scales=(1e-3,)
    ),
    "standard": Budget(seeds=4, iterations=2000, arms=tuple(ARMS), scales=SCALES),
    "paper": Budget(seeds=12, iterations=2000, arms=tuple(ARMS), scales=SCALES),
}

ASSAY = Assay(
    id="directions",
    name="directions",
    question="Which directions of the rule's state carry what it does at extreme reward scales?",
    arms=tuple(ARMS),
    tasks=("catch",),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("score",),
    states=(),
    figures=("directions",),
)
