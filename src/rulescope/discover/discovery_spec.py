"""The specification of a discovery: rule sizes, worlds, learner, objective, meta-optimiser.

As for a run, the id of a discovery is the hash of its specification, and every random stream is
derived from its seed by name.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from rulescope.core.errors import SpecError
from rulescope.core.structs import (
    Fraction,
    Frozen,
    NonNegative,
    Positive,
    explain,
    parsed,
    without_defaults,
)
from rulescope.envs.world_config import Boundary, Catch, EnvironmentSpec
from rulescope.learners.disco_config import SPROUT, Disco

Rate = Annotated[float, Meta(gt=0.0, le=1.0)]


class Identified(Frozen, frozen=True):
    """A specification that is named by its content."""

    @property
    def id(self) -> str:
        """The sha256 of the canonical form."""
        return hashlib.sha256(self.canonical()).hexdigest()

    def canonical(self) -> bytes:
        """Return the specification as JSON with sorted keys and without default values."""
        return msgspec.json.encode(without_defaults(self), order="sorted")


class RuleSizes(Frozen, frozen=True):
    """The free sizes of a Disco rule (see :class:`rulescope.rules.disco_format.DiscoSizes`).

    The two sub-networks have encoders of their own, of the same sizes.
    """

    predictions: Positive = 16
    trajectory: Positive = 64
    lifetime: Positive = 32
    hidden: Positive = 16
    """Of every encoder and of the policy block."""
    embedding: Positive = 4
    """Channels per action of the encoder's output."""
    summary: Positive = 16
    """Width of the batch average that the lifetime network reads."""


class World(Frozen, frozen=True):
    """One kind of world, and the number of agents in it."""

    environment: EnvironmentSpec = Catch(rows=5, columns=5)
    agents: Positive = 8
    boundary: Boundary = Boundary()
    scales: tuple[Annotated[float, Meta(gt=0.0, le=1e6)], ...] = (1.0,)
    """Each agent starts with one of these multipliers of its rewards, drawn at random."""


class Objective(Frozen, frozen=True):
    """The meta-objective: the policy after learning, on fresh experience.

    Its critic is separate from the learner, and has unscaled rewards and true episode ends.
    """

    discount: Fraction = 0.99
    trace: Fraction = 0.95
    critic_hidden: Positive = 64
    critic_rate: Rate = 3e-3
    critic_updates: Positive = 4
    averages_decay: Annotated[float, Meta(ge=0.0, lt=1.0)] = 0.99
    entropy: NonNegative = 0.01
    """Bonus for the entropy of the policy after learning."""
    prediction_entropy: NonNegative = 0.001
    """Bonus for the entropy of both predictions after learning."""
    target_size: NonNegative = 0.001
    """Penalty on the squared mean logit of each target."""
    target_divergence: NonNegative = 0.01
    """Penalty on KL(slow policy || policy target)."""


class Discovery(Identified, frozen=True):
    """The specification of a discovery."""

    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    sizes: RuleSizes = RuleSizes()
    learner: Disco = SPROUT
    """How the agents learn under the rule; the name in its ``rule`` is not used."""
    worlds: Annotated[tuple[World, ...], Meta(min_length=1)] = (World(),)
    lanes: Positive = 2
    steps: Positive = 20
    """Interactions of each lane before each update of an agent."""
    updates: Positive = 4
    """Updates of every agent in one meta-step, through which the meta-gradient flows."""
    judged_lanes: Positive = 16
    """Lanes of the fresh experience of the objective."""
    lifetime: tuple[Positive, Positive] = (100, 600)
    """Updates after which an agent is replaced by an initial one: drawn between these two."""
    objective: Objective = Objective()
    learning_rate: Rate = 3e-4
    """Of the meta-optimiser, Adam."""
    averaging: Annotated[float, Meta(ge=0.0, lt=1.0)] = 0.0
    """Decay of the running average of the rule, which is the result; 0: the last rule is."""
    start: Annotated[str, Meta(pattern="^(sha256:[0-9a-f]{64})?$")] = ""
    """The content of the rule to start from, as
    :func:`rulescope.rules.rule_weights.name_of` returns it; random weights if empty."""
    meta_steps: Annotated[int, Meta(ge=0)] = 2000
    warm_start: Annotated[int, Meta(ge=0)] = 0
    """Meta-steps before the first, in which the policy target is fitted to a clipped-advantage
    improvement of the slow policy while the agents learn from that."""
    warm_rate: Rate = 1e-3
    """Learning rate of the meta-optimiser in the warm start."""
    transplants: Fraction = 0.0
    """Probability that an agent begins a meta-step with the recurrent state of another one."""
    log_every: Positive = 10


def decode_discovery(text: bytes, source: str) -> Discovery:
    """Read a ``Discovery`` from JSON; an invalid one is a :class:`SpecError` that names the key."""
    return _converted(parsed(text, source), source)


def validate_discovery(spec: Discovery, source: str = "spec") -> Discovery:
    """Return ``spec`` as it would be read back, or raise :class:`SpecError` naming the key."""
    return _converted(msgspec.to_builtins(spec), source)


def _converted(data: Any, source: str) -> Discovery:
    try:
        spec = msgspec.convert(data, Discovery)
    except msgspec.ValidationError as fault:
        raise SpecError(f"{source}: {explain(fault, Discovery, data)}") from None
    first, last = spec.lifetime
    if first > last:
        raise SpecError(
            f"{source}: lifetime: the shortest ({first}) is longer than the longest ({last})"
        )
    if spec.warm_start + spec.meta_steps == 0:
        raise SpecError(f"{source}: meta_steps: 0 meta-steps and no warm start; give at least 1")
    for index, world in enumerate(spec.worlds):
        if not world.scales:
            raise SpecError(
                f"{source}: worlds[{index}].scales: empty; give at least one scale, such as 1.0"
            )
    return spec
