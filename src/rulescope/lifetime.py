"""One lifetime: a learner interacts with a world, learns, is intervened on, and is logged."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope import envs, evaluation, learners, run_packages, shared_prefix
from rulescope import run_spec as specs
from rulescope.core import runtime
from rulescope.core.arrays import Arrays, digest, prefix_names, unprefix
from rulescope.core.errors import (
    DivergedError,
    ExitError,
    RecordError,
    SpecError,
    WorldError,
    refusing_exit,
)
from rulescope.envs.changes import ChangingWorld
from rulescope.envs.environment import Step
from rulescope.episode_stats import EpisodeStats
from rulescope.interventions import States, Treatment
from rulescope.learners.learner import Learner, Rollout
from rulescope.learners.learner_config import Plugin
from rulescope.records.record import Record, RuleIdentity, SharedPart
from rulescope.run_spec import Fork, RunSpec, cannot_bootstrap

_STEP_COUNT = f"world/{ChangingWorld.COUNTER}"
"""Name, in a checkpoint, of the steps that a world counts if it changes within the lifetime."""


class Progress(NamedTuple):
    """Progress of a lifetime."""

    iteration: int
    iterations: int
    score: float
    """See :meth:`EpisodeStats.score`; NaN before the first episode has ended."""


class CutOff(NamedTuple):
    """The cut-off episodes of a rollout, as in :class:`~rulescope.learners.learner.Rollout`."""

    truncated: NDArray[np.bool_] | None
    final: NDArray[np.float32] | None


class Lifetime:
    """A learner in a world, both newly initialised, advanced one iteration at a time.

    ``save`` after any iteration and ``load`` into a new ``Lifetime`` of the same spec continue
    bit-identically: every carrier, the world, all random streams, and the log so far are saved.

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
        self.learner = self._initial_learner()
        self._require_bootstrap()
        self.stats = EpisodeStats(spec.lanes, self.world.references, goals=self.world.goals)
        self.iteration = spec.start
        world_seed = spec.seed if spec.world_seed is None else spec.world_seed
        with self._locating_errors():
            self._observation = self.world.reset(world_seed)
        self._began = np.zeros(spec.lanes, dtype=np.bool_)
        self._columns = ("iteration", "steps", *self.stats.names, *self.learner.metrics)
        self._log: list[list[float]] = []
        self._started = datetime.now(UTC)
        self._seconds = 0.0
        self._shared: SharedPart | None = None
        self._marks: dict[int, Arrays] = {}
        self._donors = {donor.id: _find_state(donor, donors or {}) for donor in spec.donors}
        self.treatments = [
            Treatment(item, self.learner, self._donors, spec.seed, spec.start)
            for item in spec.interventions
        ]
        if spec.origin is not None:
            self._fork(spec.origin)
        self._intervene()
        runtime.require_one_source()  # everything that a lifetime needs has been imported
        # Identity at the start: a rule that changes the number of threads does so in every process.
        self._runtime = runtime.runtime_identity(device) | run_packages.find_declared(spec)

    def _initial_learner(self) -> Learner:
        """Return a newly initialised learner."""
        spec = self.spec
        whole = spec  # schedules span the run that a fork continues
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
            lanes=spec.lanes,
        )

    def _require_bootstrap(self) -> None:
        """Raise unless a plug-in reads where episodes were cut off, if the spec asks for it."""
        plugin = isinstance(self.spec.learner, Plugin)
        if self.spec.boundary.truncation == "bootstrap" and plugin and not self.learner.bootstraps:
            raise SpecError(f"boundary.truncation: {cannot_bootstrap(self.spec.learner)}")

    def _fork(self, fork: Fork) -> None:
        """Restore the state of the other run at the fork; only the statistics start anew."""
        state = unprefix(f"mark.{fork.at}", self._donors[fork.run.id])
        # Unfinished episodes keep their return so far.
        counts = self.stats.save() | {"running": state["meters/running"]}
        self._restore_state(state | prefix_names({"meters": counts}))

    @property
    def finished(self) -> bool:
        """Whether the last iteration is completed."""
        return self.iteration >= self.spec.iterations

    def advance(self) -> None:
        """Run one iteration."""
        started = time.perf_counter()
        self.iteration += 1
        logged = self.iteration % self.spec.log_every == 0
        with self._locating_errors():
            metrics = self.learner.learn(self._interact(self.spec.steps), measure=logged)
            self._intervene()
        if self.iteration in self.spec.marks:
            self._marks[self.iteration] = self._state()
        if self.finished and self.spec.remainder:
            with self._locating_errors():
                self._interact(self.spec.remainder)
        if logged:
            self._write_row(metrics)
        self._seconds += time.perf_counter() - started

    @contextmanager
    def _locating_errors(self) -> Iterator[None]:
        """Add the run and the iteration to errors of the learner or the world."""
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
        """Run up to iteration ``until`` (default: the last), calling ``report`` after each one."""
        last = self.spec.iterations if until is None else min(until, self.spec.iterations)
        while self.iteration < last:
            self.advance()
            if report is not None:
                report(Progress(self.iteration, self.spec.iterations, self.stats.score()))

    def _interact(self, length: int) -> Rollout:
        """Collect ``length`` interactions of every lane."""
        steps, choices = [], []
        observations = [self._observation]
        for _ in range(length):
            choice = self.learner.act(observations[-1])
            step = self.world.step(choice.actions)
            self.learner.begin_episodes(step.terminal)
            self.stats.record(step)
            choices.append(choice)
            steps.append(step)
            observations.append(step.observation)
        truncated, final = self._cut_off(steps)
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
            truncated=truncated,
            final=final,
        )
        self._observation, self._began = observations[-1], steps[-1].terminal
        return rollout

    def _cut_off(self, steps: Sequence[Step]) -> CutOff:
        """Return ``truncated`` and ``final`` of a rollout; None if the learner gets none."""
        if self.spec.boundary.truncation == "terminal":
            return CutOff(None, None)
        shape = (self.spec.lanes, *self.world.observation_shape)
        never, nothing = np.zeros(self.spec.lanes, np.bool_), np.zeros(shape, np.float32)
        truncated = np.array([never if s.truncated is None else s.truncated for s in steps])
        final = np.array([nothing if s.final is None else s.final for s in steps])
        return CutOff(truncated, final[truncated])

    def _write_row(self, metrics: dict[str, float]) -> None:
        completed = (self.iteration - self.spec.start) * self.spec.steps * self.spec.lanes
        completed = self.spec.interactions if self.finished else completed
        # The learner measured its carriers before the interventions. The next iteration starts
        # from their values after the interventions, so those are logged.
        now = self.learner.carrier_metrics()
        metrics = metrics | {name: value for name, value in now.items() if name in metrics}
        row = {"iteration": self.iteration, "steps": completed, **self.stats.read(), **metrics}
        self._log.append([row.get(name, float("nan")) for name in self._columns])

    def log(self) -> dict[str, NDArray[np.float64]]:
        """Return the log so far, an array [rows] for each column."""
        table = np.array(self._log, dtype=np.float64).reshape(-1, len(self._columns))
        return dict(zip(self._columns, table.T.copy(), strict=True))

    @property
    def identity(self) -> str:
        """The sha256 of all that a resumed run must share besides the spec.

        These are the program, the machine, the rule, and the donors' states: a donor's spec does
        not determine on which machine its state was computed.
        """
        return self._identity(self._donor_digests())

    def _identity(self, *facts: object) -> str:
        """Return the sha256 of the program, the machine, the rule, the columns and ``facts``."""
        rule = self.learner.rule
        shared = [
            runtime.program_identity(),
            self._runtime,
            rule and rule.content,
            self._columns,
            *facts,
        ]
        return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()

    def _donor_digests(self, spec: RunSpec | None = None) -> dict[str, str]:
        """Return the digest of the terminal state of each donor of ``spec``, by run id."""
        donors = (self.spec if spec is None else spec).donors
        return {donor.id: digest(self._donors[donor.id]) for donor in donors}

    def accepts(self, checkpoint: Arrays) -> bool:
        """Return whether ``checkpoint`` is of this run, this program and this machine."""
        identity = checkpoint.get("loop/identity")
        return identity is not None and str(identity) == self.identity

    def _state(self) -> dict[str, NDArray[Any]]:
        """Return the state of learner, world and statistics, random streams included."""
        return prefix_names(
            {
                "learner": self.learner.save(),
                "world": self.world.save(),
                "meters": self.stats.save(),
                "loop": {"observation": self._observation, "began": self._began},
            }
        )

    def _restore_state(self, state: Arrays) -> None:
        """Restore what :meth:`_state` returned."""
        self.learner.load(unprefix("learner", state))
        self.world.load(unprefix("world", state))
        self.stats.load(unprefix("meters", state))
        loop = unprefix("loop", state)
        self._observation = np.array(loop["observation"])
        self._began = np.array(loop["began"])

    def save(self) -> dict[str, NDArray[Any]]:
        """Return a complete checkpoint."""
        return self._checkpoint(self.treatments, self.identity, self._shared)

    def _checkpoint(
        self, treatments: Sequence[Treatment], identity: str, shared: SharedPart | None
    ) -> dict[str, NDArray[Any]]:
        """Return the state with that of ``treatments``, the log and the marks so far."""
        parts: dict[str, Arrays] = {
            f"treatment{i}": item.save() for i, item in enumerate(treatments)
        }
        parts["log"] = self.log()
        parts["loop"] = {
            "identity": np.array(identity),
            "iteration": np.array(self.iteration),
            "seconds": np.array(self._seconds),
            "started": np.array(self._started.timestamp()),
        }
        if shared is not None:
            parts["shared"] = {
                "run": np.array(shared.run),
                "iterations": np.array(shared.iterations),
            }
        return self._state() | prefix_names(parts | self._marked_states())

    def load(self, checkpoint: Arrays) -> None:
        """Restore what :meth:`save` of the same spec returned."""
        self._load(checkpoint, self.treatments)

    def _load(self, checkpoint: Arrays, treatments: Sequence[Treatment]) -> None:
        """Restore what :meth:`_checkpoint` of such ``treatments`` returned."""
        self._restore_state(checkpoint)
        columns = unprefix("log", checkpoint)
        self._log = np.stack([columns[name] for name in self._columns], axis=1).tolist()
        for i, item in enumerate(treatments):
            item.load(unprefix(f"treatment{i}", checkpoint))
        loop = unprefix("loop", checkpoint)
        self.iteration = int(loop["iteration"])
        kept = {mark: unprefix(f"mark.{mark}", checkpoint) for mark in self.spec.marks}
        self._marks = {mark: state for mark, state in kept.items() if state}
        self._seconds = float(loop["seconds"])
        self._started = datetime.fromtimestamp(float(loop["started"]), UTC)
        shared = unprefix("shared", checkpoint)
        self._shared = SharedPart(str(shared["run"]), int(shared["iterations"])) if shared else None

    def save_branch(self) -> dict[str, NDArray[Any]]:
        """Return a checkpoint from which every run that is equal up to this iteration can start.

        It leaves out what differs between them: treatments that have not acted yet, and the step
        count of a world that will change.
        """
        now = self.iteration
        part = SharedPart(self.spec.id, now)
        saved = self._checkpoint(self._active_treatments(now), self._branch_identity(now), part)
        saved.pop(_STEP_COUNT, None)
        return saved

    def load_branch(self, checkpoint: Arrays) -> bool:
        """Start from what :meth:`save_branch` of an equal run returned; return whether it fits.

        That of another program or machine, or after other states of donors, does not fit.
        """
        iteration = int(checkpoint["loop/iteration"])
        if str(checkpoint["loop/identity"]) != self._branch_identity(iteration):
            return False
        state = dict(checkpoint)
        if self.spec.change is not None:
            state[_STEP_COUNT] = np.array(iteration * self.spec.steps)
        self._load(state, self._active_treatments(iteration))
        return True

    def _active_treatments(self, iteration: int) -> list[Treatment]:
        """Return the treatments that may have acted by ``iteration``; others have no state yet."""
        active = [item.first_effect <= iteration for item in self.spec.interventions]
        return list(compress(self.treatments, active))

    def _branch_identity(self, iteration: int) -> str:
        """Return the identity of the common part: of the donors, those used by then count."""
        common = shared_prefix.truncate(self.spec, iteration)
        key = shared_prefix.branch_of(self.spec, iteration).key
        return self._identity(key, self._donor_digests(common))

    def _marked_states(self) -> dict[str, Arrays]:
        """Return the states from which forks start."""
        return {f"mark.{mark}": state for mark, state in self._marks.items()}

    def _evaluate(self) -> dict[str, Arrays]:
        """Return the rewards of the policies that the spec evaluates."""
        plan = self.spec.evaluation
        if plan is None:
            return {}
        with self._locating_errors():
            initial = self._initial_learner() if "initial" in plan.policies else self.learner
            return evaluation.evaluate_policies(self.spec, plan, self.learner, initial)

    def record(self) -> Record:
        """Return the record of the completed lifetime; raise if the rule changed."""
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
            state=prefix_names(kept | self._marked_states() | self._evaluate()),
            source=runtime.source_identity(),
            runtime=runtime.runtime_identity(self.device) | run_packages.find_used(self.spec),
            rule=None if rule is None else RuleIdentity(rule.name, rule.sha256, rule.content),
            started=self._started,
            seconds=self._seconds,
            inherited=self._donor_digests(),
            shared=self._shared,
        )


def _find_state(donor: RunSpec, states: States) -> Arrays:
    if donor.id not in states:
        raise RecordError(f"donor {donor.id[:12]} has no record: run it first")
    return states[donor.id]
