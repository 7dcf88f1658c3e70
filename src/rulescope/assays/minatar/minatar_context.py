"""minatar-context: how do the rule, OPEN and PPO with Adam compare at one number of interactions?

Systems differ in more than their rule: in network, lanes, rollouts and number of updates. What they
have in common are the games and 464,000 interactions, so this is context and no attribution. What
counts is the reward of training in its last tenth, without the multiplier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rulescope.assays.analysis import adjusted, below, missing, noted, summed_up, tail10
from rulescope.assays.assay import Arm, Assay, Budget, Cell, enough, lifetimes
from rulescope.assays.cohorts import HISTORICAL
from rulescope.assays.comparison_families import CONTEXT_PAIRS, MINATAR_CONTEXT
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.marginals import DRAWS, Marginals
from rulescope.assays.open import open_carry
from rulescope.assays.open.open_carry import GAMES, TASKS, comparable
from rulescope.assays.results import Column, Results, Table, Value, scale_label
from rulescope.spec.run_spec import RunSpec
from rulescope.stats import Estimate, trimmed_mean

ID = "minatar-context"
ARMS = ("disco", "open", "open-adam", "disco-minatar")
PUBLISHED = ARMS[:3]
"""The other one is a control: the rule as in M1, in games of MinAtar's own settings."""
SCALES = (1e-2, 1e-1, 1.0, 1e1, 1e2)
PAIRS = (*CONTEXT_PAIRS, ("disco-minatar", "open"), ("disco-minatar", "open-adam"))
NAMES = {"disco": "{}", "open": "OPEN", "open-adam": "Adam", "disco-minatar": "{} (M1)"}
"""As printed; in braces, the rule under audit."""
RATE = (
    "reward per interaction of training without the multiplier, mean of the last 10 % of the log; "
    "integer-trimmed mean over seeds; Adam is PPO with Adam"
)


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every game, arm and scale of ``budget``."""
    return [
        Cell({"task": task, "arm": arm, "scale": scale}, _runs(budget, arm, task, scale))
        for task in budget.tasks
        for arm in budget.arms
        for scale in sorted(budget.scales)
    ]


def _runs(budget: Budget, arm: str, task: str, scale: float) -> tuple[RunSpec, ...]:
    """Return the lifetimes of a cell; those that the audit of OPEN has too are the same runs."""
    match arm:
        case "disco":
            return lifetimes(budget, Arm("disco"), task=task, scale=scale)
        case "disco-minatar":
            world = task.replace("gymnax", "minatar")
            return lifetimes(budget, Arm("disco"), task=world, scale=scale)
    enough(budget, arm, task, fewest=1)
    if arm == "open" and scale in open_carry.SCALES:
        return open_carry.audited(budget, "live", task=task, scale=scale)
    if arm == "open-adam" and scale == open_carry.UNIT:
        return open_carry.audited(budget, "adam", task=task, scale=scale)
    return lifetimes(budget, Arm(arm), task=task, scale=scale)


def analyse(frame: Frame) -> Results:
    """Estimate the rate of every cell and the differences between learners."""
    notes = missing(frame)
    with noted(notes):
        cells = Marginals.of(rates(frame), trimmed_mean)
        found = {f"rate/{name}": cells.level(name) for name in cells.cells}
        found |= _differences(frame, cells)
    made = (_table(frame, found), _levels(frame, found))
    tables = tuple(table for table in made if table.rows)
    series = {f"seeds/rate/{name}": values for name, values in cells.cells.items()}
    return comparable(summed_up(ID, frame, found, tables, notes, series), frame)


def rates(frame: Frame) -> dict[str, Floats]:
    """Return the last rates [seeds] by ``game/arm/scale``; learners log at intervals of theirs."""
    found: dict[str, Floats] = {}
    for i, task in enumerate(frame.axes["task"]):
        for j, arm in enumerate(frame.axes["arm"]):
            every = tail10(frame.part(task=task, arm=arm), "reward_rate")
            for k, scale in enumerate(frame.axes["scale"]):
                if frame.planned[i, j, k].any():
                    found[f"{task}/{arm}/{scale_label(float(scale))}"] = every[k]
    return found


def _differences(frame: Frame, cells: Marginals) -> dict[str, Estimate]:
    """Estimate the planned differences, and those of the control if it was run."""
    planned = [member.removeprefix(f"{ID}:") for member in MINATAR_CONTEXT.members]
    if "disco-minatar" in frame.axes["arm"]:
        planned += [
            f"disco-minatar{key.removeprefix('disco')}" for key in planned if "disco" in key
        ]
    found: dict[str, Estimate] = {}
    for key in planned:
        pair, task, scale = key.split("/")
        first, second = (f"{task}/{arm}/{scale}" for arm in pair.split("-minus-"))
        found[key] = cells.contrast([first], [second], family=MINATAR_CONTEXT.size)
    return found


def _scales(frame: Frame) -> list[str]:
    return [scale_label(float(scale)) for scale in frame.axes["scale"]]


def _table(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    pairs = {
        f"{first}-minus-{second}": f"{NAMES[first]} − {NAMES[second]}".format(frame.subject)
        for first, second in PAIRS
        if {first, second} <= set(frame.axes["arm"])
    }
    rows: list[tuple[Value, ...]] = []
    for task in map(str, frame.axes["task"]):
        for scale in _scales(frame):
            cells = [found.get(f"{pair}/{task}/{scale}") for pair in pairs]
            if any(one is not None and one.n for one in cells):
                rows.append((GAMES[task], scale, *cells))
    return Table(
        "tab:minatar-context",
        "MinAtar: learners at one number of interactions",
        (Column("Game"), Column("Scale"), *(Column(name, 5) for name in pairs.values())),
        tuple(rows),
        below(frame, f"differences of marginal centres; {RATE}", DRAWS, adjusted(MINATAR_CONTEXT)),
    )


def _levels(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    arms = [str(arm) for arm in frame.axes["arm"]]
    rows = tuple(
        (GAMES[task], scale, *(found.get(f"rate/{task}/{arm}/{scale}") for arm in arms))
        for task in map(str, frame.axes["task"])
        for scale in _scales(frame)
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
        below(frame, RATE, DRAWS),
    )


_ONE = Budget(seeds=1, iterations=8000, arms=PUBLISHED, scales=SCALES, tasks=TASKS, log_every=40)

PRESETS = {
    "smoke": replace(_ONE, iterations=160, scales=(1.0,), tasks=TASKS[:1]),
    "quick": replace(_ONE, iterations=1440, scales=(0.01, 1.0, 100.0), tasks=TASKS[:1]),
    "standard": replace(_ONE, seeds=3, iterations=4000, tasks=TASKS[:1]),
    "paper": replace(_ONE, seeds=8),
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
    figures=("minatar-context",),
    cohort=HISTORICAL,
)
