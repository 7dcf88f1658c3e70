"""The measurement: ours, the peer and plain matrix products, in turns, on one thread.

A machine has fast and slow phases (other tenants, clock rates), which last longer than an
iteration. So everything is measured in *rounds*: a few products, a few of our iterations, one of
the peer's. A ratio is taken within each round, where all ran in the same phase, and the median over
rounds is reported with its quartiles.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.disco_torch_peer import MODULE, NAME, Peer
from benchmarks.matmul_limit import SQUARE, TINY, ProductRate, ProductRecorder, Shape
from benchmarks.peak_memory import peak_memory
from benchmarks.peer_process import PeerMissingError, PeerProcess
from benchmarks.peer_process import version as peer_version
from benchmarks.timed_lifetime import Iteration, Subject, disco, world
from rulescope import __version__
from rulescope.core import arrays, runtime
from rulescope.core.errors import SpecError
from rulescope.rules import loading, locate, registry
from rulescope.spec.disco_config import AGENTS, Disco
from rulescope.spec.run_spec import RunSpec
from rulescope.spec.world_config import WORLDS, Catch, EnvironmentSpec

RULE = "disco103"
FALLBACK = "random:20240"
"""Weights of the same shapes: the work is the same where the released ones are not at hand."""
SAME_WORK = "legacy"
"""The agent compared with the peer: its own conventions, hence 29 transitions a trajectory."""
SCALING = {"batch": (16, 32, 64, 128), "grid": (8, 16, 24), "actions": (3, 6, 12)}
"""What is varied, one at a time, around the standard lifetime."""
STANDARD = {"batch": 64, "grid": 8, "actions": 3}

Report = Callable[[str], None]
"""Called with what has just been measured, :meth:`Plan.total` times in all."""


class Plan(msgspec.Struct, frozen=True):
    """How much is measured."""

    rounds: int = 40
    """Of the main comparison; the one in the large world has half as many."""
    iterations: int = 4
    """Ours in each round."""
    warm_up: int = 10
    """Updates of each side before the first round."""
    peer: bool = True
    scaling_rounds: int = 4
    """0 leaves the scaling table out."""
    memory_iterations: int = 60

    @property
    def large_rounds(self) -> int:
        """Rounds of the comparison in the large world."""
        return -(-self.rounds // 2)

    @property
    def total(self) -> int:
        """How often a :data:`Report` is called."""
        return self.rounds + self.large_rounds + len(settings()) * self.scaling_rounds + 1


QUICK = Plan(rounds=5, iterations=2, warm_up=3, scaling_rounds=1, memory_iterations=36)


class Spread(msgspec.Struct, frozen=True):
    """A median and the quartiles around it."""

    median: float
    q1: float
    q3: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise ``values``, of which there must be one at least."""
        q1, median, q3 = np.percentile(values, [25, 50, 75]).tolist()
        return cls(median, q1, q3)


class Comparison(msgspec.Struct, frozen=True):
    """What was measured in one world; times are per iteration."""

    batch: int
    grid: int
    actions: int
    agent: str
    rounds: int
    distinct_rows: float
    """Median number of distinct observations in a batch"""
    multiply_adds: float
    """Median that an update needs"""
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
    """Everything that one run of the benchmark found."""

    ratio_to_peer: float | None
    """Of the main comparison (8x8 Catch), as is the next"""
    ratio_to_limit: float
    catch: Comparison
    catch_big: Comparison
    scaling: list[Comparison]
    memory_mb: float
    """Peak resident set of a process that lives one lifetime (agent `historical`)"""
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
    """One turn of everything, in seconds and multiply-adds per second."""

    rate: float
    """Of products of the update's own shapes"""
    square: float
    """Of a large square product"""
    ours: list[Iteration]
    products: list[int]
    peer: float | None

    @property
    def own(self) -> float:
        """Median time of our iterations."""
        return statistics.median(one.total for one in self.ours)

    @property
    def limit(self) -> float:
        """Time that the products of the same iterations would take at the rate of this round."""
        return statistics.median(self.products) / self.rate

    @property
    def square_limit(self) -> float:
        """The same, if every product ran as fast as a large square one."""
        return statistics.median(self.products) / self.square


def settings() -> list[dict[str, int]]:
    """Return the settings of the scaling table, the standard one first and only once."""
    varied = [STANDARD | {name: value} for name, values in SCALING.items() for value in values]
    return [STANDARD, *(setting for setting in varied if setting != STANDARD)]


def run(plan: Plan, report: Report = lambda _: None) -> Results:
    """Measure everything that ``plan`` asks for."""
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
            notes.append(f"the weights of {RULE} are not here; measured with {rule} instead")
        opponent = path if peer else None

        def compared(name: str, rounds: int) -> Comparison:
            spec = lifetime_spec(rule, WORLDS[name], SAME_WORK)
            return compare(spec, rounds, plan, opponent, report=partial(report, name))

        catch = compared("catch", plan.rounds)
        catch_big = compared("catch-big", plan.large_rounds)
        scaling = list(_scaling(rule, plan, report)) if plan.scaling_rounds else []
        memory = peak_memory(rule, plan.memory_iterations)
        report("memory")
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
    """Return a lifetime long enough for any plan, and without measurements in between."""
    learner = Disco(rule=rule, conventions=AGENTS[agent], batch=batch)
    forever = 1_000_000
    return RunSpec(learner=learner, environment=environment, iterations=forever, log_every=forever)


