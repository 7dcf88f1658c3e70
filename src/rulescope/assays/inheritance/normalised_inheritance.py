"""Normalised inheritance: does return-based scaling remove what the donor's reward scale does?

E2 at a small reward scale, with TD errors divided by the running scale of returns or not. Donors of
scaled learners are scaled themselves. A2C has no recurrent history: it inherits its optimiser's
moments. The statistics behind the scale are the learner's own, or (arms ``statistics-...``) come
from the donor as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as replace_fields
from itertools import product
from typing import Literal, NamedTuple

from msgspec.structs import replace

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
from rulescope.assays.budget import Budget, prefix
from rulescope.assays.cohorts import UNPUBLISHED
from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Cell, make_run, subject_learner, sweep
from rulescope.assays.inheritance.inheritance import donor_run, reciprocal, require_recipients
from rulescope.assays.pivot import Entry, Index, count_of, keep_filled, known, names, pivot_table
from rulescope.assays.results import Column, Results, Table
from rulescope.core.errors import SpecError
from rulescope.learners.baseline_config import A2C
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner_base import HISTORY, ReturnScaling
from rulescope.run_spec import Intervention, Mode, RunSpec, Transplant
from rulescope.stats import paired_differences

ID = "normalised-inheritance"
SCALE = 1e-3
"""Of recipients, as in E2."""
UNSCALED = "unscaled"
SCALINGS: dict[str, ReturnScaling | None] = {
    UNSCALED: None,
    "fixed-floor": ReturnScaling(),
    "reward-floor": ReturnScaling(floor_unit="reward"),
}
"""Return-based scaling by condition. At reward scale 1e-3 the scale of returns is below the fixed
floor, so there is less of it; a floor in units of the rewards is never in the way."""
STATISTICS = "scaling"
"""The carrier of the statistics behind the scale."""

Source = Literal["match", "cross"]
SOURCES: tuple[Source, ...] = ("match", "cross")
MODES: tuple[Mode, ...] = ("natural", "clamp")


class Inheritor(NamedTuple):
    """One arm: a learner, and what it inherits of which donor."""

    learner: Literal["rule", "a2c"]
    source: Source | None = None
    """Whether the donor has the recipient's reward scale or its reciprocal; None: no donor."""
    mode: Mode = "natural"
    statistics: bool = False
    """Whether the donor's statistics of returns are inherited as well."""

    @property
    def inherited(self) -> str:
        """What it inherits: the history alone, or the statistics too."""
        return "statistics" if self.statistics else "history"


def _name(arm: Inheritor) -> str:
    """Return the name of an arm, such as ``cross-clamp`` or ``a2c-statistics-match-natural``."""
    own = "live" if arm.source is None else f"{arm.source}-{arm.mode}"
    parts = ("a2c" if arm.learner == "a2c" else "", "statistics" if arm.statistics else "", own)
    return "-".join(part for part in parts if part)


def _arms_of(learner: Literal["rule", "a2c"], *, statistics: bool) -> dict[str, Inheritor]:
    made = [Inheritor(learner, source, mode, statistics) for source in SOURCES for mode in MODES]
    return {_name(arm): arm for arm in ([] if statistics else [Inheritor(learner)]) + made}


