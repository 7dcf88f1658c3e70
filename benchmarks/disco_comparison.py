"""Comparison of our Disco lifetime with disco-torch and with its matrix products alone.

All run on one thread and take turns: in each round a few products, a few of our iterations, one of
the peer's.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.disco_torch_peer import MODULE, NAME, DiscoTorchPeer
from benchmarks.matmul_limit import SQUARE, TINY, ProductRate, ProductRecorder, Shape
from benchmarks.measurement import (
    STANDARD,
    Plan,
    Progress,
    Spread,
    load_average,
    scaling_settings,
)
from benchmarks.peak_memory import peak_memory
from benchmarks.peer_process import PeerMissingError, PeerProcess, peer_version
from benchmarks.timed_lifetime import Iteration, TimedLifetime, disco_config, make_world
from rulescope import __version__
from rulescope.core import arrays, runtime
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import WORLDS, Catch, EnvironmentSpec
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.rules import released_rules, rule_weights, weight_files
from rulescope.run_spec import RunSpec

RULE = "disco103"
FALLBACK = "random:20240"
"""Random weights of the same shapes, used if the released ones are not available."""
SAME_WORK = "legacy"
"""The agent with the peer's conventions, hence 29 transitions in a trajectory."""


class Comparison(msgspec.Struct, frozen=True):
    """Measurements in one world; times are per iteration."""

    batch: int
    grid: int
    actions: int
    agent: str
    rounds: int
    distinct_rows: float
    """Median number of distinct observations in a batch"""
    multiply_adds: float
    """Median number that an update needs"""
    ours_ms: Spread
    iterations_per_second: Spread
    acting_share: Spread
    """Part of an iteration that is interaction; the rest is learning."""
    gflops: Spread
    """Rate of products of the update's own shapes; one multiply-add is two operations."""
    limit_ms: Spread
    ratio_to_limit: Spread
    """Ours over the arithmetic limit"""
    square_gflops: Spread
    """Rate of a large square product"""
    ratio_to_square: Spread
    """Ours over the limit at that rate, which products of other shapes do not reach"""
    peer_ms: Spread | None = None
    ratio_to_peer: Spread | None = None
    """The peer's time over ours"""


class Results(msgspec.Struct, frozen=True):
    """All measurements of one run of the benchmark."""

    ratio_to_peer: float | None
    """Of the main comparison (8x8 Catch), as is the next"""
    ratio_to_limit: float
    catch: Comparison
    catch_big: Comparison
    scaling: list[Comparison]
    memory_mb: float
    """Peak resident set of a process with one lifetime (agent `historical`)"""
    rule: str
    peer: dict[str, str] | None
    notes: list[str]
    seconds: float
    load_average: float | None
    """Of the machine, at the start; well above zero means that it was not idle."""
    version: str
    source: dict[str, Any]
    runtime: dict[str, Any]


@dataclass(frozen=True)
class Round:
    """The times of one round in seconds, and rates in multiply-adds per second."""

    rate: float
    """Of products of the update's own shapes"""
    square: float
    """Of a large square product"""
    ours: list[Iteration]
    products: list[int]
    peer: float | None

    @property
    def ours_seconds(self) -> float:
        """Median time of our iterations."""
        return statistics.median(one.total for one in self.ours)

    @property
    def limit_seconds(self) -> float:
        """Time that the products of the same iterations would take at the rate of this round."""
        return statistics.median(self.products) / self.rate

    @property
    def square_limit_seconds(self) -> float:
        """The same, if every product ran as fast as a large square one."""
        return statistics.median(self.products) / self.square


def measure_disco(plan: Plan, progress: Progress = lambda _: None) -> Results:
    """Return the measurements of ``plan``; without the peer if it is not installed."""
    started, load = time.perf_counter(), load_average()
    runtime.single_threaded()
    notes, peer = [], None
    if plan.peer:
        try:
            peer = {"name": NAME, "version": peer_version(NAME, MODULE)}
        except PeerMissingError as fault:
            notes.append(str(fault))
    with rule_file() as (rule, path):
        if rule != RULE:
            notes.append(f"the weights of {RULE} are not available; measured with {rule} instead")
        peer_weights = path if peer else None

        def compare_in(name: str, rounds: int) -> Comparison:
            spec = lifetime_spec(rule, WORLDS[name], SAME_WORK)
            return compare(spec, rounds, plan, peer_weights, progress=partial(progress, name))

        catch = compare_in("catch", plan.rounds)
        catch_big = compare_in("catch-big", plan.large_rounds)
        scaling = list(_compare_settings(rule, plan, progress)) if plan.scaling_rounds else []
        memory = peak_memory(rule, plan.memory_iterations)
        progress("memory")
    return Results(
        ratio_to_peer=None if catch.ratio_to_peer is None else catch.ratio_to_peer.median,
        ratio_to_limit=catch.ratio_to_limit.median,
        catch=catch,
        catch_big=catch_big,
        scaling=scaling,
        memory_mb=memory,
        rule=rule,
        peer=peer,
        notes=notes,
        seconds=time.perf_counter() - started,
        load_average=load,
        version=__version__,
        source=runtime.source_identity(),
        runtime=runtime.runtime_identity(),
    )


