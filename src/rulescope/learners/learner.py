"""The learner contract: act, learn, and carry a persistent state whose parts have names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.arrays import Arrays, unprefix
from rulescope.rules.loading import RuleWeights


class Choice(NamedTuple):
    """One decision for every lane."""

    actions: NDArray[np.int64]
    """[N]"""
    behaviour: Mapping[str, NDArray[np.float32]]
    """What the learner wants to remember of how it chose, each [N, ...]."""


class Rollout(NamedTuple):
    """S interactions of N lanes, as the learner was told of them; time comes first."""

    observations: NDArray[np.float32]
    """[S + 1, N, *shape]: what each action was chosen on, and what followed the last one."""
    actions: NDArray[np.int64]
    """[S, N]"""
    rewards: NDArray[np.float32]
    """[S, N]: the reward that ``actions[k]`` caused."""
    terminals: NDArray[np.bool_]
    """[S, N]: whether ``actions[k]`` ended an episode."""
    began: NDArray[np.bool_]
    """[N]: whether the first observation followed a terminal (of the rollout before)."""
    behaviour: Mapping[str, NDArray[np.float32]]
    """The remembered behaviour, each [S, N, ...]."""


class Carrier(NamedTuple):
    """One named part of a learner's persistent state: read it whole, replace it whole.

    ``get`` returns copies; ``set`` takes arrays of the same names and copies them in.
    """

    get: Callable[[], dict[str, NDArray[Any]]]
    set: Callable[[Arrays], None]


class Learner(ABC):
    """What is audited. Everything it carries from one iteration to the next is in a carrier."""

    rule: RuleWeights | None = None
    """The fixed rule that drives the learner, if there is one."""
    metrics: tuple[str, ...]
    """Names of the numbers :meth:`learn` can report."""
    carriers: Mapping[str, Carrier]
    streams: dict[str, Generator]
    """Its random streams, by name."""
    after_step: list[Callable[[], None]]
    """What to do after each step of the optimiser; of learners that make many an iteration."""

    @abstractmethod
    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Choose an action for each lane's observation [N, *shape]."""

    @abstractmethod
    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Take in one rollout and update; return metrics if ``measure`` (never changes state)."""

    def carrier_metrics(self) -> dict[str, float]:
        """Return the metrics that describe carriers alone, as the carriers are now.

        They are logged as the next iteration finds them: :meth:`learn` knows them only as they
        are before an intervention replaces a carrier.
        """
        return {}

    def rule_digest(self) -> str | None:
        """Return the digest of the rule weights as they are in memory now (None without a rule).

        At the end of a lifetime it must still be ``rule.content``: the rule never changes. (One
        that is all code, known by its source, has no weights that could.)
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
        """Continue from what :meth:`save` returned."""
        for name, carrier in self.carriers.items():
            carrier.set(unprefix(name, arrays))
        for key, words in unprefix("stream", arrays).items():
            self.streams[key] = seeds.unpack(words)
