"""OPEN, a learned optimiser, and Adam, each in the PPO loop that OPEN was made for; as data.

The defaults are those of the released program on MinAtar, which plays 64 games for 128 steps an
iteration (``lanes`` and ``steps`` of the run, see :func:`rulescope.spec.learner_config.habits`).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from rulescope.core.structs import Frozen
from rulescope.spec.baseline_config import Fraction, NetworkSizes, NonNegative, Norm, Positive, Rate

Decay = Annotated[float, Meta(ge=0.0, lt=1.0)]


class _Loop(Frozen, frozen=True):
    """PPO with a policy and a value that share nothing."""

    agent: NetworkSizes = NetworkSizes(hidden=(64, 64))
    """Of each of the two networks, on the flattened observation: the rule has no convolutions."""
    discount: Fraction = 0.99
    trace: Fraction = 0.95
    """The lambda of generalised advantage estimation."""
    clip: Annotated[float, Meta(gt=0.0)] = 0.2
    """How far from one a ratio of probabilities may gain, and from the old value a new one."""
    value_coefficient: NonNegative = 0.5
    """Weight of *half* the mean squared error of the values."""
    entropy_coefficient: NonNegative = 0.01
    max_norm: Norm = 0.5
    """The gradients of policy and value are scaled down to this norm, each on its own."""
    epochs: Positive = 4
    minibatches: Positive = 8


class Open(_Loop, frozen=True, tag="open", tag_field="kind"):
    """PPO whose optimiser is an OPEN rule.

    The carrier ``recurrent`` is what the rule's GRU remembers of each parameter of the policy and
    of the value; ``moments`` are the momenta; ``schedule`` counts the steps, on which the rule's
    sense of time depends (zeroing the momenta leaves it alone).
    """

    CARRIERS: ClassVar[tuple[str, ...]] = ("recurrent", "moments", "schedule", "params")

    rule: str = "open-breakout"
    """A registered rule, ``open-random:SEED`` or ``open-random-large:SEED``."""
    horizon: Positive | None = None
    """Iterations after which the rule believes its training to be over, if not the lifetime's."""


class OpenAdam(_Loop, frozen=True, tag="open-adam", tag_field="kind"):
    """The same PPO with Adam: what OPEN is compared with.

    (No settings are published with OPEN. These are the same author's, tuned on Breakout for ten
    million interactions; for those of other games see
    :func:`rulescope.spec.learner_config.suited`.)
    """

    CARRIERS: ClassVar[tuple[str, ...]] = ("moments", "schedule", "params")

    learning_rate: Rate = 1e-2
    anneal: bool = True
    """Whether the learning rate falls linearly over the lifetime, from iteration to iteration."""
    decays: tuple[Decay, Decay] = (0.9, 0.99)
    epsilon: Annotated[float, Meta(gt=0.0)] = 1e-5


VARIANTS: dict[str, Open | OpenAdam] = {
    "open": Open(),
    "open-multi": Open(rule="open-multi"),
    "open-adam": OpenAdam(),
}
"""Named learners of the published assay."""
