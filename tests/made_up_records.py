"""Made-up records: what an analysis of thousands of lifetimes costs, without living any."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.episode_stats import HEADLINES
from rulescope.records import Record, Store
from rulescope.run_spec import RunSpec

UNITS = 128
"""Width of the made-up recurrent state, as in Disco103."""


def made_up(spec: RunSpec) -> Record:
    """Return a record of ``spec`` in which nothing was lived: a rising score, a random state.

    Its source says so, and its science hash depends on nothing but the spec.
    """
    rng = seeds.stream(spec.seed, "made-up", spec.id)
    iteration = np.arange(spec.log_every, spec.iterations + 1, spec.log_every, dtype=np.float64)
    onset = rng.uniform(0.1, 1.2) * spec.iterations
    score = 1.0 / (1.0 + np.exp((onset - iteration) / (0.05 * spec.iterations)))
    log = {
        "iteration": iteration,
        "steps": iteration * spec.lanes * spec.steps,
        **{name: score + rng.normal(0.0, 0.02, score.shape) for name in HEADLINES},
        "episodes": iteration * spec.lanes * spec.steps // 7,
        "goals": np.floor(20.0 * np.clip(score, 0.0, None)),
        "success": np.clip(score, 0.0, 1.0),
        "first_goal_interaction": np.where(score > 0.05, onset * spec.lanes * spec.steps, np.nan),
        "first_goal_episode": np.where(score > 0.05, np.ceil(onset), np.nan),
        "effective_bins": rng.uniform(1.0, 3.0, score.shape),
    }
    shift = np.log10(spec.scale)
    state: dict[str, NDArray[np.generic]] = {
        f"recurrent/{name}": rng.normal(shift, 1.0, UNITS).astype(np.float32) for name in "hc"
    }
    if (tried := spec.evaluation) is not None:
        for name in tried.policies:
            state[f"evaluation.{name}/reward"] = rng.binomial(tried.steps, 0.05, tried.lanes) * 1.0
    return Record.make(
        spec,
        log,
        state,
        source={"version": "made up", "commit": None, "dirty": None},
        runtime={"made up": True},
        rule=None,
        started=datetime(2000, 1, 1, tzinfo=UTC),
        seconds=0.0,
    )


def fill(store: Store, specs: list[RunSpec]) -> None:
    """Put a made-up record of every spec into ``store``."""
    for spec in specs:
        if spec.id not in store:
            store.commit(made_up(spec))
