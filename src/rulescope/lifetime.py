"""One lifetime: interact, learn, intervene, log. The only place that sees all three sides."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope import envs, evaluation, learners, package_versions
from rulescope.core import runtime
from rulescope.core.arrays import Arrays, digest
from rulescope.core.errors import DivergedError, ExitError, RecordError, WorldError, refusing_exit
from rulescope.episode_stats import Meters
from rulescope.interventions import States, Treatment
from rulescope.learners.learner import Learner, Rollout, joined, under
from rulescope.records.record import Record, RuleIdentity
from rulescope.spec import run_spec as specs
from rulescope.spec.run_spec import Fork, RunSpec


class Progress(NamedTuple):
    """Where a lifetime stands."""

    iteration: int
    iterations: int
    score: float
    """See :meth:`Meters.score`; NaN before the first episode has ended."""


class Lifetime:
    """A fresh learner in a fresh world, advanced one iteration at a time.

    ``save`` after any iteration and ``load`` into a new ``Lifetime`` of the same spec go on to the
    bit: every carrier, the replay, the world, all random streams, and the log so far.

    ``donors`` holds the terminal states of the spec's donors by run id.
    """

    def __init__(
        self,
        spec: RunSpec,
        *,
        device: str = "cpu",
        weights: Path | None = None,
        donors: States | None = None,
    ) -> None:
        self.spec = spec = specs.checked(spec)
        runtime.single_threaded(device)
        self.world = envs.make(
            spec.environment, spec.boundary, spec.scale, spec.lanes, spec.change, spec.steps
        )
        self.device, self._weights = device, weights
        self.learner = self._newborn()
        self.meters = Meters(spec.lanes, self.world.references, goals=self.world.goals)
        self.iteration = spec.start
        world_seed = spec.seed if spec.world_seed is None else spec.world_seed
        with self._named_faults():
            self._observation = self.world.reset(world_seed)
        self._began = np.zeros(spec.lanes, dtype=np.bool_)
        self._columns = ("iteration", "steps", *self.meters.names, *self.learner.metrics)
        self._log: list[list[float]] = []
        self._started = datetime.now(UTC)
        self._seconds = 0.0
        self._marks: dict[int, Arrays] = {}
        self._donors = {donor.id: _state(donor, donors or {}) for donor in spec.donors}
        self.treatments = [
            Treatment(item, self.learner, self._donors, spec.seed, spec.start)
            for item in spec.interventions
        ]
        if spec.origin is not None:
            self._fork(spec.origin)
        self._intervene()
        runtime.require_one_source()  # everything that a lifetime needs is imported by now
        # As it is now: a rule that changes the number of threads does so in every process.
        self._runtime = runtime.runtime_identity(device) | package_versions.declared(spec)

    def _newborn(self) -> Learner:
        """Return the learner as it is at birth."""
        spec = self.spec
        whole = spec
        while whole.origin is not None:
            whole = whole.origin.run
        return learners.make(
            spec.learner,
            self.world.observation_shape,
            self.world.actions,
            spec.steps,
            spec.seed,
            device=self.device,
            weights=self._weights,
            interactions=whole.interactions,
            iterations=spec.iterations,
        )

    def _fork(self, fork: Fork) -> None:
        """Become what the other run was at the fork; only what is counted starts anew."""
        there = under(f"mark.{fork.at}", self._donors[fork.run.id])
        counts = self.meters.save() | {"running": there["meters/running"]}  # of unfinished episodes
        self._resume(there | joined({"meters": counts}))

    @property
    def finished(self) -> bool:
        """Whether the last iteration has been made."""
        return self.iteration >= self.spec.iterations

    def advance(self) -> None:
        """Make one iteration."""
        started = time.perf_counter()
        self.iteration += 1
        logged = self.iteration % self.spec.log_every == 0
        with self._named_faults():
            metrics = self.learner.learn(self._interact(self.spec.steps), measure=logged)
            self._intervene()
        if self.iteration in self.spec.marks:
            self._marks[self.iteration] = self._present()
        if self.finished and self.spec.remainder:
            with self._named_faults():
                self._interact(self.spec.remainder)
        if logged:
            self._write_row(metrics)
        self._seconds += time.perf_counter() - started

    @contextmanager
    def _named_faults(self) -> Iterator[None]:
        """Let what goes wrong with the learner or the world name the run and the iteration."""
        try:
            with refusing_exit("code of the rule or the world"):
                yield
        except (DivergedError, ExitError, WorldError) as fault:
            where = f"run {self.spec.id[:12]}, iteration {self.iteration}"
            raise type(fault)(f"{where}: {fault}") from None

    def _intervene(self) -> None:
        for treatment in self.treatments:
            treatment.act(self.iteration)

    def run(
        self, until: int | None = None, report: Callable[[Progress], None] | None = None
    ) -> None:
        """Advance to iteration ``until`` (the end by default), reporting after each iteration."""
        last = self.spec.iterations if until is None else min(until, self.spec.iterations)
        while self.iteration < last:
            self.advance()
            if report is not None:
                report(Progress(self.iteration, self.spec.iterations, self.meters.score()))

    def _interact(self, length: int) -> Rollout:
        """Collect ``length`` interactions of every lane."""
        steps, choices = [], []
        observations = [self._observation]
        for _ in range(length):
            choice = self.learner.act(observations[-1])
            step = self.world.step(choice.actions)
            self.meters.record(step)
            choices.append(choice)
            steps.append(step)
            observations.append(step.observation)
        rollout = Rollout(
            observations=np.array(observations),
            actions=np.array([choice.actions for choice in choices]),
            rewards=np.array([step.reward for step in steps]),
            terminals=np.array([step.terminal for step in steps]),
            began=self._began,
            behaviour={
                name: np.array([choice.behaviour[name] for choice in choices])
                for name in choices[0].behaviour
            },
        )
        self._observation, self._began = observations[-1], steps[-1].terminal
        return rollout

    def _write_row(self, metrics: dict[str, float]) -> None:
        since = self.iteration - self.spec.start
        done = since * self.spec.steps * self.spec.lanes
        done = self.spec.interactions if self.finished else done
        # The learner measured its carriers before the interventions. The next iteration starts
        # from what these left, and that is logged.
        now = self.learner.carrier_metrics()
        metrics = metrics | {name: value for name, value in now.items() if name in metrics}
        row = {"iteration": self.iteration, "steps": done, **self.meters.read(), **metrics}
        self._log.append([row.get(name, float("nan")) for name in self._columns])

    def log(self) -> dict[str, NDArray[np.float64]]:
        """Return the log so far, one array [rows] a column."""
        table = np.array(self._log, dtype=np.float64).reshape(-1, len(self._columns))
        return dict(zip(self._columns, table.T.copy(), strict=True))

    @property
    def identity(self) -> str:
        """The sha256 of what a continuation must share, the spec aside: program, machine, rule.

        And donors: their specs do not tell on which machine their states were made.
        """
        rule = self.learner.rule
        shared = [
            runtime.program_identity(),
            self._runtime,
            rule and rule.content,
            self._columns,
            self._inherited(),
        ]
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()

    def _inherited(self) -> dict[str, str]:
        """Return the digest of each donor's terminal state, by run id."""
        return {donor: digest(state) for donor, state in self._donors.items()}

    def accepts(self, checkpoint: Arrays) -> bool:
        """Whether ``checkpoint`` is of this run, this program and this machine."""
        made_by = checkpoint.get("loop/identity")
        return made_by is not None and str(made_by) == self.identity

    def _present(self) -> dict[str, NDArray[Any]]:
        """Return what the future depends on: learner, world, what is measured, and their chance."""
        return joined(
            {
                "learner": self.learner.save(),
                "world": self.world.save(),
                "meters": self.meters.save(),
                "loop": {"observation": self._observation, "began": self._began},
            }
        )

    def _resume(self, present: Arrays) -> None:
        """Go on from what :meth:`_present` returned."""
        self.learner.load(under("learner", present))
        self.world.load(under("world", present))
        self.meters.load(under("meters", present))
        loop = under("loop", present)
        self._observation = np.array(loop["observation"])
        self._began = np.array(loop["began"])

    def save(self) -> dict[str, NDArray[Any]]:
        """Return a complete checkpoint."""
        treatments = {f"treatment{i}": item.save() for i, item in enumerate(self.treatments)}
        past: dict[str, Arrays] = {
            "log": self.log(),
            "loop": {
                "identity": np.array(self.identity),
                "iteration": np.array(self.iteration),
                "seconds": np.array(self._seconds),
                "started": np.array(self._started.timestamp()),
            },
        }
        return self._present() | joined(treatments | past | self._marked())

    def load(self, checkpoint: Arrays) -> None:
        """Continue from what :meth:`save` of the same spec returned."""
        self._resume(checkpoint)
        columns = under("log", checkpoint)
        self._log = np.stack([columns[name] for name in self._columns], axis=1).tolist()
        for i, item in enumerate(self.treatments):
            item.load(under(f"treatment{i}", checkpoint))
        loop = under("loop", checkpoint)
        self.iteration = int(loop["iteration"])
        kept = {mark: under(f"mark.{mark}", checkpoint) for mark in self.spec.marks}
        self._marks = {mark: present for mark, present in kept.items() if present}
        self._seconds = float(loop["seconds"])
        self._started = datetime.fromtimestamp(float(loop["started"]), UTC)

    def _marked(self) -> dict[str, Arrays]:
        """Return what forks begin with."""
        return {f"mark.{mark}": present for mark, present in self._marks.items()}

    def _evaluated(self) -> dict[str, Arrays]:
        """Return how the policies fared that are to be tried."""
        plan = self.spec.evaluation
        if plan is None:
            return {}
        with self._named_faults():
            newborn = self._newborn() if "initial" in plan.policies else self.learner
            return evaluation.evaluated(self.spec, plan, self.learner, newborn)

    def record(self) -> Record:
        """Return the finished lifetime's record, after checking that the rule did not change."""
        if not self.finished:
            raise RecordError(f"lifetime stopped at {self.iteration} of {self.spec.iterations}")
        rule = self.learner.rule
        if rule is not None and self.learner.rule_digest() != rule.content:
            raise RecordError(f"the weights of rule {rule.name!r} changed during the lifetime")
        runtime.require_one_source()
        kept: dict[str, Arrays] = {
            carrier: self.learner.carriers[carrier].get() for carrier in self.spec.kept
        }
        return Record.make(
            self.spec,
            log=self.log(),
            state=joined(kept | self._marked() | self._evaluated()),
            source=runtime.source_identity(),
            runtime=runtime.runtime_identity(self.device) | package_versions.found(self.spec),
            rule=None if rule is None else RuleIdentity(rule.name, rule.sha256, rule.content),
            started=self._started,
            seconds=self._seconds,
            inherited=self._inherited(),
        )


def _state(donor: RunSpec, states: States) -> Arrays:
    if donor.id not in states:
        raise RecordError(f"donor {donor.id[:12]} has no record at hand: it must live first")
    return states[donor.id]