def lifetime_spec(
    rule: str,
    environment: EnvironmentSpec,
    agent: str = "historical",
    batch: int = STANDARD["batch"],
) -> RunSpec:
    """Return a lifetime that is long enough for any plan and does not log."""
    learner = Disco(rule=rule, conventions=AGENTS[agent], batch=batch)
    forever = 1_000_000
    return RunSpec(learner=learner, environment=environment, iterations=forever, log_every=forever)


@contextlib.contextmanager
def rule_file() -> Iterator[tuple[str, Path]]:
    """Yield a rule and a file of its weights: the released one if it is available."""
    if (path := weight_files.find(released_rules.get(RULE))) is not None:
        yield RULE, path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rule.npz"
        path.write_bytes(arrays.pack(rule_weights.load(FALLBACK).arrays, compress=False))
        yield FALLBACK, path


def compare(
    spec: RunSpec,
    rounds: int,
    plan: Plan,
    peer_weights: Path | None = None,
    actions: int | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Comparison:
    """Compare ``spec`` with the arithmetic limit, and with the peer if its weights are given.

    ``actions`` replaces the world's number of actions; ``progress`` is called after each round.
    """
    peer = None
    if peer_weights is not None:
        peer = PeerProcess(NAME, partial(_make_peer, spec, actions, peer_weights), plan.warm_up)
    lifetime = TimedLifetime(spec, actions)
    for _ in range(plan.warm_up):
        lifetime.iterate()
    rate, square = ProductRate(_product_shapes(lifetime)), ProductRate([SQUARE])
    measured_rounds, rows = [], []
    for _ in range(rounds):
        lifetime.clear_batches()
        measured = rate(), square()
        ours = [lifetime.iterate() for _ in range(plan.iterations)]
        theirs = None if peer is None else peer.seconds()
        rows += [len(batch.rows) for batch in lifetime.batches]
        measured_rounds.append(Round(*measured, ours, lifetime.products(), theirs))
        progress()
    if peer is not None:
        peer.close()
    return _summarise(spec, lifetime, measured_rounds, rows)


def _product_shapes(lifetime: TimedLifetime) -> list[Shape]:
    """Return the shapes of the matrix products in one iteration of ``lifetime``."""
    with ProductRecorder() as recorder:
        lifetime.iterate()
    return [shape for shape in recorder.shapes if math.prod(shape) >= TINY]


def _grid(environment: EnvironmentSpec) -> int:
    """Return the side of the board; only Catch is measured."""
    if not isinstance(environment, Catch):
        raise SpecError(f"environment: {type(environment).__name__} is not measured, only Catch")
    return environment.rows


def _summarise(
    spec: RunSpec, lifetime: TimedLifetime, rounds: list[Round], rows: list[int]
) -> Comparison:
    config = disco_config(spec)
    ours = [one for each in rounds for one in each.ours]
    timed = [(each.peer, each.peer / each.ours_seconds) for each in rounds if each.peer is not None]
    agents = (name for name, known in AGENTS.items() if known == config.conventions)
    return Comparison(
        batch=config.batch,
        grid=_grid(spec.environment),
        actions=lifetime.learner.update.agent.actions,
        agent=next(agents, "other"),
        rounds=len(rounds),
        distinct_rows=statistics.median(rows),
        multiply_adds=statistics.median(count for each in rounds for count in each.products),
        ours_ms=Spread.of([1e3 * one.total for one in ours]),
        iterations_per_second=Spread.of([1.0 / one.total for one in ours]),
        acting_share=Spread.of([1.0 - one.learning / one.total for one in ours]),
        gflops=Spread.of([2e-9 * each.rate for each in rounds]),
        limit_ms=Spread.of([1e3 * each.limit_seconds for each in rounds]),
        ratio_to_limit=Spread.of([each.ours_seconds / each.limit_seconds for each in rounds]),
        square_gflops=Spread.of([2e-9 * each.square for each in rounds]),
        ratio_to_square=Spread.of(
            [each.ours_seconds / each.square_limit_seconds for each in rounds]
        ),
        peer_ms=Spread.of([1e3 * seconds for seconds, _ in timed]) if timed else None,
        ratio_to_peer=Spread.of([ratio for _, ratio in timed]) if timed else None,
    )


def _compare_settings(rule: str, plan: Plan, progress: Progress) -> Iterator[Comparison]:
    """Yield one comparison (without the peer) for each of the scaling settings."""
    for setting in scaling_settings():
        size = setting["grid"]
        spec = lifetime_spec(rule, Catch(rows=size, columns=size), batch=setting["batch"])
        label = ", ".join(f"{name} {value}" for name, value in setting.items())
        shorter = msgspec.structs.replace(plan, warm_up=2)
        yield compare(
            spec,
            plan.scaling_rounds,
            shorter,
            actions=setting["actions"],
            progress=partial(progress, label),
        )


def _make_peer(spec: RunSpec, actions: int | None, weights: Path) -> DiscoTorchPeer:
    world = make_world(spec, spec.lanes, actions)
    return DiscoTorchPeer(world, disco_config(spec), spec.steps, weights)