RULE = _arms_of("rule", statistics=False)
BASELINE = _arms_of("a2c", statistics=False) | _arms_of("a2c", statistics=True)
ARMS = RULE | BASELINE | _arms_of("rule", statistics=True)
"""By name; those of the rule whose statistics are inherited are controls."""
LEARNERS = ("rule", "a2c")
CONDITION_NAMES = {
    UNSCALED: "Unscaled",
    "fixed-floor": "Scaled, fixed floor",
    "reward-floor": "Scaled, floor in rewards",
}
_STATISTICS = "the donor's statistics of returns are inherited as well"
ARM_WORDS = {name: _STATISTICS for name, arm in ARMS.items() if arm.statistics}
"""Phrases that explain arms below figures."""
INHERITED = {"history": "history", "statistics": "history and statistics"}
READOUTS = {"natural": "given once", "clamp": "clamped", "difference": "clamped − given once"}
"""Ways of inheriting that an effect is estimated for; the third is the interaction of E2."""
TAIL = SCORE.format(part="fifth")


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every recipient scale, scaling and arm of ``budget``.

    Without scaling there are no statistics that could be inherited, so those arms have no cell.
    """
    require_recipients(budget.scales)

    def runs(at: Mapping[str, Label]) -> list[RunSpec]:
        arm, scaling = ARMS[str(at["arm"])], SCALINGS[str(at["condition"])]
        if arm.statistics and scaling is None:
            return []
        learner, scale = scaled_learner(budget, arm, scaling), float(at["scale"])
        return [
            make_run(
                budget,
                learner,
                seed,
                scale=scale,
                interventions=_transplants(budget, arm, learner, scale, seed),
            )
            for seed in range(budget.seeds)
        ]

    axes = {"scale": budget.scales, "condition": budget.conditions, "arm": budget.arms}
    cells = sweep(axes, runs)
    if not cells:
        raise SpecError(f"--conditions: {UNSCALED!r} has no statistics that could be inherited")
    return cells


def scaled_learner(budget: Budget, arm: Inheritor, scaling: ReturnScaling | None) -> Disco | A2C:
    """Return the learner of ``arm`` with ``scaling``; a rule without that option is an error."""
    learner = A2C() if arm.learner == "a2c" else subject_learner(budget)
    if not isinstance(learner, Disco | A2C):
        raise SpecError(
            f"--rule: the learner of {budget.subject.name!r} has no return-based scaling; "
            "choose arms of A2C, or a rule of Disco"
        )
    return replace(learner, scaling=scaling)


def _transplants(
    budget: Budget, arm: Inheritor, learner: Disco | A2C, scale: float, seed: int
) -> tuple[Intervention, ...]:
    """Return what ``arm`` inherits; a donor has the same learner, scaling included."""
    if arm.source is None:
        return ()
    history = "moments" if arm.learner == "a2c" else HISTORY
    kept = budget.subject.kept if arm.learner == "rule" else (history,)
    if learner.scaling is not None:
        kept = (*kept, STATISTICS)
    origin = scale if arm.source == "match" else reciprocal(scale)
    donor = donor_run(budget, learner, origin, seed, kept)
    carriers = (history, STATISTICS) if arm.statistics else (history,)
    return tuple(Transplant(carrier=name, donor=donor, mode=arm.mode) for name in carriers)


def analyse(frame: Frame) -> Results:
    """Estimate every cell, what the donor's scale does, and how much of that scaling removes."""
    scores = tail20(frame)
    notes = note_missing(frame)
    with collect_tail_warnings(notes):
        found = estimate_cells(frame, "score", scores, CORE_DRAWS)
        for scale, learner, inherited in product(frame.axes["scale"], LEARNERS, INHERITED):
            arms = {
                (arm.source, arm.mode): name
                for name, arm in ARMS.items()
                if arm.source and (arm.learner, arm.inherited) == (learner, inherited)
            }
            if set(arms.values()) & set(frame.axes["arm"]):
                at = {"scale": scale, "learner": learner, "inherited": inherited}
                found.update(_contrasts(frame, scores, arms, at))
    tables = keep_filled(_scores(frame, found), _effects(frame, found))
    return make_results(ID, frame, found, tables, notes)


def _contrasts(
    frame: Frame, scores: Floats, arms: Mapping[tuple[Source, Mode], str], at: Mapping[str, Label]
) -> Estimates:
    """Estimate, of one learner, the effects of the donor's scale and what scaling removes of them.

    Without scaling there are no statistics, so both kinds of inheritance are compared with the
    effect that the history has there.
    """
    found = Estimates()
    plain_arms = {place: name.replace("statistics-", "") for place, name in arms.items()}
    plain = _donor_effects(frame, scores, plain_arms, at["scale"], UNSCALED)
    for condition in frame.axes["condition"]:
        if condition == UNSCALED:
            effects = plain if plain_arms == arms else {}
        else:
            effects = _donor_effects(frame, scores, arms, at["scale"], condition)
        for readout, each in effects.items():
            labels = {**at, "readout": readout, "condition": condition}
            add_differences(found, "effect", labels, each)
            if condition != UNSCALED:
                change = _subtract(plain[readout], each)
                add_differences(found, "interaction", labels, change)
    return found


