"""OPEN, open-carry: does a learned optimiser need what it remembers of each parameter?

OPEN's GRU has a carry for every parameter of a PPO agent. It is kept at zero in every step of the
optimiser (zero), or set to zero once, half-way through the lifetime of the live learner, which then
goes on (reset). What counts is how the policy fares when the lifetime is over: it plays new games
for unscaled rewards, and nothing is learned. Adam is there for reference.

The capability gate (:mod:`rulescope.assays.open.open_gate`) comes before the contrasts: every live
lifetime must end above its initial policy and above the random policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np

from rulescope.assays.analysis import adjusted, below, missing, noted, summed_up
from rulescope.assays.assay import Arm, Assay, Budget, Cell, enough, lifetimes
from rulescope.assays.cohorts import NO_DISCO
from rulescope.assays.comparison_families import OPEN_CARRY
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.marginals import DRAWS, Marginals
from rulescope.assays.open import open_gate
from rulescope.assays.results import Column, Results, Table, Value, scale_label
from rulescope.core.errors import SpecError
from rulescope.rules.loading import CONTENT
from rulescope.spec.learner_base import RunShape
from rulescope.spec.open_config import Open
from rulescope.spec.run_spec import Evaluation, Fork, Pin, PinSteps, Reset, RunSpec
from rulescope.stats import Estimate, exact_iqm

ID = "OPEN"
TASKS = ("gymnax-breakout", "gymnax-freeway")
GAMES = {"gymnax-breakout": "Breakout", "gymnax-freeway": "Freeway"}
ARMS = ("live", "zero", "reset", "adam", "zero-update")
PUBLISHED = ARMS[:4]
"""The other one is a control: the carry is zeroed after each PPO update, of 32 steps."""
SCALES = (0.1, 1.0, 10.0)
UNIT = 1.0
"""The scale at which Adam lives."""
OWN_RULE = "open"
"""Of a budget: each game has the rule that was trained on it."""
POLICIES = ("terminal", "initial", "random")
WHOLE = 56
"""Iterations of a published lifetime, after which policies are tried for as long as published."""
RATE = (
    "reward per interaction in the game's own units, of a frozen policy on new games; exact "
    "interquartile mean over seeds"
)
GATE = (
    "Lifetimes whose frozen policy earns more per interaction on new games than the policy that "
    "the lifetime started from, and than the random policy; passed: all of them, above both "
    "(published: 8/8 in every cell)."
)
CONTRASTS = {
    "live-minus-zero": ("live", "zero"),
    "live-minus-zero-update": ("live", "zero-update"),
    "reset-minus-live": ("reset", "live"),
    "live-minus-initial": ("live", "initial"),
    "live-minus-random": ("live", "random"),
}
NAMES = {
    "live-minus-zero": "Live − zero",
    "live-minus-zero-update": "Live − zero after each PPO update",
    "interaction": "Scale interaction",
    "reset-minus-live": "Reset − live (final)",
    "live-minus-initial": "Live − initial",
    "live-minus-random": "Live − random",
}


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every game, arm and scale of ``budget``; Adam has scale 1 alone."""
    rule = _rule(budget)
    for task in budget.tasks:
        enough(budget, "open", task, fewest=2)
    cells = [
        Cell(
            {"task": task, "arm": arm, "scale": scale},
            audited(budget, arm, task=task, scale=scale, rule=rule),
        )
        for task in budget.tasks
        for arm in budget.arms
        for scale in sorted(budget.scales)
        if arm != "adam" or scale == UNIT
    ]
    if not cells:
        raise SpecError("--scales: Adam lives at reward scale 1 alone; add 1")
    return cells


def _rule(budget: Budget) -> str | None:
    """Return the rule of all games, if it is not each one's own."""
    if budget.rule == OWN_RULE:
        return None
    if budget.subject is not None or not budget.rule.startswith(("open-", CONTENT)):
        raise SpecError(f"--rule: {budget.rule!r} is no OPEN rule, such as open-multi")
    if budget.rule == Open().rule and budget.tasks != TASKS[:1]:  # see `for_minatar`
        raise SpecError(f"--rule: {budget.rule!r} is of Breakout alone; add --tasks {TASKS[0]}")
    return budget.rule