@contextlib.contextmanager
def rule_file() -> Iterator[tuple[str, Path]]:
    """Yield a rule and a file of its weights: the released ones if they are on this machine."""
    if (path := locate.find(registry.get(RULE))) is not None:
        yield RULE, path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rule.npz"
        path.write_bytes(arrays.pack(loading.load(FALLBACK).arrays, compress=False))
        yield FALLBACK, path


def compare(
    spec: RunSpec,
    rounds: int,
    plan: Plan,
    peer_weights: Path | None = None,
    actions: int | None = None,
    report: Callable[[], None] = lambda: None,
) -> Comparison:
    """Time ``spec`` against the arithmetic limit, and against the peer if given its weights.

    ``actions`` replaces the world's own number of actions; ``report`` is called after each round.
    """
    peer = None
    if peer_weights is not None:
        peer = PeerProcess(NAME, partial(_peer, spec, actions, peer_weights), plan.warm_up)
    subject = Subject(spec, actions)
    for _ in range(plan.warm_up):
        subject.iterate()
    rate, square = ProductRate(_shapes(subject)), ProductRate([SQUARE])
    played, rows = [], []
    for _ in range(rounds):
        subject.forget()
        measured = rate(), square()
        ours = [subject.iterate() for _ in range(plan.iterations)]
        theirs = None if peer is None else peer.seconds()
        rows += [len(batch.rows) for batch in subject.batches]
        played.append(Round(*measured, ours, subject.products(), theirs))
        report()
    if peer is not None:
        peer.close()
    return _summary(spec, subject, played, rows)


def _shapes(subject: Subject) -> list[Shape]:
    """Return the shapes of the products that one iteration of ``subject`` really makes."""
    with ProductRecorder() as recorder:
        subject.iterate()
    return [shape for shape in recorder.shapes if math.prod(shape) >= TINY]


def _grid(environment: EnvironmentSpec) -> int:
    """Return the side of the board; only Catch is measured."""
    if not isinstance(environment, Catch):
        raise SpecError(f"environment: {type(environment).__name__} is not measured, only Catch")
    return environment.rows


def _summary(spec: RunSpec, subject: Subject, played: list[Round], rows: list[int]) -> Comparison:
    config = disco(spec)
    ours = [one for turn in played for one in turn.ours]
    timed = [(turn.peer, turn.peer / turn.own) for turn in played if turn.peer is not None]
    agents = (name for name, known in AGENTS.items() if known == config.conventions)
    return Comparison(
        batch=config.batch,
        grid=_grid(spec.environment),
        actions=subject.learner.update.agent.actions,
        agent=next(agents, "other"),
        rounds=len(played),
        distinct_rows=statistics.median(rows),
        multiply_adds=statistics.median(count for turn in played for count in turn.products),
        ours_ms=Spread.of([1e3 * one.total for one in ours]),
        iterations_per_second=Spread.of([1.0 / one.total for one in ours]),
        acting_share=Spread.of([1.0 - one.learning / one.total for one in ours]),
        gflops=Spread.of([2e-9 * turn.rate for turn in played]),
        limit_ms=Spread.of([1e3 * turn.limit for turn in played]),
        ratio_to_limit=Spread.of([turn.own / turn.limit for turn in played]),
        square_gflops=Spread.of([2e-9 * turn.square for turn in played]),
        ratio_to_square=Spread.of([turn.own / turn.square_limit for turn in played]),
        peer_ms=Spread.of([1e3 * seconds for seconds, _ in timed]) if timed else None,
        ratio_to_peer=Spread.of([ratio for _, ratio in timed]) if timed else None,
    )


def _scaling(rule: str, plan: Plan, report: Report) -> Iterator[Comparison]:
    """Yield one comparison (without the peer) for each of the :func:`settings`."""
    for setting in settings():
        size = setting["grid"]
        spec = lifetime_spec(rule, Catch(rows=size, columns=size), batch=setting["batch"])
        label = ", ".join(f"{name} {value}" for name, value in setting.items())
        shorter = msgspec.structs.replace(plan, warm_up=2)
        yield compare(
            spec,
            plan.scaling_rounds,
            shorter,
            actions=setting["actions"],
            report=partial(report, label),
        )


def _peer(spec: RunSpec, actions: int | None, weights: Path) -> Peer:
    return Peer(world(spec, spec.lanes, actions), disco(spec), spec.steps, weights)


def load_average() -> float | None:
    """Return the load of the last minute, where the system tells."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return None
