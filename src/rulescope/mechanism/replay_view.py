"""Replay: how old what a learner learns from is, around a change of the world.

Disco and DQN with three replay memories (as in the change assay) live through a change at half of
their lifetime. After every iteration the age of all that their replay holds, and of all that was
drawn for updates, is known from a ledger; beside it stands what first-in-first-out says it must be.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from rulescope.assays.analysis import exactly
from rulescope.assays.change.switch_readouts import change, switch
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.lifetime import Lifetime
from rulescope.mechanism.fifo_ages import Fifo, Floats
from rulescope.mechanism.replay_ledger import watched
from rulescope.mechanism.view_request import LOG_EVERY, Group, Inquiry, Look, Observed, View
from rulescope.spec.baseline_config import VARIANTS
from rulescope.spec.run_spec import Reset, RunSpec
from rulescope.stats import Estimate

ARMS = ("disco", "dqn", "dqn-28672", "dqn-cleared")
CONDITION = "action-flip"
PARTS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of ages that are kept."""
AFTER = (0, 50, 100, 250, 500)
"""Iterations since the switch at which the table tells the share from before it."""
PUBLISHED = 3000
"""Iterations of a lifetime in the published change assay."""


def stages(inquiry: Inquiry) -> list[list[Group]]:
    """Return one lifetime of each arm and seed, each on its own."""
    if inquiry.scales != (1.0,):
        raise SpecError("--scales: what a replay holds does not depend on it; leave it out")
    every = tuple(range(1, inquiry.iterations + 1))
    return [
        [
            Group({f"{arm}/{seed}": _run(inquiry, arm, seed)}, every)
            for arm in ARMS
            for seed in range(inquiry.seeds)
        ]
    ]


def _run(inquiry: Inquiry, arm: str, seed: int) -> RunSpec:
    at = switch(inquiry.iterations, LOG_EVERY)
    life = replace(inquiry.live(1.0, seed), change=change(CONDITION, at))
    if arm == "disco":
        return life
    cleared = arm == "dqn-cleared"
    return replace(
        life,
        learner=VARIANTS["dqn" if cleared else arm],
        interventions=(Reset(carrier="replay", at=at),) if cleared else (),
    )


def fifo(run: RunSpec) -> Fifo:
    """Return the replay of ``run`` as a rule of what it holds."""
    cleared = next((item.at for item in run.interventions if isinstance(item, Reset)), None)
    replay = run.learner.replay(run.lanes, run.steps)
    if replay is None:
        raise SpecError(f"learner: {run.learner.kind!r} has no replay")
    return Fifo(replay.capacity, replay.per_iteration, cleared)


def observer(lives: Mapping[str, Lifetime]) -> Look:
    """Return a look that reads the ledgers of all lifetimes."""
    books = {
        name: watched(life.learner, lambda life=life: life.iteration)  # type: ignore[misc]
        for name, life in lives.items()
    }

    def look(iteration: int) -> Arrays:
        found: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = {}
        for name, (ledger, length) in books.items():
            altered = lives[name].spec.change
            assert altered is not None
            since = iteration - altered.at
            held, drawn = ledger.held(length()), ledger.take()
            for kind, ages in (("held", held), ("drawn", drawn)):
                found[f"{name}/{kind}/count"] = np.array(float(len(ages)))
                found[f"{name}/{kind}/before"] = np.array(share_at_least(ages, since))
                found[f"{name}/{kind}/mean"] = np.array(_mean(ages))
                found[f"{name}/{kind}/quantiles"] = quantiles(ages)
        return found

    return look


def share_at_least(ages: np.ndarray[tuple[int], np.dtype[np.int64]], since: int) -> float:
    """Return the share of ``ages`` [n] from before a moment ``since`` iterations ago.

    What was stored in the iteration of that moment itself is from before it: a change comes after
    an iteration. NaN if there is nothing.
    """
    return float((ages >= since).mean()) if len(ages) else float("nan")


