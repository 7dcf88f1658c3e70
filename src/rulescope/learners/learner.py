"""The learner contract: act, learn, and a persistent state of named carriers.

The smallest learner is here too: a uniformly random policy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.arrays import Arrays, unprefix
from rulescope.rules.rule_weights import RuleWeights


class Choice(NamedTuple):
    """The actions of one step, for every lane."""

    actions: NDArray[np.int64]
    """[N]"""
    behaviour: Mapping[str, NDArray[np.float32]]
    """Behaviour to be stored with the rollout, such as logits: each [N, ...]."""


class Rollout(NamedTuple):
    """S interactions of N lanes, as the learner observes them; time comes first."""

    observations: NDArray[np.float32]
    """[S + 1, N, *shape]: the observation of each action, and the one after the last."""
    actions: NDArray[np.int64]
    """[S, N]"""
    rewards: NDArray[np.float32]
    """[S, N]: the reward of ``actions[k]``."""
    terminals: NDArray[np.bool_]
    """[S, N]: whether ``actions[k]`` ended an episode."""
    began: NDArray[np.bool_]
    """[N]: whether the first observation followed a terminal (of the rollout before)."""
    behaviour: Mapping[str, NDArray[np.float32]]
    """The stored behaviour, each [S, N, ...]."""


class Carrier(NamedTuple):
    """One named part of a learner's persistent state, read and replaced as a whole.

    ``get`` returns copies; ``set`` takes arrays of the same names and copies them in.
    """

    get: Callable[[], dict[str, NDArray[Any]]]
    set: Callable[[Arrays], None]


class Learner(ABC):
    """A learner. Its entire state between iterations is in its carriers and random streams."""

    rule: RuleWeights | None = None
    """The fixed rule of the learner, if it has one."""
    metrics: tuple[str, ...]
    """Names of the metrics that :meth:`learn` can return."""
    carriers: Mapping[str, Carrier]
    """Its carriers, by name."""
    streams: dict[str, Generator]
    """Its random streams, by name."""
    after_step: list[Callable[[], None]]
    """Callbacks after each optimiser step, in learners that make several per iteration."""

    acting_carriers: tuple[str, ...] = ()
    """Names of the carriers that :meth:`act` and :meth:`begin_episodes` change, such as an agent's
    memory of the episode. They change no other."""

    growing_carriers: tuple[str, ...] = ("replay",)
    """Names of the carriers whose arrays have a first axis of varying length, such as stored
    transitions. The shapes of all other carriers never change."""

    @abstractmethod
    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Choose an action for each lane's observation [N, *shape]."""

    @abstractmethod
    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Learn from one rollout; return metrics if ``measure`` (measuring never changes state)."""

    def begin_episodes(self, began: NDArray[np.bool_]) -> None:  # noqa: B027
        """Prepare to act where the next observation begins an episode: in these lanes [N].

        Those are the terminals that the learner observes: where they are masked, no episode begins.
        In a new world all begin.
        """

    def carrier_metrics(self) -> dict[str, float]:
        """Return the metrics that depend on the current carriers alone.

        They are logged after the interventions: :meth:`learn` computes them before an intervention
        replaces a carrier.
        """
        return {}

    def rule_digest(self) -> str | None:
        """Return the digest of the rule weights as they are in memory now (None without a rule).

        At the end of a lifetime it must still be ``rule.content``: the rule never changes. (A rule
        without weights, identified by its source, cannot change.)
        """
        return self.rule.content if self.rule is not None and not self.rule.arrays else None

    def save(self) -> dict[str, NDArray[Any]]:
        """Return every carrier and random stream as ``carrier/array`` and ``stream/name``."""
        arrays = {
            f"{name}/{key}": value
            for name, carrier in self.carriers.items()
            for key, value in carrier.get().items()
        }
        return arrays | {f"stream/{key}": seeds.pack(rng) for key, rng in self.streams.items()}

    def load(self, arrays: Arrays) -> None:
        """Restore what :meth:`save` returned."""
        for name, carrier in self.carriers.items():
            carrier.set(unprefix(name, arrays))
        for key, words in unprefix("stream", arrays).items():
            self.streams[key] = seeds.unpack(words)


class UniformLearner(Learner):
    """Uniformly random actions; it has no carriers, only a random stream."""

    metrics = ()

    def __init__(
        self,
        config: object,  # noqa: ARG002
        observation_shape: tuple[int, ...],  # noqa: ARG002
        actions: int,
        seed: int,
        device: str = "cpu",  # noqa: ARG002
    ) -> None:
        """Take the arguments of every baseline, of which two are needed."""
        self.actions = actions
        self.streams = {"action": seeds.stream(seed, "action")}
        self.carriers: dict[str, Carrier] = {}

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Draw an action for each lane."""
        return Choice(self.streams["action"].integers(self.actions, size=len(observation)), {})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:  # noqa: ARG002
        """Do nothing."""
        return {}
