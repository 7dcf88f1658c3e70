"""Replay view: age of replayed experience around a change of the world.

The rule's learner, and DQN with three replay memories (as in the change assay), run through a
change at half of their lifetime. After every iteration a ledger gives the ages of all entries of
the replay and of all sampled ones; the ages expected from first in, first out are computed beside
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from msgspec.structs import replace

from rulescope.assays.analysis import without_interval
from rulescope.assays.change.switch_readouts import change, switch
from rulescope.assays.estimates import Estimates
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.learners.baseline_config import VARIANTS
from rulescope.lifetime import Lifetime
from rulescope.mechanism.replay_ages import Fifo, Floats, Ints, attach_ledger
from rulescope.mechanism.replay_figure import CAPTION, draw_replay
from rulescope.mechanism.view_request import (
    LOG_EVERY,
    Observations,
    Observer,
    RunGroup,
    View,
    ViewRequest,
)
from rulescope.render.arm_styles import arm_name
from rulescope.render.display_names import subject_name
from rulescope.run_spec import Reset, RunSpec

RULE = "rule"
"""The arm of the rule under audit (views of earlier versions call it ``disco``)."""
ARMS = (RULE, "dqn", "dqn-28672", "dqn-cleared")
CONDITION = "action-flip"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Levels of the quantiles of ages."""
TABLE_DELAYS = (0, 50, 100, 250, 500)
"""Iterations since the change at which the table has the share from before it."""
PUBLISHED_ITERATIONS = 3000
"""Length of a lifetime in the published change assay."""


def stages(request: ViewRequest) -> list[list[RunGroup]]:
    """Return one lifetime of each arm and seed, each in a group of its own."""
    if request.scales != (1.0,):
        raise SpecError("--scales: the replay view does not depend on it; leave it out")
    every = tuple(range(1, request.iterations + 1))
    return [
        [
            RunGroup({f"{arm}/{seed}": _run(request, arm, seed)}, every)
            for arm in ARMS
            for seed in range(request.seeds)
        ]
    ]


def _run(request: ViewRequest, arm: str, seed: int) -> RunSpec:
    at = switch(request.iterations, LOG_EVERY)
    run = replace(request.run_without_intervention(1.0, seed), change=change(CONDITION, at))
    if arm == RULE:
        return run
    cleared = arm == "dqn-cleared"
    return replace(
        run,
        learner=VARIANTS["dqn" if cleared else arm],
        interventions=(Reset(carrier="replay", at=at),) if cleared else (),
    )


def expected_ages(run: RunSpec) -> Fifo:
    """Return the ages that first in, first out implies for the replay of ``run``."""
    cleared = next((item.at for item in run.interventions if isinstance(item, Reset)), None)
    replay = run.learner.replay(run.lanes, run.steps)
    if replay is None:
        raise SpecError(f"learner: {run.learner.kind!r} has no replay")
    return Fifo(replay.capacity, replay.per_iteration, cleared)


def attach_observer(lifetimes: Mapping[str, Lifetime]) -> Observer:
    """Return an observer that reads the ledgers of all lifetimes."""
    ledgers = {
        name: attach_ledger(lifetime.learner, partial(getattr, lifetime, "iteration"))
        for name, lifetime in lifetimes.items()
    }

    def observe(iteration: int) -> Arrays:
        found: dict[str, Floats] = {}
        for name, (ledger, length) in ledgers.items():
            world_change = lifetimes[name].spec.change
            assert world_change is not None
            since = iteration - world_change.at
            ages = {"held": ledger.stored_ages(length()), "drawn": ledger.take_sampled_ages()}
            for kind, of_entries in ages.items():
                for statistic, value in _summarise(of_entries, since).items():
                    found[f"{name}/{kind}/{statistic}"] = value
        return found

    return observe


def _summarise(ages: Ints, since: int) -> dict[str, Floats]:
    """Return statistics of ``ages`` [n]; all but the count are NaN if n is 0.

    ``before`` is the share from before a change ``since`` iterations ago. A change comes after an
    iteration, so entries stored in that iteration itself are from before it.
    """
    count = {"count": np.array(float(len(ages)))}
    if not len(ages):
        nan = np.array(np.nan)
        return count | {"before": nan, "mean": nan, "quantiles": np.full(len(QUANTILES), np.nan)}
    quantiles = np.quantile(ages, QUANTILES, method="inverted_cdf")
    return count | {
        "before": np.array((ages >= since).mean()),
        "mean": np.array(ages.mean()),
        "quantiles": quantiles.astype(np.float64),
    }