def quantiles(ages: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """Return the ages that ``PARTS`` of the entries do not exceed; NaN if there is nothing."""
    if not len(ages):
        return np.full(len(PARTS), np.nan)
    return np.quantile(ages, PARTS, method="inverted_cdf").astype(np.float64)


def _mean(ages: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    return float(ages.mean()) if len(ages) else float("nan")


def analyse(inquiry: Inquiry, observed: list[Observed]) -> Results:
    """Put what was measured beside what first-in-first-out says, here and as published."""
    at = switch(inquiry.iterations, LOG_EVERY)
    when = np.arange(1, inquiry.iterations + 1)
    series: dict[str, Floats] = {
        "iteration": when.astype(np.float64),
        "switch": np.array([float(at)]),
        "published": np.arange(1, PUBLISHED + 1, dtype=np.float64),
    }
    gathered: dict[str, list[Floats]] = {}
    runs: dict[str, RunSpec] = {}
    for one in observed:
        [(name, run)] = one.group.runs.items()
        arm = name.split("/")[0]
        runs[arm] = run
        for key, values in one.seen.items():
            gathered.setdefault(f"{arm}/{key.split('/', 2)[2]}", []).append(values)
        gathered.setdefault(f"{arm}/score", []).append(one.logs[name]["score"])
        series["logged"] = one.logs[name]["iteration"]
    series |= {f"measured/{key}": np.stack(values) for key, values in gathered.items()}
    found: dict[str, Estimate] = {}
    for arm, run in runs.items():
        rule, then = fifo(run), switch(PUBLISHED, LOG_EVERY)
        series[f"fifo/{arm}/before"] = rule.share_before(when, at)
        series[f"fifo/{arm}/mean"] = rule.mean_age(when)
        series[f"fifo/{arm}/quantiles"] = np.stack(
            [rule.age_quantile(when, part) for part in PARTS], axis=1
        )
        theirs = Fifo(rule.capacity, rule.each, None if rule.cleared is None else then)
        later = np.arange(1, PUBLISHED + 1)
        series[f"published/{arm}/before"] = theirs.share_before(later, then)
        for since in AFTER:
            if at + since <= inquiry.iterations:
                measured = series[f"measured/{arm}/held/before"][:, at + since - 1]
                found[f"before/{arm}/{since}"] = exactly(float(measured.mean()), inquiry.seeds)
        found[f"drawn/{arm}"] = exactly(_drawn_gap(series, arm, at), inquiry.seeds)
        found[f"uses/{arm}"] = exactly(_uses(series, arm, rule, at), inquiry.seeds)
        found[f"off/{arm}"] = exactly(_gap(series, arm), inquiry.seeds)
    return inquiry.results(VIEW, {"arm": tuple(runs)}, found, _table(inquiry, runs, found), series)


def _uses(series: Mapping[str, Floats], arm: str, rule: Fifo, at: int) -> float:
    """Return the draws up to the switch per entry stored up to then, mean over seeds.

    The newest of those entries are drawn after it, too; that is not counted.
    """
    drawn = series[f"measured/{arm}/drawn/count"][:, :at]
    return float(drawn.sum() / len(drawn) / (rule.each * at))


def _gap(series: Mapping[str, Floats], arm: str) -> float:
    """Return the largest difference between the measured and the expected share from before."""
    measured, expected = series[f"measured/{arm}/held/before"], series[f"fifo/{arm}/before"]
    gaps = np.abs(measured - expected)
    both = np.isfinite(gaps)
    empty = np.isnan(measured) == np.isnan(expected)
    return float(gaps[both].max(initial=0.0)) if empty.all() else float("inf")


def _drawn_gap(series: Mapping[str, Floats], arm: str, at: int) -> float:
    """Return how much more (or less) is drawn from before than is stored, mean after the switch."""
    gaps = series[f"measured/{arm}/drawn/before"] - series[f"fifo/{arm}/before"]
    known = gaps[:, at:][np.isfinite(gaps[:, at:])]
    return float(known.mean()) if len(known) else float("nan")


def _table(inquiry: Inquiry, runs: Mapping[str, RunSpec], found: Mapping[str, Estimate]) -> Table:
    shown = [since for since in AFTER if f"before/disco/{since}" in found]
    rows: list[tuple[Value, ...]] = []
    for arm, run in runs.items():
        rule = fifo(run)
        rows.append(
            (
                arm,
                rule.capacity,
                rule.each,
                rule.turnover,
                found[f"uses/{arm}"].value,
                *(found[f"before/{arm}/{since}"].value for since in shown),
                found[f"off/{arm}"].value,
                found[f"drawn/{arm}"].value,
            )
        )
    return Table(
        VIEW.label,
        "How old what is learned from is, around a change",
        (
            Column("Learner"),
            Column("Capacity"),
            Column("Stored an iteration"),
            Column("Turnover (iterations)", 1),
            Column("Draws of an entry", 1),
            *(Column(f"From before, {since} after", 3) for since in shown),
            Column("Largest gap to first in, first out", 6),
            Column("Drawn less stored", 4),
        ),
        tuple(rows),
        f"{inquiry.in_words()}, {CONDITION} after iteration "
        f"{switch(inquiry.iterations, LOG_EVERY):,}; "
        "entries are trajectories of Disco and transitions of DQN; draws of an entry: up to the "
        "change; from before: share of what is stored; drawn less stored: mean difference of the "
        "shares from before, after the change.",
        tells_n=False,
    )


VIEW = View(
    name="replay",
    title="How old what is learned from is, around a change of the world",
    question="How old is what a learner learns from when the world has changed?",
    default=Inquiry("disco103", (1.0,), 1, 1080),
    stages=stages,
    observer=observer,
    analyse=analyse,
)
