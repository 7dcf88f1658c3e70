"""agent-identity: which agent made which published cohort?

The code of the published audit was never released, and agents around one rule network differ in a
dozen choices, the conventions of a learner. Every candidate runs the cells in which candidates are
known to differ. Each printed number is then placed among the numbers that a cohort of the printed
size would print if its lifetimes were like ours: a candidate is excluded from a cohort if one of
the cohort's numbers is improbable under it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from rulescope.assays import published
from rulescope.assays.analysis import (
    CORE_DRAWS,
    collect_tail_warnings,
    last_row,
    make_results,
    note_missing,
    table_note,
    tail15,
    tail20,
    without_interval,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.change.switch_readouts import readouts, switch, switch_of
from rulescope.assays.cohorts import EVERY_AGENT
from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Cell, make_run, resolve_interventions
from rulescope.assays.published import Published
from rulescope.assays.published_agreement import as_estimate
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.assays.scale.scale_arms import ARMS as SCALE_ARMS
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import ActionFlip
from rulescope.learners.disco_config import AGENTS, Conventions, Disco
from rulescope.run_spec import RunSpec
from rulescope.stats import (
    Estimate,
    Statistic,
    attainment,
    displacement,
    estimate,
    finite_mean,
    paired_differences,
    printed_probability,
    restricted_times,
    seed_blocks,
    statistic_probability,
    threshold_steps,
    trimmed_mean,
)

ID = "agent-identity"
CANDIDATES: dict[str, Conventions] = {
    "published": AGENTS["published"],
    "unmasked": msgspec.structs.replace(AGENTS["published"], loss_mask="none"),
    "historical": AGENTS["historical"],
    "reference": AGENTS["reference"],
}
"""Agents under test: three that have a name, and ``published`` without its loss mask."""
FLIP = "action-flip"
CELLS: dict[str, tuple[str, float]] = {
    "live-0.001": ("live", 1e-3),
    "live-1": ("live", 1.0),
    "live-1000": ("live", 1e3),
    "pin-0.1": ("pin", 0.1),
    "pin-100": ("pin", 100.0),
    "pin-1000": ("pin", 1000.0),
    "hold-0.01": ("hold", 0.01),
    "hold-0.1": ("hold", 0.1),
    FLIP: ("live", 1.0),
}
"""Conditions: what is done to the learner (as in E1) and the reward scale; one has a change."""
THRESHOLD = 0.8
CROSSING_EVERY = 40
"""Iterations between the log rows from which the published crossings were read."""
LEVEL = 0.05
"""A candidate is excluded from a cohort below this probability, shared over the cohort's cells."""
LEAST = 6
"""Lifetimes of every cell without which no candidate is reported to fit."""

CohortName = Literal["reference-indexed", "historical"]
Part = Callable[[str], Frame]
"""Returns one candidate's lifetimes of a condition: a frame without axes."""


class Readout(NamedTuple):
    """A printed number, and how the same is read from our lifetimes."""

    title: str
    cohort: CohortName
    assay: str
    key: str
    """Of the published value."""
    cells: tuple[str, ...]
    """Conditions that it needs."""
    values: Callable[[Part], Floats]
    """One value for each lifetime [seeds]; of a geometry, the states [2, seeds, units]."""
    margin: float
    """Difference that is too small to matter, in the units of the value."""
    span: tuple[float, float] = (0.0, 1.0)
    """Values that an unseen lifetime may have (scores under random play aside, and bins in use of
    which no lifetime had more than three)."""
    statistic: Statistic = trimmed_mean
    bounds: bool = True
    """Whether the printed interval is placed as well as the printed value."""
    unit: float = 1.0
    """What numbers are divided by where they are shown."""

    @property
    def printed(self) -> Published:
        """What was printed."""
        return published.estimates(self.assay)[self.key]


def _score(cell: str) -> Callable[[Part], Floats]:
    return lambda part: tail20(part(cell))


def _change(name: str) -> Callable[[Part], Floats]:
    return lambda part: readouts(part(FLIP))[name]


