"""Checks of the worlds without a learner: resets, and returns of random and optimal play.

The first is the structural check of CatchStream, with masked Catch as its control. The second runs
the random and the optimal policy in 64 lanes and compares their returns with the exact references
by which scores are normalised.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from rulescope.assays.results import Column, Table, Value
from rulescope.assays.streams.continuity import STEPS, structural_check
from rulescope.core import disk
from rulescope.core.runtime import Identity
from rulescope.envs import make
from rulescope.envs.environment import References
from rulescope.envs.references import (
    Policy,
    Sample,
    catch_oracle,
    chase,
    deep_sea_oracle,
    sample_references,
    uniform,
)
from rulescope.envs.world_config import WORLDS, Boundary, Catch, DeepSea, EnvironmentSpec

FOLDER, FILE = "worlds", "worlds.json"
"""Where ``rulescope check worlds`` records its result, below a folder of results."""
LANES = 64
EPISODES = 40_000
STEP_CAP = 21_000
"""Steps of every lane in a world without episodes: 1,500 whole periods of CatchStream."""
TOLERANCE = 4.0
"""Standard errors by which a sample may differ from the exact value."""
SAMPLED = (
    "catch",
    "catch-dense",
    "catch-long",
    "catch-big",
    "catch-stream",
    "tracking",
    "deep-sea-8",
    "deep-sea-10",
    "deep-sea-12",
)
"""Worlds with exact references. (In deeper seas random play finds the goal too seldom for a
standard error.)"""


class Structure(msgspec.Struct, frozen=True):
    """Resets by a world while the paddle stayed off centre."""

    world: str
    terminals: int
    """Ends that the learner would have seen."""
    snaps: int
    """Steps at which the paddle was reset to the centre."""
    jumps: int
    """Steps at which the ball was not one row from where it had been."""
    repeats: bool
    """Whether the same seed gave the same steps again."""
    resets: bool
    """Whether the world reset anything."""


class Reference(msgspec.Struct, frozen=True):
    """What one policy earns in one world: exactly, and in a sample."""

    world: str
    policy: str
    measure: str
    """``return`` of an episode, or ``rate``: reward per interaction."""
    exact: float
    sampled: float
    error: float
    """Standard error of ``sampled``."""
    episodes: Annotated[int, Meta(ge=0)]
    interactions: Annotated[int, Meta(ge=0)]
    published: float | None = None
    """The sampled constant by which published scores are normalised, where that differs."""

    @property
    def deviation(self) -> float:
        """How many standard errors the sample is from the exact value."""
        # A policy that earns the same in every episode has no error but that of rounding.
        if math.isclose(self.sampled, self.exact, rel_tol=1e-9, abs_tol=1e-12):
            return 0.0
        return (self.sampled - self.exact) / self.error if self.error > 0 else math.inf

    @property
    def agrees(self) -> bool:
        """Whether the sample is within the tolerance."""
        return abs(self.deviation) <= TOLERANCE


class WorldCheck(msgspec.Struct, frozen=True):
    """What ``rulescope check worlds`` found, as it is recorded."""

    command: str
    structure: tuple[Structure, ...]
    references: tuple[Reference, ...]
    runtime: Identity

    @property
    def passed(self) -> bool:
        """Whether CatchStream never resets, its control does, and every sample agrees."""
        stream, control = self.structure
        structural = stream.repeats and not stream.resets and control.resets
        return structural and all(reference.agrees for reference in self.references)

    def to_json(self) -> bytes:
        """Return the file of this check."""
        return disk.as_json(self)


def read(path: Path) -> WorldCheck:
    """Read what :meth:`WorldCheck.to_json` wrote."""
    return disk.read_json(path, WorldCheck, "a check of worlds")


def structures() -> tuple[Structure, ...]:
    """Return the structural check of CatchStream and of its control, from seed 0."""
    return tuple(
        Structure(
            name,
            found.terminals,
            found.snaps,
            found.jumps,
            found.repeats,
            resets=bool(found.terminals or found.snaps or found.jumps),
        )
        for name, found in structural_check().items()
    )


def references(
    episodes: int = EPISODES,
    step_cap: int = STEP_CAP,
    report: Callable[[int, int, str], None] = lambda _done, _total, _name: None,
) -> tuple[Reference, ...]:
    """Play both policies in every world until ``episodes`` have ended.

    In a world without episodes every lane makes ``step_cap`` steps instead. ``report`` is called
    with the number of worlds done, of all, and the name of the next one.
    """
    found: list[Reference] = []
    for done, name in enumerate(SAMPLED):
        report(done, len(SAMPLED), name)
        found += _played(name, episodes, step_cap)
    report(len(SAMPLED), len(SAMPLED), "")
    return tuple(found)


def _played(name: str, episodes: int, step_cap: int) -> list[Reference]:
    """Return the references of one world: random play, then optimal play."""
    world = WORLDS[name]
    used = make(world, Boundary(), 1.0, LANES).references
    if isinstance(world, Catch):
        world = msgspec.structs.replace(world, references="exact")
    env = make(world, Boundary(), 1.0, LANES)
    continuing = math.isnan(env.references.random_return)
    limits = {"step_cap": step_cap} if continuing else {}
    return [
        _compared(
            name,
            policy,
            sample_references(env, act, episodes, seed, **limits),
            env.references,
            used,
        )
        for seed, (policy, act) in enumerate(_policies(world, env.actions).items())
    ]


def _policies(world: EnvironmentSpec, actions: int) -> dict[str, Policy]:
    if isinstance(world, Catch):
        best = catch_oracle(world)
    else:
        best = deep_sea_oracle if isinstance(world, DeepSea) else chase
    return {"random": uniform(actions), "optimal": best}


def _compared(
    name: str, policy: str, sample: Sample, exact: References, used: References
) -> Reference:
    """Return ``sample`` beside the ``exact`` value and the one that scores are normalised by."""
    values = {
        "random": ("random_return", "random_rate"),
        "optimal": ("oracle_return", "oracle_rate"),
    }[policy]
    episodic = sample.episodes > 0
    field = values[0] if episodic else values[1]
    own, published = float(getattr(exact, field)), float(getattr(used, field))
    return Reference(
        name,
        policy,
        "return" if episodic else "rate",
        own,
        sample.mean_return if episodic else sample.rate,
        sample.error if episodic else sample.rate_error,
        sample.episodes,
        sample.interactions,
        None if published == own else published,
    )


def tables(check: WorldCheck) -> tuple[Table, Table]:
    """Return the structural check, and the references."""
    structural: list[tuple[Value, ...]] = [
        (
            each.world,
            each.terminals,
            each.snaps,
            each.jumps,
            "yes" if each.repeats else "no",
            "yes" if each.resets else "no",
        )
        for each in check.structure
    ]
    sampled: list[tuple[Value, ...]] = [
        (
            each.world,
            each.policy,
            each.measure,
            each.exact,
            each.sampled,
            each.error,
            each.deviation,
            each.episodes,
            each.interactions,
            each.published,
        )
        for each in check.references
    ]
    return (
        Table(
            "worlds-structure",
            "Does the world put anything back?",
            (
                Column("World"),
                Column("Ends"),
                Column("Paddle resets"),
                Column("Ball jumps"),
                Column("Repeatable"),
                Column("Resets"),
            ),
            tuple(structural),
            f"{STEPS} steps from seed 0 without drift; the paddle is moved off centre once and "
            "stays. Masked Catch is the control: it reports no end either, but resets.",
        ),
        Table(
            "worlds-references",
            "What random and optimal play earn: exactly, and in a sample",
            (
                Column("World"),
                Column("Policy"),
                Column("Measure"),
                Column("Exact", 6),
                Column("Sampled", 6),
                Column("Standard error", 6),
                Column("Deviation (s.e.)", 2),
                Column("Episodes"),
                Column("Interactions"),
                Column("Published", 5),
            ),
            tuple(sampled),
            f"{LANES} lanes; return: of an episode; rate: reward per interaction, in worlds "
            f"without episodes. A deviation of up to {TOLERANCE:g} standard errors agrees. "
            "Published: the constant that scores are normalised by, where it is a sample itself.",
        ),
    )
