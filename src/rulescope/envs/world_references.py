"""What scores in a world are measured by: exact references of the world, or sampled random play.

A score is 0 for random play and 1 for the upper reference. Where no upper reference is known, it is
a return (or a rate) minus that of random play, in the units of the world, and never a share.
See docs/worlds.md.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Annotated, Literal, TypeVar

import numpy as np
from msgspec import Meta
from msgspec.structs import replace
from numpy.typing import NDArray

from rulescope.core.errors import SpecError
from rulescope.core.structs import Frozen
from rulescope.envs import gymnasium_adapter
from rulescope.envs.environment import Environment
from rulescope.envs.environment_factory import make
from rulescope.envs.references import sample_references, uniform
from rulescope.envs.world_config import Boundary, EnvironmentSpec, Gymnasium

EPISODES = 200
"""Episodes of random play that are sampled, one after the other in one lane."""
STEPS = 40_000
"""Interactions after which sampling stops at the latest."""
STREAM_LANES, STREAM_STEPS = 16, 2_000
"""Independent lanes, and steps of each, in a world without episodes."""
SEED = 0

Number = TypeVar("Number", float, NDArray[np.float64])
BestKind = Literal["exact", "threshold", "stated", "none"]
WORDS: dict[BestKind, str] = {
    "exact": "exact",
    "threshold": "the world's registered reward threshold, which counts as solved",
    "stated": "stated with --reference-best",
    "none": "unknown",
}
"""Where an upper reference is from, in words."""


class WorldReferences(Frozen, frozen=True):
    """The references of one world, and where each is from."""

    measure: Literal["return", "rate"]
    """What is scored: the return of an episode, or in a world without episodes the reward of an
    interaction."""
    random: float
    """Mean of random play."""
    error: float | None = None
    """Standard error of ``random``, if it was sampled; None: it is exact."""
    episodes: int = 0
    """Sampled episodes; 0 if none ended, or if ``random`` is exact."""
    interactions: Annotated[int, Meta(ge=0)] = 0
    """Sampled interactions."""
    best: float | None = None
    """The upper reference, if there is one."""
    kind: BestKind = "none"
    """Where ``best`` is from."""

    @property
    def normalised(self) -> bool:
        """Whether a score is a share of the way from random play to the upper reference."""
        return self.best is not None

    @property
    def column(self) -> str:
        """The log column that is scored."""
        return "mean_return" if self.measure == "return" else "reward_rate"

    def score(self, value: Number) -> Number:
        """Return the score of ``value``; without an upper reference, its distance from random.

        >>> WorldReferences(measure="return", random=20.0).score(95.0)
        75.0
        >>> WorldReferences(measure="return", random=20.0, best=120.0, kind="stated").score(95.0)
        0.75
        """
        span = 1.0 if self.best is None else self.best - self.random
        return (value - self.random) / span

    @property
    def words(self) -> str:
        """The references as they stand in the note below a table."""
        what = "return of an episode" if self.measure == "return" else "reward per interaction"
        zero = f"{self.random:.4g} ({self._origin()})"
        if self.best is None:
            return (
                f"scores are the mean {what} minus random play, {zero}, in the world's own units: "
                "no upper reference is known (--reference-best states one)"
            )
        return (
            f"score: mean {what}, 0 is random play, {zero}, 1 is {self.best:.4g} "
            f"({WORDS[self.kind]}){self._precision()}"
        )

    def _origin(self) -> str:
        if self.error is None:
            return "exact"
        many = f"{self.episodes:,} episodes" if self.episodes else f"{self.interactions:,} steps"
        error = "unknown" if math.isnan(self.error) else f"{self.error:.2g}"
        return f"sampled, standard error {error}, {many}"

    def _precision(self) -> str:
        """Return the error of random play in units of the score, in words."""
        if self.error is None or self.best is None or math.isnan(self.error):
            return ""
        return f"; in units of the score that error is {self.error / (self.best - self.random):.2g}"


def find_references(
    world: EnvironmentSpec, name: str, best: float | None = None
) -> WorldReferences:
    """Return the references of ``world``, called ``name`` in errors.

    What the world does not know exactly is sampled from a fixed seed. ``best`` is an upper
    reference that the user states.
    """
    try:
        found = _known_references(world)
    except SpecError as fault:
        raise SpecError(f"{name!r}: {fault}") from None
    if best is None:
        return found
    if found.kind == "exact":
        raise SpecError(
            f"--reference-best: {name!r} has an exact one already ({found.best:g}); leave it out"
        )
    if not (math.isfinite(best) and best > found.random):
        raise SpecError(
            f"--reference-best: {best:g} is not above random play in {name!r} "
            f"({found.random:.4g} per {'episode' if found.measure == 'return' else 'interaction'})"
        )
    return replace(found, best=float(best), kind="stated")


@lru_cache(maxsize=64)
def _known_references(world: EnvironmentSpec) -> WorldReferences:
    known = make(world, Boundary(), 1.0, lanes=1).references
    if math.isfinite(known.random_return) and math.isfinite(known.oracle_return):
        return WorldReferences(
            measure="return", random=known.random_return, best=known.oracle_return, kind="exact"
        )
    if math.isfinite(known.random_rate) and math.isfinite(known.oracle_rate):
        return WorldReferences(
            measure="rate", random=known.random_rate, best=known.oracle_rate, kind="exact"
        )
    sampled = sample_random_play(world)
    threshold = _reward_threshold(world)
    if sampled.measure == "return" and threshold is not None and threshold > sampled.random:
        return replace(sampled, best=threshold, kind="threshold")
    return sampled


def sample_random_play(world: EnvironmentSpec) -> WorldReferences:
    """Return the mean of random play with its standard error, without an upper reference.

    Episodes are played one after the other: in lanes side by side, short ones would be finished
    first and count too much. A world of which a single one ended is a :class:`SpecError`.
    """
    env = _new(world, 1)
    found = sample_references(env, uniform(env.actions), EPISODES, SEED, STEPS)
    if found.episodes > 1:
        return WorldReferences(
            measure="return",
            random=found.mean_return,
            error=found.error,
            episodes=found.episodes,
            interactions=found.interactions,
        )
    if found.episodes == 1:  # its rate would hide the episodes, and one has no standard error
        raise SpecError(
            f"its episodes are too long to be scored: one alone ended in {STEPS:,} steps of random "
            "play; limit them (gymnasium:ID+TimeLimit?max_episode_steps=1000)"
        )
    env = _new(world, STREAM_LANES)
    found = sample_references(env, uniform(env.actions), STREAM_STEPS, SEED, STREAM_STEPS)
    return WorldReferences(
        measure="rate",
        random=found.rate,
        error=found.rate_error,
        interactions=found.interactions,
    )


def _new(world: EnvironmentSpec, lanes: int) -> Environment:
    return make(world, Boundary(), 1.0, lanes)


def _reward_threshold(world: EnvironmentSpec) -> float | None:
    """Return the registered return at which a Gymnasium environment counts as solved.

    Arguments and wrappers may change rewards, so a world with either has none.
    """
    if not isinstance(world, Gymnasium) or world.wrappers or world.arguments:
        return None
    return gymnasium_adapter.reward_threshold(world)
