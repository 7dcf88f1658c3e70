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

from rulescope.assays.analysis import (
    adjusted,
    collect_tail_warnings,
    make_results,
    note_missing,
    table_note,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import NO_DISCO
from rulescope.assays.comparison_families import CARRY_CONTRASTS, OPEN_CARRY
from rulescope.assays.estimates import Estimates, Label, label_text
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Arm, Cell, make_runs, require_iterations, sweep
from rulescope.assays.marginals import DRAWS, Marginals
from rulescope.assays.open import open_gate
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.assays.subject import OPEN, make_subject
from rulescope.core.errors import SpecError
from rulescope.learners.learner_base import RunShape
from rulescope.learners.open_config import Open
from rulescope.run_spec import Evaluation, Pin, PinSteps, Reset, RunSpec
from rulescope.stats import exact_iqm

ID = "OPEN"
TASKS = ("gymnax-breakout", "gymnax-freeway")
GAMES = {"gymnax-breakout": "Breakout", "gymnax-freeway": "Freeway"}
ARMS = ("live", "zero", "reset", "adam", "zero-update")
PUBLISHED = ARMS[:4]
"""The other one is a control: the carry is zeroed after each PPO update, of 32 steps."""
SCALES = (0.1, 1.0, 10.0)
UNIT = 1.0
"""The scale at which Adam runs."""
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
        require_iterations(budget, "open", task, least=2)

    def runs(at: Mapping[str, Label]) -> tuple[RunSpec, ...]:
        arm, scale = str(at["arm"]), float(at["scale"])
        if arm == "adam" and scale != UNIT:
            return ()
        return make_open_runs(budget, arm, task=str(at["task"]), scale=scale, rule=rule)

    axes = {"task": budget.tasks, "arm": budget.arms, "scale": sorted(budget.scales)}
    cells = sweep(axes, runs)
    if not cells:
        raise SpecError("--scales: Adam runs at reward scale 1 alone; add 1")
    return cells


def _rule(budget: Budget) -> str | None:
    """Return the rule of all games, if it is not each one's own."""
    rule = budget.subject.rule
    if budget.subject.architecture != "open":
        raise SpecError(f"--rule: {rule!r} is no OPEN rule, such as open-multi")
    if budget.subject.own_rules:
        return None
    if rule == Open().rule and budget.tasks != TASKS[:1]:  # see `for_minatar`
        raise SpecError(f"--rule: {rule!r} is of Breakout alone; add --tasks {TASKS[0]}")
    return rule


def make_open_runs(
    budget: Budget, arm: str, *, task: str, scale: float, rule: str | None = None
) -> tuple[RunSpec, ...]:
    """Return the runs of ``arm``, one for each seed, with its intervention and an evaluation."""
    learner = Arm("open-adam") if arm == "adam" else Arm("open", rule=rule)
    plain = make_runs(budget, learner, task=task, scale=scale)
    return tuple(_with_intervention(run, arm) for run in plain)


def _with_intervention(plain: RunSpec, arm: str) -> RunSpec:
    """Return ``plain`` with an evaluation at the end, and with the intervention of ``arm``."""
    half = plain.iterations // 2  # 28 of 56
    steps = min(Evaluation().steps, max(Evaluation().steps * plain.iterations // WHOLE, 1))
    run = msgspec.structs.replace(plain, evaluation=Evaluation(steps=steps), keep=())
    match arm:
        case "zero":
            return msgspec.structs.replace(run, interventions=(PinSteps(carrier="recurrent"),))
        case "zero-update":
            return msgspec.structs.replace(run, interventions=(Pin(carrier="recurrent"),))
        case "reset":
            # Not a fork of the live run: that would keep its whole state, 3.6 MB, in its record.
            # Until the reset the two runs are one, which the engine executes once.
            once = Reset(carrier="recurrent", at=half)
            return msgspec.structs.replace(run, interventions=(once,))
        case _:
            return run


def analyse(frame: Frame) -> Results:
    """Estimate how each policy fares in the end, and the contrasts of the family."""
    places, notes = _places(frame), note_missing(frame)
    with collect_tail_warnings(notes):
        each = rates(frame)
        found = open_gate.gates(each, places)
        cells = Marginals.of({_name(*cell): values for cell, values in each.items()}, exact_iqm)
        for (arm, task, scale), values in each.items():
            level = cells.level(_name(arm, task, scale))
            found.add("rate", level, {"task": task, "arm": arm, "scale": scale}, seeds=values)
        _add_contrasts(found, frame, cells)
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
    return comparable(make_results(ID, frame, found, tables, notes), frame)


def comparable(results: Results, frame: Frame) -> Results:
    """Return ``results`` with the length of a lifetime as budgets tell it."""
    usual = RunShape()
    return replace(results, iterations=frame.interactions // (usual.lanes * usual.steps))


def _name(arm: str, task: str, scale: float) -> str:
    """Return the name of a cell among the marginals."""
    return f"{arm} {task} {scale:g}"


def rates(frame: Frame) -> dict[tuple[str, str, float], Floats]:
    """Return final reward rates [seeds] by arm, game and scale.

    Arms ``initial`` and ``random`` are the initial policy of the live learner, and the policy that
    takes all actions with equal probability.
    """
    tried = {name: _rate(frame, name) for name in POLICIES}
    arms = frame.axes["arm"]
    wanted = [("terminal", str(arm), str(arm)) for arm in arms]
    if "live" in arms:
        wanted += [(name, "live", name) for name in POLICIES[1:]]
    found: dict[tuple[str, str, float], Floats] = {}
    for policy, arm, name in wanted:
        for i, task in enumerate(frame.axes["task"]):
            for k, scale in enumerate(frame.axes["scale"]):
                place = (i, arms.index(arm), k)
                if frame.planned[place].any():
                    found[name, str(task), float(scale)] = tried[policy][place]
    return found


def _rate(frame: Frame, policy: str) -> Floats:
    """Return rewards per interaction [task, arm, scale, seeds]: all lanes together."""
    name = f"evaluation.{policy}/reward"
    if name not in frame.states:  # no run is completed
        return np.full(frame.completed.shape, np.nan)
    rewards = frame.state(name)
    found: Floats = rewards.sum(axis=-1) / (rewards.shape[-1] * max(frame.trial, 1))
    return found


def _add_contrasts(found: Estimates, frame: Frame, cells: Marginals) -> None:
    """Add every planned contrast, and those of the control; what cannot be estimated is NaN."""
    control = ("live-minus-zero-update",) if "zero-update" in frame.axes["arm"] else ()
    for contrast in (*CARRY_CONTRASTS, *control):
        for task in TASKS:
            for scale in SCALES:
                if (contrast, scale) != ("interaction", UNIT):
                    terms = _terms(contrast, task, scale)
                    estimate = cells.contrast(*terms, family=OPEN_CARRY.size)
                    labels: dict[str, Label] = {"task": task, "scale": scale}
                    found.add(contrast, estimate, labels, seeds=cells.by_seed(*terms))


def _terms(contrast: str, task: str, scale: float) -> tuple[list[str], list[str]]:
    """Return the cells that a contrast adds, and those that it subtracts."""
    if contrast == "interaction":
        live, zero = (_name(arm, task, scale) for arm in ("live", "zero"))
        live_unit, zero_unit = (_name(arm, task, UNIT) for arm in ("live", "zero"))
        return [live, zero_unit], [zero, live_unit]
    if contrast in CONTRASTS:
        first, second = CONTRASTS[contrast]
        return [_name(first, task, scale)], [_name(second, task, scale)]
    return [contrast], []  # soon after the reset no policy was evaluated: there is no such cell


def _row(found: Estimates, contrast: str, task: str, scale: float) -> list[Value] | None:
    one = found.lookup(contrast, task=task, scale=scale)
    if one is None or not one.n:
        return None
    shown = f"{scale:g} − 1" if contrast == "interaction" else label_text(scale)
    return [NAMES[contrast], GAMES[task], shown, one]


def _table(label: str, title: str, frame: Frame, rows: list[list[Value] | None]) -> Table:
    return Table(
        label,
        title,
        (Column("Contrast"), Column("Game"), Column("Scale"), Column("Estimate [adjusted CI]", 6)),
        tuple(tuple(row) for row in rows if row is not None),
        table_note(frame, f"differences of marginal centres; {RATE}", DRAWS, adjusted(OPEN_CARRY)),
    )


def _places(frame: Frame) -> list[tuple[str, float]]:
    """Return the games and scales that were run."""
    return [(str(task), float(at)) for task in frame.axes["task"] for at in frame.axes["scale"]]


def _endpoints(frame: Frame, found: Estimates) -> Table:
    kinds = ("live-minus-zero", "live-minus-zero-update", "interaction", "reset-minus-live")
    rows = [_row(found, kind, *place) for kind in kinds for place in _places(frame)]
    return _table("tab:open-0", "OPEN: terminal contrasts", frame, rows)


def _capability(frame: Frame, found: Estimates) -> Table:
    kinds = ("live-minus-initial", "live-minus-random")
    rows = [_row(found, kind, *place) for place in _places(frame) for kind in kinds]
    return _table("tab:open-1", "OPEN: what was learned at all", frame, rows)


def _levels(frame: Frame, found: Estimates) -> Table:
    run = found.labels("rate", "arm", planned=True)
    arms = [arm for arm in (*ARMS, *POLICIES[1:]) if arm in run]
    rows: list[tuple[Value, ...]] = [
        (
            GAMES[task],
            label_text(scale),
            *(found.lookup("rate", task=task, arm=arm, scale=scale) for arm in arms),
        )
        for task, scale in _places(frame)
    ]
    return Table(
        "open-levels",
        "OPEN: how policies fare in the end",
        (Column("Game"), Column("Scale"), *(Column(arm.capitalize(), 5) for arm in arms)),
        tuple(rows),
        table_note(frame, RATE, DRAWS),
    )


PAPER = Budget(
    seeds=8,
    iterations=8000,
    arms=PUBLISHED,
    scales=SCALES,
    tasks=TASKS,
    log_every=1,
    subject=make_subject(OPEN),
)
"""8,000 iterations of 58 interactions are 56 of OPEN's, and a remainder of 82 steps."""
_ONE_GAME = replace(PAPER, scales=(UNIT,), tasks=TASKS[:1])
PRESETS = {
    "smoke": replace(_ONE_GAME, seeds=1, iterations=300, arms=ARMS[:3]),
    "quick": replace(_ONE_GAME, seeds=2, iterations=1430),
    "standard": replace(PAPER, seeds=3),
    "paper": PAPER,
}

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
    tables=(
        "tab:open-0",
        "tab:open-1",
    ),
    figures=("open-carry",),
    cohort=NO_DISCO,
)