def _donor_effects(
    frame: Frame,
    scores: Floats,
    arms: Mapping[tuple[Source, Mode], str],
    scale: Label,
    condition: Label,
) -> dict[str, Floats | None]:
    """Return matching minus wrong donor by seed [seeds], for every readout; None without arms.

    The sign is that of E2: positive where the matching donor is the better one.
    """
    known_arms, effects = frame.axes["arm"], dict[str, Floats | None]()
    for mode in MODES:
        pair = [arms[source, mode] for source in SOURCES]
        if condition not in frame.axes["condition"] or not set(pair) <= set(known_arms):
            effects[mode] = None
            continue
        here = scores[frame.axes["scale"].index(scale), frame.axes["condition"].index(condition)]
        effects[mode] = paired_differences(*(here[known_arms.index(arm)] for arm in pair))
    effects["difference"] = _subtract(effects["clamp"], effects["natural"])
    return effects


def _subtract(first: Floats | None, second: Floats | None) -> Floats | None:
    """Return ``first - second`` [seeds] if there are both."""
    return None if first is None or second is None else paired_differences(first, second)


def _note(frame: Frame, what: str) -> str:
    words = (
        f"{what}; {TAIL}; donors run for {prefix(frame.iterations):,} iterations, with the scaling "
        "of their recipients; wrong scale: the reciprocal; inherited: the recurrent state of a "
        "rule, the optimiser's moments of A2C"
    )
    return table_note(frame, words, CORE_DRAWS)


def _scores(frame: Frame, found: Estimates) -> Table:
    conditions = names(frame.axes["condition"], CONDITION_NAMES)
    return pivot_table(
        f"{ID}-scores",
        "Scores by what is inherited, with and without return-based scaling",
        found,
        (
            Index("Recipient scale", "scale", names(frame.axes["scale"])),
            Index("Arm", "arm", names(frame.axes["arm"])),
        ),
        [
            Entry(Column(f"{text} [95% CI]", 4), "score", {"condition": condition})
            for condition, text in conditions.items()
        ],
        _note(frame, "given once: natural; restored after every iteration: clamp"),
    )


def _effects(frame: Frame, found: Estimates) -> Table:
    learners = {"rule": frame.subject, "a2c": "A2C"}
    return pivot_table(
        ID,
        "What the donor's reward scale does, and how much of it scaling removes",
        found,
        (
            Index("Recipient scale", "scale", names(frame.axes["scale"])),
            Index("Learner", "learner", names(LEARNERS, learners)),
            Index("Inherited", "inherited", names(tuple(INHERITED), INHERITED)),
            Index("Way", "readout", names(tuple(READOUTS), READOUTS)),
            Index("Scaling", "condition", names(frame.axes["condition"], CONDITION_NAMES)),
        ),
        (
            Entry(Column("n"), "effect", show=count_of),
            Entry(Column("Matching − wrong donor [95% CI]", 4), "effect"),
            Entry(Column("Interaction: removed by scaling [95% CI]", 4), "interaction"),
        ),
        _note(
            frame,
            "differences within each seed, then the trimmed mean, intervals at least as wide as "
            "Student's; interaction: the effect without scaling minus that with it",
        ),
        shown=known,
        tells_n=False,
    )


PAPER = Budget(
    seeds=12,
    iterations=2000,
    arms=(*RULE, *BASELINE),
    scales=(SCALE,),
    conditions=tuple(SCALINGS),
)
_FEW = ("cross-natural", "a2c-match-natural", "a2c-cross-natural")
_CLAMPED = ("match-clamp", "cross-clamp", "a2c-match-clamp", "a2c-cross-clamp")
_EITHER = (UNSCALED, "reward-floor")
PRESETS = {
    "smoke": replace_fields(PAPER, seeds=1, iterations=60, arms=_FEW, conditions=_EITHER),
    "quick": replace_fields(PAPER, seeds=2, iterations=600, arms=_CLAMPED, conditions=_EITHER),
    "standard": replace_fields(PAPER, seeds=4),
    "paper": PAPER,
}

ASSAY = Assay(
    id=ID,
    name=ID,
    question="Does return-based scaling remove the effect of the donor's reward scale?",
    arms=tuple(ARMS),
    tasks=("catch",),
    conditions=tuple(SCALINGS),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("score",),
    states=(),
    figures=(ID,),
    cohort=UNPUBLISHED,
    arm_words=ARM_WORDS,
)
