"""Configurations of OPEN, a learned optimiser, and of Adam, each in OPEN's PPO loop.

The defaults are those of the released program on MinAtar, which runs 64 games for 128 steps per
iteration (``usual_shape``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Self

from msgspec import Meta
from msgspec.structs import replace

from rulescope.core.structs import Decay, Fraction, NonNegative, Norm, Positive, Rate
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner_base import LearnerBase, RunShape, minibatch_problems

ADAM_RATES = {"breakout": 1e-2, "freeway": 1e-3}
"""Tuned learning rates of :class:`OpenAdam`, by MinAtar game."""


class _Loop(LearnerBase, frozen=True):
    """PPO with separate networks for policy and value."""

    usual_shape: ClassVar[RunShape] = RunShape(lanes=64, steps=128, iterations=56, log_every=1)
    stepwise: ClassVar[bool] = True

    agent: NetworkSizes = NetworkSizes(hidden=(64, 64))
    """Sizes of both networks, on the flattened observation: the rule has no convolutions."""
    discount: Fraction = 0.99
    trace: Fraction = 0.95
    """The lambda of generalised advantage estimation."""
    clip: Annotated[float, Meta(gt=0.0)] = 0.2
    """Clipping range of the probability ratio around one, and of a value around the old one."""
    value_coefficient: NonNegative = 0.5
    """Weight of *half* the mean squared error of the values."""
    entropy_coefficient: NonNegative = 0.01
    max_norm: Norm = 0.5
    """The gradients of policy and value are scaled down to this norm, each on its own."""
    epochs: Positive = 4
    minibatches: Positive = 8

    def problems(self, lanes: int, steps: int) -> Iterator[str]:
        """Yield what is wrong with the configuration for such rollouts, the key first."""
        if self.agent.torso == "channel":
            yield "agent.torso: the rule has no convolutions; use 'grid'"
        yield from minibatch_problems(self.minibatches, lanes * steps)


class Open(_Loop, frozen=True, tag="open", tag_field="kind"):
    """PPO whose optimiser is an OPEN rule.

    The carrier ``recurrent`` is the state of the rule's GRU for each parameter of the policy and
    the value; ``moments`` are the momenta; ``schedule`` counts the steps, on which the rule's time
    features depend (zeroing the momenta does not change it).
    """

    CARRIERS: ClassVar[tuple[str, ...]] = ("recurrent", "moments", "schedule", "params")
    network_copies: ClassVar[int] = 40  # the rule has a state vector for each parameter

    rule: str = "open-breakout"
    """A registered rule, ``open-random:SEED`` or ``open-random-large:SEED``."""
    horizon: Positive | None = None
    """Iterations of training that the rule's time features assume, if not those of the lifetime."""

    def for_minatar(self, game: str) -> Self:
        """Return the configuration with the rule trained on ``game``, if it has the default."""
        own = self.rule == Open().rule
        return replace(self, rule=f"open-{game}") if own else self


class OpenAdam(_Loop, frozen=True, tag="open-adam", tag_field="kind"):
    """The same PPO with Adam, the baseline of OPEN.

    (No settings are published with OPEN. These are the same author's, tuned on Breakout for ten
    million interactions; :data:`ADAM_RATES` has those of other games.)
    """

    CARRIERS: ClassVar[tuple[str, ...]] = ("moments", "schedule", "params")

    learning_rate: Rate = 1e-2
    anneal: bool = True
    """Whether the learning rate decreases linearly over the iterations of the lifetime."""
    decays: tuple[Decay, Decay] = (0.9, 0.99)
    epsilon: Annotated[float, Meta(gt=0.0)] = 1e-5

    def for_minatar(self, game: str) -> Self:
        """Return the configuration with the rate tuned on ``game``, if it has the default."""
        own = self.learning_rate == OpenAdam().learning_rate
        return replace(self, learning_rate=ADAM_RATES[game]) if own else self


VARIANTS: dict[str, Open | OpenAdam] = {
    "open": Open(),
    "open-multi": Open(rule="open-multi"),
    "open-adam": OpenAdam(),
}
"""Named learners of the published assay."""