def _back(part: Part) -> Floats:
    """Return the iterations from the flip back to the threshold, or to the end if never."""
    frame = part(FLIP)
    at, horizon = switch_of(frame), float(frame.iteration[-1]) - switch_of(frame)
    times = attainment(frame.iteration, frame.log("score"), frame.log("episodes"), THRESHOLD, at)
    return np.where(frame.completed, restricted_times(times, horizon), np.nan)


def _crossing(part: Part) -> Floats:
    """Return the interactions to the first row at the threshold; the whole lifetime if never."""
    frame = part("live-1")
    rows = frame.iteration % CROSSING_EVERY == 0
    each = frame.interactions // frame.iterations
    first = threshold_steps(
        frame.iteration[rows] * each, frame.log("rate_score")[..., rows], THRESHOLD
    )
    return np.where(frame.completed & np.isnan(first), float(frame.interactions), first)


def _gap(part: Part) -> Floats:
    """Return live minus pinned at scale 1,000 in the last row, in units of scaled reward."""
    live, pin = (1000.0 * last_row(part(cell), "mean_return") for cell in ("live-1000", "pin-1000"))
    return paired_differences(live, pin)


def _states(vector: str) -> Callable[[Part], Floats]:
    return lambda part: np.stack(
        [part(cell).state(f"recurrent/{vector}") for cell in ("live-1", "live-1000")]
    )


def _of_e1(cell: str) -> Readout:
    arm, scale = CELLS[cell]
    key = f"score/catch/{arm}/{scale:g}"
    title = f"E1 score, {arm} at {scale:g}"
    return Readout(title, "reference-indexed", "E1", key, (cell,), _score(cell), 0.02)


def _of_e3(title: str, key: str, values: Callable[[Part], Floats], margin: float) -> Readout:
    key = f"{key.partition(':')[0]}/{FLIP}/catch/rule{key.partition(':')[2]}"
    return Readout(f"E3 {title}", "reference-indexed", "E3", key, (FLIP,), values, margin)


def _displaced(vector: str) -> Readout:
    return Readout(
        f"E1 shift of terminal {vector} at 1000, in radii",
        "reference-indexed",
        "E1",
        f"displacement/catch/live/1000/{vector}",
        ("live-1", "live-1000"),
        _states(vector),
        # Cohorts drawn from few lifetimes repeat them, which makes radii some 10 % too small.
        margin=4.0,
        bounds=False,
    )


