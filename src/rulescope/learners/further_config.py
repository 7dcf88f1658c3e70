"""Configurations of rules without lifetime state: DPO, LPO (drift functions) and LPG.

The defaults of DPO and LPG are those of the public programs, but for the sizes of networks and
minibatches: the agent is the one of the baselines, and so are its rollouts. LPO has the defaults of
DPO. See docs/further_rules.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from rulescope.core.structs import Fraction, NonNegative, Norm, Positive, Rate
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner_base import LearnerBase, minibatch_problems

Above = Annotated[float, Meta(gt=0.0)]


class _Drift(LearnerBase, frozen=True):
    """A policy gradient with a drift term in place of PPO's clipping."""

    takes_setup: ClassVar[bool] = True
    CARRIERS: ClassVar[tuple[str, ...]] = ("moments", "params")
    scheduled: ClassVar[bool] = False

    agent: NetworkSizes = NetworkSizes()
    learning_rate: Rate = 3e-4
    discount: Fraction = 0.99
    trace: Fraction = 0.95
    """The lambda of generalised advantage estimation."""
    value_coefficient: NonNegative = 0.5
    """Weight of *half* the mean squared error of the values."""
    value_clip: Above | None = 0.2
    """Clipping range of a value around the one at the time of acting; null for none."""
    entropy_coefficient: NonNegative = 0.0
    max_norm: Norm = 0.5
    """The whole gradient is scaled down to this norm, policy and value together."""
    adam_epsilon: Above = 1e-5
    epochs: Positive = 4
    minibatches: Positive = 4
    """Minibatches of each epoch (the public programs have rollouts hundreds of times as large, and
    32)."""

    def problems(self, lanes: int, steps: int) -> Iterator[str]:
        """Yield what is wrong with the configuration for such rollouts, the key first."""
        yield from minibatch_problems(self.minibatches, lanes * steps)


class Dpo(_Drift, frozen=True, tag="dpo", tag_field="kind"):
    """Discovered policy optimisation: LPO's drift in closed form. It has no weights."""

    builds: ClassVar[str] = "dpo:DPO"

    alpha: Above = 2.0
    """Scale of the drift where the advantage is positive."""
    beta: Above = 0.6
    """Scale of the drift where the advantage is negative."""


class Lpo(_Drift, frozen=True, tag="lpo", tag_field="kind"):
    """Learned policy optimisation: the drift is a network that was found by evolution."""

    builds: ClassVar[str] = "lpo:LPO"

    rule: str = "lpo-random:1"
    """``lpo-random:SEED``, or the content of a file of weights (none were released)."""
    features: Literal["log-first", "ratio-first"] = "log-first"
    """What the network reads of the ratio r: log r and 1 - r (the authors' program), or r - 1 and
    log r (the later reimplementation). Weights of one form do not fit the other."""
    clip: Above | None = 0.2
    """The network is added to the drift of PPO with this clipping range; null: it stands alone."""


class Lpg(LearnerBase, frozen=True, tag="lpg", tag_field="kind"):
    """Learned policy gradient: a rule with a recurrent state that is reset in every rollout.

    A temporally-aware rule (TA-LPG) also reads how old the agent is and how long its lifetime; the
    age is the carrier ``schedule``.
    """

    builds: ClassVar[str] = "lpg:LPG"
    takes_setup: ClassVar[bool] = True
    outputs: ClassVar[int] = 40

    agent: NetworkSizes = NetworkSizes()
    rule: str = "lpg-random:1"
    """``lpg-small``, ``lpg-random:SEED``, ``ta-lpg-random:SEED``, or the content of a file of
    weights (none were released by the authors)."""
    lifetime_inputs: Literal["none", "raw", "relative"] = "none"
    """What a temporally-aware rule reads besides: ``raw``: the number of updates made, and of all
    updates, as the public program does. ``relative``: the share of updates made, and the logarithm
    of the number of all updates, as the names in it say. Other rules read nothing: ``none``."""
    y_coefficient: NonNegative = 0.5
    """Weight of the divergence of y from its target."""
    optimiser: Literal["adam", "sgd"] = "adam"
    """``adam``: without any clipping of the gradient. ``sgd``: plain steps along the gradient,
    scaled down to ``max_norm``. (The public program has ``sgd`` for tabular agents, with rates of
    40 for the policy and 4 for y.)"""
    learning_rate: Rate = 5e-4
    max_norm: Norm = 0.5
    """Of ``sgd``."""

    @property
    def scheduled(self) -> bool:  # type: ignore[override]
        """Whether the updates depend on the length of the lifetime."""
        return self.lifetime_inputs != "none"

    @property
    def carrier_names(self) -> tuple[str, ...]:
        """Names of the parts of its persistent state, those of its options included."""
        names = () if self.lifetime_inputs == "none" else ("schedule",)
        return (*names, *(("moments",) if self.optimiser == "adam" else ()), "params")


Further = Dpo | Lpo | Lpg

VARIANTS: dict[str, Further] = {
    "dpo": Dpo(),
    "lpo": Lpo(),
    "lpg": Lpg(rule="lpg-small"),
    "ta-lpg": Lpg(rule="ta-lpg-random:1", lifetime_inputs="raw"),
    "ta-lpg-relative": Lpg(rule="ta-lpg-random:1", lifetime_inputs="relative"),
}
"""These learners by their names on the command line."""
