"""Comparison of a baseline's lifetime with Stable-Baselines3, on one thread, in turns."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import msgspec

from benchmarks.measurement import Plan, Progress, Spread, load_average
from benchmarks.peer_process import PeerProcess, peer_version
from benchmarks.sb3_peer import MODULE, NAME, SB3Peer
from rulescope import __version__
from rulescope.core import runtime
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import WORLDS
from rulescope.learners.baseline_config import VARIANTS
from rulescope.lifetime import Lifetime
from rulescope.run_spec import RunSpec

LEARNERS = ("a2c", "ppo", "dqn")
"""The baselines that the peer has as well."""


class BaselineResults(msgspec.Struct, frozen=True):
    """Measurements of one baseline in 8x8 Catch; times are per iteration."""

    learner: str
    ratio_to_peer: Spread | None
    """The peer's time over ours"""
    ours_ms: Spread
    ours_iterations_per_second: Spread
    peer_ms: Spread | None
    peer_iterations_per_second: Spread | None
    rounds: int
    iterations: int
    """Of each side in each round"""
    peer: dict[str, str] | None
    seconds: float
    load_average: float | None
    """Of the machine, at the start; well above zero means that it was not idle."""
    version: str
    source: dict[str, Any]
    runtime: dict[str, Any]


def baseline_spec(learner: str) -> RunSpec:
    """Return a lifetime of ``learner`` that is long enough for any plan and does not log."""
    if learner not in LEARNERS:
        raise SpecError(f"learner: {NAME} has no {learner!r}; valid: {', '.join(LEARNERS)}")
    forever = 1_000_000
    return RunSpec(
        learner=VARIANTS[learner],
        environment=WORLDS["catch"],
        iterations=forever,
        log_every=forever,
    )


def measure_baseline(
    learner: str, plan: Plan, progress: Progress = lambda _: None
) -> BaselineResults:
    """Return the measurements of ``learner``; raise if ``plan.peer`` and it is not installed.

    ``progress`` is called once in each round.
    """
    started, load = time.perf_counter(), load_average()
    runtime.single_threaded()
    spec = baseline_spec(learner)
    peer, process = None, None
    if plan.peer:
        peer = {"name": NAME, "version": peer_version(NAME, MODULE)}
        process = PeerProcess(NAME, partial(SB3Peer, spec, plan.iterations), plan.warm_up)
    lifetime = Lifetime(spec)
    start = getattr(spec.learner, "start", 0)  # DQN does not learn before
    for _ in range(plan.warm_up + -(-start // (spec.lanes * spec.steps))):
        lifetime.advance()
    ours, theirs = [], []
    for _ in range(plan.rounds):
        ours.append(_seconds_per_iteration(lifetime, plan.iterations))
        if process is not None:
            theirs.append(process.seconds() / plan.iterations)
        progress(learner)
    if process is not None:
        process.close()
    return BaselineResults(
        learner=learner,
        ratio_to_peer=_spread([b / a for a, b in zip(ours, theirs, strict=False)]),
        ours_ms=Spread.of([1e3 * one for one in ours]),
        ours_iterations_per_second=Spread.of([1.0 / one for one in ours]),
        peer_ms=_spread([1e3 * one for one in theirs]),
        peer_iterations_per_second=_spread([1.0 / one for one in theirs]),
        rounds=plan.rounds,
        iterations=plan.iterations,
        peer=peer,
        seconds=time.perf_counter() - started,
        load_average=load,
        version=__version__,
        source=runtime.source_identity(),
        runtime=runtime.runtime_identity(),
    )


def _seconds_per_iteration(lifetime: Lifetime, iterations: int) -> float:
    """Return the mean seconds of an iteration over a turn of several."""
    start = time.perf_counter()
    for _ in range(iterations):
        lifetime.advance()
    return (time.perf_counter() - start) / iterations


def _spread(values: list[float]) -> Spread | None:
    return Spread.of(values) if values else None