def audited(
    budget: Budget, arm: str, *, task: str, scale: float, rule: str | None = None
) -> tuple[RunSpec, ...]:
    """Return the lifetimes of ``arm``, one for each seed, with what the audit asks of them."""
    who = Arm("open-adam") if arm == "adam" else Arm("open", rule=rule)
    return tuple(_treated(run, arm) for run in lifetimes(budget, who, task=task, scale=scale))


def _treated(plain: RunSpec, arm: str) -> RunSpec:
    """Return ``plain`` with a trial in the end, and with what is done to it in ``arm``."""
    half = plain.iterations // 2  # 28 of 56
    steps = min(Evaluation().steps, max(Evaluation().steps * plain.iterations // WHOLE, 1))
    run = msgspec.structs.replace(plain, evaluation=Evaluation(steps=steps), keep=())
    live = msgspec.structs.replace(run, marks=(half,) if half else ())
    match arm:
        case "live":
            return live
        case "zero":
            return msgspec.structs.replace(run, interventions=(PinSteps(carrier="recurrent"),))
        case "zero-update":
            return msgspec.structs.replace(run, interventions=(Pin(carrier="recurrent"),))
        case "reset":
            once = Reset(carrier="recurrent", at=half)
            origin = Fork(run=live, at=half)
            return msgspec.structs.replace(run, origin=origin, interventions=(once,))
        case _:
            return run


def analyse(frame: Frame) -> Results:
    """Estimate how each policy fares in the end, and the contrasts of the family."""
    places, notes = _places(frame), missing(frame)
    with noted(notes):
        each = rates(frame)
        found = open_gate.gates(each, places)
        cells = Marginals.of(each, exact_iqm)
        found |= {f"rate/{_turned(name)}": cells.level(name) for name in cells.cells}
        found |= _contrasts(frame, cells)
    gate = open_gate.summary(found, places, GAMES)
    notes[:0] = [gate] if gate else []
    notes.append(
        "6 of 34 planned contrasts, reset minus live soon after the reset, are not estimable: "
        "policies are tried when lifetimes are over; they stay in the family"
    )
    made = (
        open_gate.table(found, places, GAMES, GATE),
        _capability(frame, found),
        _endpoints(frame, found),
        _levels(frame, found),
    )
    tables = tuple(table for table in made if table.rows)
    series = {f"seeds/rate/{_turned(name)}": values for name, values in cells.cells.items()}
    return comparable(summed_up(ID, frame, found, tables, notes, series), frame)


def comparable(results: Results, frame: Frame) -> Results:
    """Return ``results`` with the length of a lifetime as budgets tell it."""
    usual = RunShape()
    return replace(results, iterations=frame.interactions // (usual.lanes * usual.steps))


def rates(frame: Frame) -> dict[str, Floats]:
    """Return reward rates [seeds] in the end, by ``arm/game/scale``.

    Arms ``initial`` and ``random`` are the policies that the live learner was born with, and that
    takes all actions alike.
    """
    tried = {name: _rate(frame, name) for name in POLICIES}
    arms = frame.axes["arm"]
    wanted = [("terminal", str(arm), str(arm)) for arm in arms]
    if "live" in arms:
        wanted += [(name, "live", name) for name in POLICIES[1:]]
    found: dict[str, Floats] = {}
    for policy, arm, name in wanted:
        for i, task in enumerate(frame.axes["task"]):
            for k, scale in enumerate(frame.axes["scale"]):
                place = (i, arms.index(arm), k)
                if frame.planned[place].any():
                    found[f"{name}/{task}/{scale_label(float(scale))}"] = tried[policy][place]
    return found


def _rate(frame: Frame, policy: str) -> Floats:
    """Return rewards per interaction [task, arm, scale, seeds]: all lanes together."""
    name = f"evaluation.{policy}/reward"
    if name not in frame.states:  # nobody has lived yet
        return np.full(frame.lived.shape, np.nan)
    rewards = frame.state(name)
    found: Floats = rewards.sum(axis=-1) / (rewards.shape[-1] * max(frame.trial, 1))
    return found


def _turned(name: str) -> str:
    """Return ``game/arm/scale`` for ``arm/game/scale``."""
    arm, task, scale = name.split("/")
    return f"{task}/{arm}/{scale}"


def _contrasts(frame: Frame, cells: Marginals) -> dict[str, Estimate]:
    """Estimate every planned contrast, and those of the control; what cannot be is NaN."""
    planned = [member.removeprefix(f"{ID}:") for member in OPEN_CARRY.members]
    if "zero-update" in frame.axes["arm"]:
        effects = [key for key in planned if key.startswith("live-minus-zero/")]
        planned += [key.replace("zero", "zero-update") for key in effects]
    found: dict[str, Estimate] = {}
    for key in planned:
        contrast, task, scale = key.split("/")
        if contrast == "interaction":
            at, unit = (
                [f"{arm}/{task}/{each}" for arm in ("live", "zero")] for each in (scale, "1")
            )
            terms = ([at[0], unit[1]], [at[1], unit[0]])
        elif contrast in CONTRASTS:
            first, second = CONTRASTS[contrast]
            terms = ([f"{first}/{task}/{scale}"], [f"{second}/{task}/{scale}"])
        else:  # soon after the reset nobody was tried
            terms = ([key], [])
        found[key] = cells.contrast(*terms, family=OPEN_CARRY.size)
    return found


def _row(found: Mapping[str, Estimate], contrast: str, task: str, scale: str) -> list[Value] | None:
    one = found.get(f"{contrast}/{task}/{scale}")
    if one is None or not one.n:
        return None
    shown = f"{scale} − 1" if contrast == "interaction" else scale
    return [NAMES[contrast], GAMES[task], shown, one]


def _table(label: str, title: str, frame: Frame, rows: list[list[Value] | None]) -> Table:
    return Table(
        label,
        title,
        (Column("Contrast"), Column("Game"), Column("Scale"), Column("Estimate [adjusted CI]", 6)),
        tuple(tuple(row) for row in rows if row is not None),
        below(frame, f"differences of marginal centres; {RATE}", DRAWS, adjusted(OPEN_CARRY)),
    )


def _places(frame: Frame) -> list[tuple[str, str]]:
    """Return the games and scales that were run."""
    scales = [scale_label(float(scale)) for scale in frame.axes["scale"]]
    return [(str(task), scale) for task in frame.axes["task"] for scale in scales]


def _endpoints(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    kinds = ("live-minus-zero", "live-minus-zero-update", "interaction", "reset-minus-live")
    rows = [_row(found, kind, *place) for kind in kinds for place in _places(frame)]
    return _table("tab:open-0", "OPEN: terminal contrasts", frame, rows)


def _capability(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    kinds = ("live-minus-initial", "live-minus-random")
    rows = [_row(found, kind, *place) for place in _places(frame) for kind in kinds]
    return _table("tab:open-1", "OPEN: what was learned at all", frame, rows)


def _levels(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    arms = [arm for arm in (*ARMS, *POLICIES[1:]) if any(f"/{arm}/" in key for key in found)]
    rows: list[tuple[Value, ...]] = [
        (GAMES[task], scale, *(found.get(f"rate/{task}/{arm}/{scale}") for arm in arms))
        for task, scale in _places(frame)
    ]
    return Table(
        "open-levels",
        "OPEN: how policies fare in the end",
        (Column("Game"), Column("Scale"), *(Column(arm.capitalize(), 5) for arm in arms)),
        tuple(rows),
        below(frame, RATE, DRAWS),
    )


_ONE = Budget(
    seeds=1,
    iterations=8000,
    arms=PUBLISHED,
    scales=SCALES,
    tasks=TASKS,
    log_every=1,
    rule=OWN_RULE,
)

PRESETS = {
    "smoke": replace(_ONE, iterations=300, arms=ARMS[:3], scales=(UNIT,), tasks=TASKS[:1]),
    "quick": replace(_ONE, seeds=2, iterations=1430, scales=(UNIT,), tasks=TASKS[:1]),
    "standard": replace(_ONE, seeds=3),
    "paper": replace(_ONE, seeds=8),
}
"""8,000 iterations of 58 interactions are 56 of OPEN's, and a remainder of 82 steps."""

ASSAY = Assay(
    id=ID,
    name="open-carry",
    question="Does a learned optimiser need what it remembers of each parameter?",
    arms=ARMS,
    tasks=TASKS,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=(),
    states=tuple(f"evaluation.{policy}/reward" for policy in POLICIES),
    figures=("open-carry",),
    cohort=NO_DISCO,
)
