"""Configuration of the Disco learner.

``Conventions`` holds every choice in which implementations of Disco103 are known to differ. Four
named bundles of conventions are the agents (:data:`AGENTS`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from rulescope.core.structs import Decay, Fraction, Frozen, NonNegative, Positive, Rate
from rulescope.learners.learner_base import LearnerBase, ReplayShape, ReturnScaling


class Conventions(Frozen, frozen=True):
    """The choices in which Disco implementations differ.

    The defaults are the agent ``historical``. They must never change: a run's id hashes only the
    fields that differ from their default.
    """

    final_relu: bool = True
    """Whether the grid torso ends in a ReLU."""
    action_model: Literal["chained", "independent"] = "chained"
    """``independent``: every action starts from the root. ``chained``: from the previous action."""
    forget_bias: Literal[0, 1] = 0
    """Constant added to the action model's forget pre-activation."""
    model_biases: Literal[1, 2] = 2
    """How many bias vectors the action model learns (two means twice the effective step)."""
    hidden_init: Literal["torch-uniform", "truncated-normal"] = "torch-uniform"
    head_init: Literal["all-small", "policy-small"] = "all-small"
    """Which last layers start at 0.01: all five heads, or only the policy and y."""
    inverse: Literal["clamped", "plain"] = "clamped"
    """How the inverse value transform is evaluated (they differ in float32 near zero)."""
    two_hot: Literal["exact", "offset"] = "exact"
    """``offset`` has 1e-5 in the denominator of the projection."""
    sign_log: Literal["log", "log1p"] = "log"
    loss_mask: Literal["in-trajectory", "stored-flag", "none"] = "in-trajectory"
    """Which first transitions of an episode carry no loss: only those whose episode began inside
    the stored trajectory, all of them, or none at all."""
    alignment: Literal["stored", "bootstrap"] = "stored"
    """``stored``: S observations give S - 1 transitions. ``bootstrap``: one observation more is
    appended, so all S transitions are trained on."""
    retrace: Literal["next", "skip"] = "next"
    """Trace coefficient at t: c[t+1], or c[min(t+2, T-1)]."""


AGENTS: dict[str, Conventions] = {
    "published": Conventions(action_model="independent"),
    "historical": Conventions(),
    "reference": Conventions(
        final_relu=False,
        action_model="independent",
        forget_bias=1,
        model_biases=1,
        hidden_init="truncated-normal",
        head_init="policy-small",
        inverse="plain",
        two_hot="offset",
        sign_log="log1p",
        loss_mask="stored-flag",
    ),
    "legacy": Conventions(alignment="bootstrap", retrace="skip"),
}
"""Bundles of conventions by name.

``published`` and ``historical`` are inferred from printed numbers: the code of the published audit
was not released. ``published`` is assumed for the cohorts that the audit lists as
reference-indexed, ``historical`` for the earlier ones (the assay ``agent-identity`` tests that).
``reference`` is the JAX release of Disco103, ``legacy`` is disco-torch 0.4.0 as released.
"""


class Interface(Frozen, frozen=True):
    """The categorical value interface: ``bins`` atoms on [-bound, bound] of f(value)."""

    transform: Literal["hyperbolic", "linear"] = "hyperbolic"
    bound: Annotated[float, Meta(gt=0.0, le=1e9)] = 300.0
    bins: Annotated[int, Meta(ge=3)] = 601


INTERFACES: dict[str, Interface] = {
    "default": Interface(),
    "support30": Interface(bound=30.0),
    "linear": Interface(transform="linear"),
}


class Coefficients(Frozen, frozen=True):
    """Weights of the loss terms; ``entropy`` is a bonus (subtracted)."""

    policy: NonNegative = 1.0
    y: NonNegative = 1.0
    z: NonNegative = 1.0
    aux: NonNegative = 1.0
    value: NonNegative = 0.2
    entropy: NonNegative = 0.0


class AgentSizes(Frozen, frozen=True):
    """Widths of the agent (the rule sets the width of predictions, the interface the bins)."""

    torso: Literal["grid", "channel"] = "grid"
    hidden: tuple[Positive, Positive] = (512, 512)
    """Grid torso: its two layers. Channel torso: (unused, width after the convolution)."""
    channels: Positive = 16
    model: Positive = 128
    head: Positive = 128


