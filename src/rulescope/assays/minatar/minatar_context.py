"""minatar-context: how do the rule, OPEN and PPO with Adam compare at one number of interactions?

Systems differ in more than their rule: in network, lanes, rollouts and number of updates. What they
have in common are the games and 464,000 interactions, so this is context and no attribution. What
counts is the reward of training in its last tenth, without the multiplier.
"""

from __future__ import annotations

from dataclasses import replace

from rulescope.assays.analysis import (
    adjusted,
    collect_tail_warnings,
    make_results,
    note_missing,
    table_note,
    tail10,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.cohorts import HISTORICAL
from rulescope.assays.comparison_families import CONTEXT_PAIRS, MINATAR_CONTEXT
from rulescope.assays.estimates import Estimates, Label, label_text
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Arm, Cell, make_runs, require_iterations, sweep
from rulescope.assays.marginals import DRAWS, Marginals
from rulescope.assays.open import open_carry
from rulescope.assays.open.open_carry import GAMES, TASKS, comparable
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.run_spec import RunSpec
from rulescope.stats import trimmed_mean

ID = "minatar-context"
ARMS = ("rule", "open", "open-adam", "rule-minatar")
PUBLISHED = ARMS[:3]
"""The other one is a control: the rule as in M1, in games of MinAtar's own settings."""
SCALES = (1e-2, 1e-1, 1.0, 1e1, 1e2)
PAIRS = (*CONTEXT_PAIRS, ("rule-minatar", "open"), ("rule-minatar", "open-adam"))
NAMES = {"rule": "{}", "open": "OPEN", "open-adam": "Adam", "rule-minatar": "{} (M1)"}
"""As printed; in braces, the rule under audit."""
RATE = (
    "reward per interaction of training without the multiplier, mean of the last 10 % of the log; "
    "integer-trimmed mean over seeds; Adam is PPO with Adam"
)


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every game, arm and scale of ``budget``."""
    return sweep(
        {"task": budget.tasks, "arm": budget.arms, "scale": sorted(budget.scales)},
        lambda at: _runs(budget, str(at["arm"]), str(at["task"]), float(at["scale"])),
    )


def _runs(budget: Budget, arm: str, task: str, scale: float) -> tuple[RunSpec, ...]:
    """Return the lifetimes of a cell; those that the audit of OPEN has too are the same runs."""
    match arm:
        case "rule":
            return make_runs(budget, Arm("rule"), task=task, scale=scale)
        case "rule-minatar":
            world = task.replace("gymnax", "minatar")
            return make_runs(budget, Arm("rule"), task=world, scale=scale)
    require_iterations(budget, arm, task, least=1)
    if arm == "open" and scale in open_carry.SCALES:
        return open_carry.make_open_runs(budget, "live", task=task, scale=scale)
    if arm == "open-adam" and scale == open_carry.UNIT:
        return open_carry.make_open_runs(budget, "adam", task=task, scale=scale)
    return make_runs(budget, Arm(arm), task=task, scale=scale)


def analyse(frame: Frame) -> Results:
    """Estimate the rate of every cell and the differences between learners."""
    notes = note_missing(frame)
    with collect_tail_warnings(notes):
        each = rates(frame)
        cells = Marginals.of(
            {_name(*place): values for place, values in each.items()}, trimmed_mean
        )
        found = Estimates()
        for (task, arm, scale), values in each.items():
            level = cells.level(_name(task, arm, scale))
            found.add("rate", level, {"task": task, "arm": arm, "scale": scale}, seeds=values)
        _add_differences(found, frame, cells)
    made = (_table(frame, found), _levels(frame, found))
    tables = tuple(table for table in made if table.rows)
    return comparable(make_results(ID, frame, found, tables, notes), frame)


def _name(task: str, arm: str, scale: float) -> str:
    """Return the name of a cell among the marginals."""
    return f"{task} {arm} {scale:g}"


def rates(frame: Frame) -> dict[tuple[str, str, float], Floats]:
    """Return the last rates [seeds] by game, arm and scale; learners differ in log intervals."""
    found: dict[tuple[str, str, float], Floats] = {}
    for i, task in enumerate(frame.axes["task"]):
        for j, arm in enumerate(frame.axes["arm"]):
            every = tail10(frame.part(task=task, arm=arm), "reward_rate")
            for k, scale in enumerate(frame.axes["scale"]):
                if frame.planned[i, j, k].any():
                    found[str(task), str(arm), float(scale)] = every[k]
    return found


def _add_differences(found: Estimates, frame: Frame, cells: Marginals) -> None:
    """Add the planned differences, and those of the control if it was run."""
    control = [("rule-minatar", second) for first, second in CONTEXT_PAIRS if first == "rule"]
    pairs = [*CONTEXT_PAIRS, *(control if "rule-minatar" in frame.axes["arm"] else ())]
    for first, second in pairs:
        for task in TASKS:
            for scale in SCALES:
                terms = [_name(task, first, scale)], [_name(task, second, scale)]
                difference = cells.contrast(*terms, family=MINATAR_CONTEXT.size)
                labels: dict[str, Label] = {"task": task, "scale": scale}
                seeds = cells.by_seed(*terms)
                found.add(f"{first}-minus-{second}", difference, labels, seeds=seeds)


def _table(frame: Frame, found: Estimates) -> Table:
    pairs = {
        f"{first}-minus-{second}": f"{NAMES[first]} − {NAMES[second]}".format(frame.subject)
        for first, second in PAIRS
        if {first, second} <= set(frame.axes["arm"])
    }
    rows: list[tuple[Value, ...]] = []
    for task in map(str, frame.axes["task"]):
        for scale in frame.axes["scale"]:
            cells = [found.lookup(pair, task=task, scale=scale) for pair in pairs]
            if any(one is not None and one.n for one in cells):
                rows.append((GAMES[task], label_text(scale), *cells))
    return Table(
        "tab:minatar-context",
        "MinAtar: learners at one number of interactions",
        (Column("Game"), Column("Scale"), *(Column(name, 5) for name in pairs.values())),
        tuple(rows),
        table_note(
            frame, f"differences of marginal centres; {RATE}", DRAWS, adjusted(MINATAR_CONTEXT)
        ),
    )


def _levels(frame: Frame, found: Estimates) -> Table:
    arms = [str(arm) for arm in frame.axes["arm"]]
    rows = tuple(
        (
            GAMES[task],
            label_text(scale),
            *(found.lookup("rate", task=task, arm=arm, scale=scale) for arm in arms),
        )
        for task in map(str, frame.axes["task"])
        for scale in frame.axes["scale"]
    )
    return Table(
        "minatar-context-levels",
        "MinAtar: reward rates at the end of training",
        (
            Column("Game"),
            Column("Scale"),
            *(Column(NAMES[arm].format(frame.subject), 5) for arm in arms),
        ),
        rows,
        table_note(frame, RATE, DRAWS),
    )


PAPER = Budget(seeds=8, iterations=8000, arms=PUBLISHED, scales=SCALES, tasks=TASKS, log_every=40)
_ONE_GAME = replace(PAPER, seeds=1, tasks=TASKS[:1])
PRESETS = {
    "smoke": replace(_ONE_GAME, iterations=160, scales=(1.0,)),
    "quick": replace(_ONE_GAME, iterations=1440, scales=(0.01, 1.0, 100.0)),
    "standard": replace(_ONE_GAME, seeds=3, iterations=4000),
    "paper": PAPER,
}

ASSAY = Assay(
    id=ID,
    name="minatar-context",
    question="How do the rule, OPEN and PPO with Adam compare at one number of interactions?",
    arms=ARMS,
    tasks=TASKS,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    columns=("reward_rate",),
    states=(),
    tables=("tab:minatar-context",),
    figures=("minatar-context",),
    cohort=HISTORICAL,
)