ReadoutKey = tuple[str, str]
"""A quantity, and the cell, vector or scale that it is about."""
READOUTS: dict[ReadoutKey, Readout] = {
    **{("score", cell): _of_e1(cell) for cell in CELLS if cell not in (FLIP, "live-1000")},
    ("score-e2", "live-0.001"): Readout(
        "E2 score, live at 0.001",
        "reference-indexed",
        "E2",
        "score/0.001/live",
        ("live-0.001",),
        _score("live-0.001"),
        0.02,
    ),
    ("bins", "live-1"): Readout(
        "E-IF effective bins, default",
        "reference-indexed",
        "E-IF",
        "bins/default",
        ("live-1",),
        lambda part: tail15(part("live-1"), "effective_bins"),
        0.05,
        span=(1.0, 5.0),
    ),
    ("auc", "action-flip"): _of_e3("area after the flip", "auc", _change("auc"), 0.02),
    ("final", "action-flip"): _of_e3("last tenth after the flip", "final", _change("final"), 0.02),
    ("back", "action-flip"): _of_e3(
        "iterations back to 0.8 after the flip", "rmd:/0.8", _back, 40.0
    )._replace(statistic=finite_mean, span=(0.0, 1500.0)),
    ("displacement", "h"): _displaced("h"),
    ("displacement", "c"): _displaced("c"),
    ("crossing", "live-1"): Readout(
        "exposure: iterations to 0.8 at unit scale",
        "historical",
        "exposure",
        "steps/episodic/rule",
        ("live-1",),
        _crossing,
        20 * 58.0,
        span=(0.0, 116_000.0),
        unit=58.0,
    ),
    ("gap", "1000"): Readout(
        "conventions: live − pinned at 1000, share of the span",
        "historical",
        "conventions",
        "gap/catch-1000/reference",
        ("live-1000", "pin-1000"),
        _gap,
        35.0,
        span=(-2000.0, 2000.0),
        unit=1750.0,
    ),
}
"""The printed numbers in which candidates differ."""
COHORTS: tuple[CohortName, ...] = ("reference-indexed", "historical")


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every condition and candidate of ``budget``."""
    if budget.agent:
        raise SpecError(f"--agent: {ID} compares all of them; choose among --arms")
    if budget.scales != (1.0,):
        raise SpecError("--scales: each cell has its own; choose among --conditions")
    budget.subject.require_agents("--rule")
    return [
        Cell(
            {"cell": cell, "arm": arm},
            tuple(_lifetime(budget, cell, arm, seed) for seed in range(budget.seeds)),
        )
        for cell in budget.conditions
        for arm in budget.arms
    ]


def _lifetime(budget: Budget, cell: str, arm: str, seed: int) -> RunSpec:
    """Return the lifetime of E1 or, half as long again, of E3 under one candidate."""
    learner = budget.subject.learner
    assert isinstance(learner, Disco)
    intervention, scale = CELLS[cell]
    change = None
    if cell == FLIP:
        budget = replace(budget, iterations=budget.iterations * 3 // 2)
        change = ActionFlip(at=switch(budget.iterations, budget.log_every))
    return make_run(
        budget,
        msgspec.structs.replace(learner, conventions=CANDIDATES[arm]),
        seed,
        scale=scale,
        interventions=resolve_interventions(budget, SCALE_ARMS[intervention]),
        change=change,
    )


class Fit(NamedTuple):
    """How one candidate meets one printed number."""

    ours: Estimate
    probability: float
    """Of printed numbers as far out as these; NaN without lifetimes."""
    seeds: Floats
    """One value for each lifetime [seeds]; none of a geometry."""


def analyse(frame: Frame) -> Results:
    """Place each printed number among those that cohorts of each candidate would print."""
    notes = note_missing(frame)
    arms = [str(arm) for arm in frame.axes["arm"]]
    fits: dict[tuple[ReadoutKey, str], Fit] = {}
    with collect_tail_warnings(notes):
        for name, readout in READOUTS.items():
            if set(readout.cells) <= set(frame.axes["cell"]):
                for i, arm in enumerate(arms):
                    fits[name, arm] = _fit(readout, _part(frame, i), len(frame.seeds))
    found = Estimates()
    for ((quantity, about), arm), fit in fits.items():
        seeds = fit.seeds if fit.ours.n and len(fit.seeds) else None
        found.add(quantity, fit.ours, {**_labels(quantity, about), "arm": arm}, seeds=seeds)
    for ((quantity, about), arm), fit in fits.items():
        labels = {"readout": quantity, "cell": about, "arm": arm}
        found.add("probability", without_interval(fit.probability, fit.ours.n), labels)
    tables, sentences = [_values(frame, fits, arms)], []
    if frame.rule != Disco().rule or not _as_published(frame):
        notes.append(
            "not placed among the published numbers, which are of disco103 and 2,000 "
            "iterations (3,000 with a change)"
        )
    else:
        judged = {cohort: _judged(fits, arms, cohort) for cohort in COHORTS}
        tables += [_probabilities(frame, fits, arms), _verdicts(frame, judged)]
        sentences = [verdict(cohort, each) for cohort, each in judged.items() if each]
    return make_results(ID, frame, found, tuple(tables), [*sentences, *notes])


def _labels(quantity: str, about: str) -> dict[str, Label]:
    """Return what a readout is about as a label."""
    if quantity == "gap":
        return {"scale": float(about)}
    return {"vector" if quantity == "displacement" else "cell": about}


def _as_published(frame: Frame) -> bool:
    """Tell whether the lifetimes of every condition have the published length."""
    usual = PRESETS["paper"].iterations
    lengths = {str(cell): frame.part(cell=cell).iterations for cell in frame.axes["cell"]}
    return all(
        length == (usual * 3 // 2 if cell == FLIP else usual) for cell, length in lengths.items()
    )


def _part(frame: Frame, arm: int) -> Part:
    name = frame.axes["arm"][arm]
    return lambda cell: frame.part(cell=cell, arm=name)


def _fit(readout: Readout, part: Part, seeds: int) -> Fit:
    values = readout.values(part)
    printed = readout.printed
    if values.ndim == 1:
        ours = estimate(values, seed_blocks(seeds, CORE_DRAWS), readout.statistic)
        whole = (printed.value, printed.low, printed.high)
        return Fit(
            ours,
            printed_probability(
                values,
                printed.n,
                whole if readout.bounds else (printed.value, math.nan, math.nan),
                readout.span,
                margin=readout.margin,
                statistic=readout.statistic,
            ),
            values,
        )
    states = values[:, np.isfinite(values).all(axis=(0, 2))]
    n = states.shape[1]
    if n < LEAST:  # with fewer, radii are mostly the noise of the draw
        return Fit(without_interval(math.nan, n), math.nan, np.empty(0))

    def shift(chosen: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> float:
        return float(displacement(states[:, chosen], 0)[1])

    ours = without_interval(shift(np.arange(n)), n)
    probability = statistic_probability(shift, n, printed.n, printed.value, readout.margin)
    return Fit(ours, probability, np.empty(0))


class Judged(NamedTuple):
    """How one candidate meets all printed numbers of a cohort."""

    arm: str
    cells: int
    """Printed numbers that could be placed."""
    n: int
    """Fewest lifetimes behind any printed number of the cohort; 0 if one could not be placed."""
    probability: float
    """The least of those that rest on enough lifetimes, adjusted for their number; 1 if none do."""
    worst: ReadoutKey
    """The readout that it belongs to."""

    @property
    def standing(self) -> Literal["excluded", "fits", "too few seeds to tell"]:
        """What follows."""
        if self.probability < LEVEL:
            return "excluded"
        return "fits" if self.n >= LEAST else "too few seeds to tell"


def _judged(
    fits: Mapping[tuple[ReadoutKey, str], Fit], arms: Sequence[str], cohort: CohortName
) -> list[Judged]:
    """Return every candidate that has lifetimes, judged by one cohort.

    The error is shared over all conditions of the cohort, run or not, and within a condition over
    what is read from it. A number excludes only if it rests on :data:`LEAST` lifetimes.
    """
    own = {name: readout for name, readout in READOUTS.items() if readout.cohort == cohort}
    shared = Counter(readout.cells[-1] for readout in own.values())
    found = []
    for arm in arms:
        counts = {name: fits[name, arm].ours.n if (name, arm) in fits else 0 for name in own}
        placed = [
            name
            for name in own
            if (name, arm) in fits and not math.isnan(fits[name, arm].probability)
        ]
        if not placed:
            continue
        adjusted = {
            name: len(shared) * shared[own[name].cells[-1]] * fits[name, arm].probability
            for name in placed
            if counts[name] >= LEAST
        }
        worst = min(adjusted, key=adjusted.__getitem__, default=placed[0])
        least = min(1.0, adjusted.get(worst, 1.0))
        fewest = min(counts.values()) if len(placed) == len(own) else 0
        found.append(Judged(arm, len(placed), fewest, least, worst))
    return found


def verdict(cohort: str, judged: Sequence[Judged]) -> str:
    """Return one sentence: which candidates a cohort fits, which it excludes, what is open."""
    by = {
        standing: [each for each in judged if each.standing == standing]
        for standing in ("fits", "excluded", "too few seeds to tell")
    }
    fitting, open_ones = by["fits"], by["too few seeds to tell"]
    if len(fitting) == 1 and not open_ones:
        text = f"{cohort} cohort: of these agents only {fitting[0].arm} fits"
    elif len(left := [each.arm for each in (*fitting, *open_ones)]) > 1:
        text = f"{cohort} cohort: undecided between {', '.join(left[:-1])} and {left[-1]}"
    elif left:
        text = f"{cohort} cohort: only {left[0]} is left, with too few seeds to say that it fits"
    else:
        text = f"{cohort} cohort: none of these agents fits"
    out = [
        f"{each.arm} ({READOUTS[each.worst].title}, p = {each.probability:.3f})"
        for each in by["excluded"]
    ]
    return f"{text}; excluded: {', '.join(out)}" if out else text


def _values(frame: Frame, fits: Mapping[tuple[ReadoutKey, str], Fit], arms: Sequence[str]) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            readout.title,
            readout.cohort,
            _shown(as_estimate(readout.printed), readout),
            *(_shown(fits[name, arm].ours, readout) for arm in arms),
        )
        for name, readout in READOUTS.items()
        if (name, arms[0]) in fits
    ]
    columns = (Column("Printed number"), Column("Cohort"), Column("Published", 3))
    return Table(
        f"{ID}-values",
        "What each candidate agent gives where candidates differ",
        (*columns, *(Column(arm, 3) for arm in arms)),
        tuple(rows),
        table_note(
            frame,
            "the same readout and estimator as the published number; a lifetime that never crosses "
            "counts with its whole length",
            CORE_DRAWS,
        ),
    )


def _probabilities(
    frame: Frame, fits: Mapping[tuple[ReadoutKey, str], Fit], arms: Sequence[str]
) -> Table:
    rows: list[tuple[Value, ...]] = []
    for name, readout in READOUTS.items():
        if (name, arms[0]) in fits:
            found = (fits[name, arm].probability for arm in arms)
            shown = (None if math.isnan(each) else each for each in found)
            rows.append((readout.title, readout.cohort, readout.printed.n, *shown))
    columns = (Column("Printed number"), Column("Cohort"), Column("Published n"))
    return Table(
        f"{ID}-distances",
        "How probable the printed numbers are under each candidate",
        (*columns, *(Column(arm, 3) for arm in arms)),
        tuple(rows),
        table_note(
            frame,
            "share of cohorts of the published size, drawn from our lifetimes, that print a value "
            "or a bound at least as far out, both tails; within the margin counts as equal",
            CORE_DRAWS,
        ),
        tells_n=False,
    )


def _verdicts(frame: Frame, judged: Mapping[CohortName, Sequence[Judged]]) -> Table:
    rows: list[tuple[Value, ...]] = [
        (cohort, each.arm, each.n, each.cells, each.probability, each.standing)
        for cohort, candidates in judged.items()
        for each in candidates
    ]
    return Table(
        f"{ID}-verdicts",
        "Which agent made which published cohort",
        (
            Column("Cohort"),
            Column("Agent"),
            Column("Fewest seeds"),
            Column("Numbers"),
            Column("Probability", 3),
            Column("Verdict"),
        ),
        tuple(rows),
        table_note(
            frame,
            "probability: the least of the cohort's numbers, adjusted for the number of conditions "
            "and for how many numbers are read from the same lifetimes; excluded: below "
            f"{LEVEL:g}, by numbers of at least {LEAST} seeds; fits: not excluded, with at least "
            f"{LEAST} seeds behind every number of the cohort (0: one could not be placed)",
            CORE_DRAWS,
        ),
        tells_n=False,
    )


def _shown(one: Estimate, readout: Readout) -> Estimate:
    unit = readout.unit
    return replace(one, value=one.value / unit, low=one.low / unit, high=one.high / unit)


_ALL = Budget(seeds=12, iterations=2000, arms=tuple(CANDIDATES), conditions=tuple(CELLS))

PRESETS = {
    "smoke": replace(
        _ALL, seeds=1, iterations=60, arms=("published", "historical"), conditions=("live-1", FLIP)
    ),
    "quick": replace(
        _ALL,
        seeds=2,
        iterations=600,
        arms=("published", "historical"),
        conditions=("live-1", "pin-1000", FLIP),
    ),
    "standard": replace(_ALL, seeds=6, arms=("published", "unmasked", "historical")),
    "paper": _ALL,
}

ASSAY = Assay(
    id=ID,
    name=ID,
    question="Which agent made which published cohort?",
    arms=tuple(CANDIDATES),
    tasks=("catch",),
    conditions=tuple(CELLS),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("score", "rate_score", "effective_bins", "episodes", "mean_return"),
    cohort=EVERY_AGENT,
)
