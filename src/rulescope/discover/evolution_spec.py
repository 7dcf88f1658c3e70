"""The specification of a discovery by evolution: rule, agents, worlds, lifetimes, strategy.

As for a discovery by meta-gradients, the id is the hash of the specification, and every random
stream is derived from its seed by name.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from rulescope.core.errors import SpecError
from rulescope.core.structs import (
    Decay,
    Fraction,
    Frozen,
    NonNegative,
    Norm,
    Positive,
    Rate,
    explain,
    parsed,
)
from rulescope.discover.batched_worlds import make_batched
from rulescope.discover.discovery_spec import Identified, World
from rulescope.discover.evolution_strategy import Strategy
from rulescope.envs.world_config import Catch


class Lpg(Frozen, frozen=True, tag="lpg", tag_field="kind"):
    """Sizes of an LPG rule, and the weight of its prediction in the agents' loss."""

    hidden: Positive = 32
    """Units of the recurrent layer."""
    predictions: Annotated[int, Meta(ge=2)] = 8
    """Categories of the agents' prediction y."""
    embedding: Positive = 16
    """Of the network that reads y."""
    weight: NonNegative = 0.5
    """Of the divergence of y from its target."""


class Lpo(Frozen, frozen=True, tag="lpo", tag_field="kind"):
    """Width of an LPO rule, and the algorithm around its drift."""

    hidden: Positive = 128
    discount: Fraction = 0.99
    trace: Fraction = 0.95
    value_coefficient: NonNegative = 0.5
    """Weight of half the mean squared error of the values."""
    entropy_coefficient: NonNegative = 0.0
    epochs: Positive = 4
    minibatches: Positive = 2


class SmallAgents(Frozen, frozen=True):
    """The agents of every candidate, and how they collect experience."""

    hidden: tuple[Positive, Positive] = (32, 32)
    learning_rate: Rate = 5e-3
    max_norm: Norm | None = None
    """The gradient is scaled down to this norm; null: it is not."""
    lanes: Positive = 2
    steps: Positive = 29
    """Interactions of each lane before each update."""


class Lifetimes(Frozen, frozen=True):
    """The lifetimes by which candidates are judged."""

    updates: Positive = 150
    late: Annotated[float, Meta(gt=0.0, le=1.0)] = 0.5
    """The last part of a lifetime, as a share of its updates: the fitness is the score in it."""


class Imitation(Frozen, frozen=True):
    """The warm start of LPG: weights are fitted to an advantage actor-critic.

    Its value is a categorical one: y is a discretised normal around the return after a square-root
    transform, and the policy target is minus the clipped advantage, plus an entropy term.
    """

    lifetimes: Annotated[int, Meta(ge=0)] = 0
    """Lifetimes of agents whose experience the weights are fitted to; 0: no warm start."""
    updates: Positive = 150
    """Updates in each of them, and steps of Adam."""
    agents: Positive = 8
    """Copies of every agent of the worlds."""
    learning_rate: Rate = 3e-3
    discount: Fraction = 0.95
    trace: Fraction = 0.9
    entropy: NonNegative = 0.03
    bound: Annotated[float, Meta(gt=0.0)] = 5.0
    """Largest transformed return that y can express."""
    clip: Annotated[float, Meta(gt=0.0)] = 2.0
    """Of the advantage."""


class Validation(Frozen, frozen=True):
    """Evaluations of the mean of the population on other seeds, which choose the result."""

    every: Positive = 10
    """Generations between two evaluations."""
    agents: Positive = 4
    """Copies of every agent of the worlds."""
    updates: Positive = 300
    """Of each lifetime; longer than those of the search, since a rule that was found on short
    lifetimes may fail in longer ones."""
    smoothing: Decay = 0.6
    """Decay of the running average of the fitness, by whose maximum the result is chosen."""


class Evolution(Identified, frozen=True, tag="evolution", tag_field="method"):
    """The specification of a discovery by an evolution strategy."""

    rule: Lpg | Lpo = Lpg()
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    agents: SmallAgents = SmallAgents()
    worlds: Annotated[tuple[World, ...], Meta(min_length=1)] = (
        World(environment=Catch(rows=5, columns=5), agents=1),
    )
    """``agents`` of a world is the number of lifetimes of each candidate in it."""
    lifetimes: Lifetimes = Lifetimes()
    strategy: Strategy = Strategy()
    imitation: Imitation = Imitation()
    validation: Validation = Validation()
    generations: Annotated[int, Meta(ge=0)] = 300
    group: Positive = 8
    """Pairs that are evaluated together, which is also the unit of work of a worker process."""

    @property
    def steps(self) -> int:
        """Lifetimes of the warm start, the validation before the first generation, generations."""
        return self.imitation.lifetimes + 1 + self.generations

    @property
    def tasks(self) -> int:
        """Units of work in a generation: more workers have nothing to do."""
        return math.ceil(self.strategy.pairs / self.group)


def decode_evolution(text: bytes, source: str) -> Evolution:
    """Read an ``Evolution`` from JSON; an invalid one is a ``SpecError`` that names the key."""
    return _converted(parsed(text, source), source)


def validate_evolution(spec: Evolution, source: str = "spec") -> Evolution:
    """Return ``spec`` as it would be read back, or raise :class:`SpecError` naming the key."""
    return _converted(msgspec.to_builtins(spec), source)


def _converted(data: Any, source: str) -> Evolution:
    try:
        spec = msgspec.convert(data, Evolution)
    except msgspec.ValidationError as fault:
        raise SpecError(f"{source}: {explain(fault, Evolution, data)}") from None
    for index, world in enumerate(spec.worlds):
        make_batched(world.environment, (1, 1, 1), f"{source}: worlds[{index}].environment.")
        if not world.scales:
            raise SpecError(
                f"{source}: worlds[{index}].scales: empty; give at least one scale, such as 1.0"
            )
    rule, rows = spec.rule, spec.agents.lanes * spec.agents.steps
    if isinstance(rule, Lpo) and rule.minibatches > rows:
        raise SpecError(
            f"{source}: rule.minibatches: {rule.minibatches} are more than the {rows} transitions "
            "of a rollout"
        )
    if isinstance(rule, Lpo) and spec.imitation.lifetimes:
        raise SpecError(f"{source}: imitation.lifetimes: only an LPG rule has this warm start")
    return spec