class Disco(LearnerBase, frozen=True, tag="disco", tag_field="kind"):
    """A learner whose targets are set by a Disco rule network."""

    CARRIERS: ClassVar[tuple[str, ...]] = (
        "recurrent",
        "averages",
        "target",
        "moments",
        "replay",
        "params",
    )
    scheduled: ClassVar[bool] = False
    outputs: ClassVar[int] = 1300

    rule: str = "disco103"
    """A registered rule, or ``random:SEED`` (the same architecture with random weights)."""
    agent: AgentSizes = AgentSizes()
    conventions: Conventions = Conventions()
    interface: Interface = Interface()
    coefficients: Coefficients = Coefficients()
    learning_rate: Rate = 1e-2
    discount: Fraction = 0.997
    trace: Fraction = 0.95
    averages_decay: Decay = 0.99
    target_decay: Fraction = 0.9
    batch: Positive = 64
    """Trajectories in one learner step; learning starts once this many are stored."""
    capacity: Positive = 1024
    """Trajectories kept for replay, first in first out."""
    scaling: ReturnScaling | None = None
    """Whether rewards are divided by the running scale of returns when a batch is drawn. Values,
    TD errors and everything that the rule reads are then in units of that scale; the rule itself
    and the rewards in the replay are unchanged."""

    @property
    def carrier_names(self) -> tuple[str, ...]:
        """Names of the parts of its persistent state, those of its options included."""
        return self.CARRIERS if self.scaling is None else ("scaling", *self.CARRIERS)

    def first_update(self, lanes: int, steps: int) -> int:  # noqa: ARG002
        """Return the iteration in which the parameters are first updated."""
        return math.ceil(self.batch / lanes)

    def replay(self, lanes: int, steps: int) -> ReplayShape:
        """Return the size of the replay, whose entries are trajectories."""
        return ReplayShape(self.capacity, lanes, observations=steps + 1, overhead=400)

    def workspace(self, lanes: int, steps: int) -> int:  # noqa: ARG002
        """Return the bytes that an update needs for intermediate results, about."""
        return 40_000 * self.batch * (steps + 1)

    def problems(self, lanes: int, steps: int) -> Iterator[str]:  # noqa: ARG002
        """Yield what is wrong with the configuration for such rollouts, the key first."""
        if self.batch > self.capacity:
            yield (
                f"batch: {self.batch} is more than learner.capacity ({self.capacity}), so learning "
                "would never start"
            )


SPROUT = Disco(
    rule="sprout",
    agent=AgentSizes(hidden=(64, 64), model=16, head=16),
    conventions=Conventions(
        action_model="independent",
        forget_bias=1,
        model_biases=1,
        hidden_init="truncated-normal",
        head_init="policy-small",
        sign_log="log1p",
        loss_mask="none",
        alignment="bootstrap",
    ),
    interface=Interface(bound=8.0, bins=41),
    learning_rate=1e-2,
    batch=12,
    capacity=64,
)
"""The learner in which the rule Sprout was discovered."""

LEARNERS: dict[str, Disco] = dict.fromkeys(
    ("sprout", "sprout-start", "sprout-early", "sprout-scales", "sprout-random"), SPROUT
)
"""Learners of rules that were not discovered in the default one, by the rule's name before any
colon."""


def driven_by(rule: str) -> Disco:
    """Return the learner of ``rule``: the one that it was discovered in, with that rule."""
    own = LEARNERS.get(rule.partition(":")[0], Disco())
    return msgspec.structs.replace(own, rule=rule)


VARIANTS: dict[str, Disco] = {
    "disco": Disco(),
    "disco-no-aux": Disco(coefficients=Coefficients(y=0.0, z=0.0, aux=0.0)),
    "disco-entropy": Disco(coefficients=Coefficients(entropy=0.01), learning_rate=3e-3),
    "disco-lr3e4": Disco(learning_rate=3e-4),
}
"""Named learners of the published assays."""