def analyse(request: ViewRequest, observations: list[Observations]) -> Results:
    """Compare measured ages with those of first in, first out, here and at published length."""
    at = switch(request.iterations, LOG_EVERY)
    iterations = np.arange(1, request.iterations + 1)
    published = np.arange(1, PUBLISHED_ITERATIONS + 1)
    series: dict[str, Floats] = {
        "iteration": iterations.astype(np.float64),
        "switch": np.array([float(at)]),
        "published": published.astype(np.float64),
    }
    measured: dict[str, list[Floats]] = {}
    runs: dict[str, RunSpec] = {}
    for one in observations:
        [(name, run)] = one.group.runs.items()
        arm = name.split("/")[0]
        runs[arm] = run
        for key, values in one.values.items():
            measured.setdefault(f"{arm}/{key.split('/', 2)[2]}", []).append(values)
        measured.setdefault(f"{arm}/score", []).append(one.logs[name]["score"])
        series["logged"] = one.logs[name]["iteration"]
    series |= {f"measured/{key}": np.stack(of_seeds) for key, of_seeds in measured.items()}
    estimates = Estimates()
    for arm, run in runs.items():
        fifo = expected_ages(run)
        series[f"fifo/{arm}/before"] = fifo.share_before(iterations, at)
        series[f"fifo/{arm}/mean"] = fifo.mean_age(iterations)
        series[f"fifo/{arm}/quantiles"] = np.stack(
            [fifo.age_quantile(iterations, level) for level in QUANTILES], axis=1
        )
        then = switch(PUBLISHED_ITERATIONS, LOG_EVERY)
        longer = Fifo(fifo.capacity, fifo.each, None if fifo.cleared is None else then)
        series[f"published/{arm}/before"] = longer.share_before(published, then)
        for delay in TABLE_DELAYS:
            if at + delay <= request.iterations:
                shares = series[f"measured/{arm}/held/before"][:, at + delay - 1]
                share = without_interval(float(shares.mean()), request.seeds)
                estimates.add("before", share, {"arm": arm, "delay": float(delay)})
        summary = {
            "drawn": _mean_sampling_gap(series, arm, at),
            "uses": _samples_per_entry(series, arm, fifo, at),
            "off": _largest_gap(series, arm),
        }
        for kind, value in summary.items():
            estimates.add(kind, without_interval(value, request.seeds), {"arm": arm})
    table = _table(request, runs, estimates)
    return request.results(VIEW, {"arm": tuple(runs)}, estimates, table, series)


def _samples_per_entry(series: Mapping[str, Floats], arm: str, fifo: Fifo, at: int) -> float:
    """Return the samples up to the change per entry stored up to then, mean over seeds.

    Samples of those entries after the change are not counted.
    """
    sampled = series[f"measured/{arm}/drawn/count"][:, :at]
    return float(sampled.sum() / len(sampled) / (fifo.each * at))


def _largest_gap(series: Mapping[str, Floats], arm: str) -> float:
    """Return the largest difference between the measured and the expected share from before."""
    measured, expected = series[f"measured/{arm}/held/before"], series[f"fifo/{arm}/before"]
    gaps = np.abs(measured - expected)
    same_empty = np.isnan(measured) == np.isnan(expected)
    return float(gaps[np.isfinite(gaps)].max(initial=0.0)) if same_empty.all() else float("inf")


def _mean_sampling_gap(series: Mapping[str, Floats], arm: str, at: int) -> float:
    """Return the sampled share from before minus the stored one, mean after the change."""
    gaps = series[f"measured/{arm}/drawn/before"] - series[f"fifo/{arm}/before"]
    known = gaps[:, at:][np.isfinite(gaps[:, at:])]
    return float(known.mean()) if len(known) else float("nan")


def _table(request: ViewRequest, runs: Mapping[str, RunSpec], estimates: Estimates) -> Table:
    delays = [float(delay) for delay in estimates.labels("before", "delay", planned=True)]
    rows: list[tuple[Value, ...]] = []
    for arm, run in runs.items():
        fifo = expected_ages(run)
        rows.append(
            (
                arm_name(arm, subject_name(request.rule)),
                fifo.capacity,
                fifo.each,
                fifo.turnover,
                estimates.at("uses", arm=arm).value,
                *(estimates.at("before", arm=arm, delay=delay).value for delay in delays),
                estimates.at("off", arm=arm).value,
                estimates.at("drawn", arm=arm).value,
            )
        )
    return Table(
        VIEW.label,
        "Age of replayed experience around a change",
        (
            Column("Learner"),
            Column("Capacity"),
            Column("Stored an iteration"),
            Column("Turnover (iterations)", 1),
            Column("Samples of an entry", 1),
            *(Column(f"From before, {delay:g} after", 3) for delay in delays),
            Column("Largest gap to first in, first out", 6),
            Column("Sampled minus stored", 4),
        ),
        tuple(rows),
        f"{request.describe()}, {CONDITION} after iteration "
        f"{switch(request.iterations, LOG_EVERY):,}; "
        "entries are trajectories of the rule's learner and transitions of DQN; samples of an "
        "entry: up to the change; from before: share of the stored entries; sampled minus stored: "
        "mean difference of the shares from before, after the change.",
        tells_n=False,
    )


VIEW = View(
    name="replay",
    title="Age of replayed experience around a change of the world",
    question="How old is the experience that a learner replays when the world has changed?",
    caption=CAPTION,
    default_request=ViewRequest("disco103", (1.0,), 1, 1080),
    stages=stages,
    attach_observer=attach_observer,
    analyse=analyse,
    draw=draw_replay,
)
