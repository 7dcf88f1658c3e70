"""Configurations of worlds, boundaries and changes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from rulescope.core.structs import Frozen, Sha256

Size = Annotated[int, Meta(ge=2, le=256)]
Half = Annotated[float, Meta(ge=0.0, le=0.5)]
"""A probability of drift at which following the target is still optimal."""


class Catch(Frozen, frozen=True, tag="catch", tag_field="kind"):
    """Catch a falling ball with a paddle: +1 if caught, -1 if missed; one episode a fall."""

    rows: Size = 8
    columns: Size = 8
    dense: bool = False
    """Also pay -|paddle - ball| / (columns - 1) at every step."""
    drift: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.0
    """Probability of a sideways ball move of one column at each step."""
    references: Literal["published", "exact"] = "published"
    """Dense Catch is normalised by the (sampled) constant of the published audit, or exactly."""


class CatchStream(Frozen, frozen=True, tag="catch-stream", tag_field="kind"):
    """Catch without episodes: the ball bounces, the paddle is never moved back."""

    rows: Size = 8
    columns: Size = 8
    drift: Half = 0.2
    """Probability of a sideways ball move of one column at each step, contacts included."""


class Tracking(Frozen, frozen=True, tag="tracking", tag_field="kind"):
    """Keep a cursor on a randomly moving target: 1 for each step in its column; no episodes."""

    columns: Size = 8
    drift: Half = 0.3
    """Probability of a target move of one column at each step."""


class DeepSea(Frozen, frozen=True, tag="deep-sea", tag_field="kind"):
    """Move right at a small cost, for a reward that only the last column holds."""

    depth: Size = 8
    """Rows, columns, and steps of an episode."""
    mapping: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None = None
    """Seed of a random mapping of the two actions in each cell; None: 0 is left, 1 is right."""


class MinAtar(Frozen, frozen=True, tag="minatar", tag_field="kind"):
    """A game of the MinAtar package (extra ``minatar``), 10x10 with channels first."""

    game: Literal["breakout", "freeway"]
    sticky: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.1
    """Probability that the last action is repeated instead of the chosen one."""
    actions: Literal["full", "minimal"] = "full"
    """All six actions, or the three that differ in this game."""
    limit: Annotated[int, Meta(ge=1)] | None = None
    """Largest number of steps of an episode; None: only the game ends it."""


Plain = bool | int | float | str | None


class Argument(Frozen, frozen=True):
    """One keyword argument."""

    name: Annotated[str, Meta(pattern=r"^[A-Za-z_]\w*\Z")]
    value: Plain | tuple[Plain, ...]


class WorldWrapper(Frozen, frozen=True):
    """A wrapper around a Gymnasium environment."""

    name: Annotated[str, Meta(pattern=r"^([A-Za-z_][\w.]*:)?[A-Za-z_]\w*\Z")]
    """``TimeLimit``: one of ``gymnasium.wrappers``. ``module:Class``: one of another package."""
    arguments: tuple[Argument, ...] = ()
    """Its keyword arguments."""


class Gymnasium(Frozen, frozen=True, tag="gymnasium", tag_field="kind"):
    """Any registered Gymnasium environment with discrete actions.

    Without references, scores are unknown.
    ``rulescope.envs.gymnasium_adapter.pin_gymnasium`` makes one with its ``source``.
    """

    id: Annotated[str, Meta(min_length=1)]
    """As for ``gymnasium.make``; "module:Name-v0" imports the module that registers the world."""
    flat: bool = False
    """Whether to flatten the observation, whatever its shape."""
    observation: Annotated[str, Meta(min_length=1)] | None = None
    """The key of the part that is observed, where the observation is a dictionary: "image" in
    MiniGrid. None: all of it."""
    arguments: tuple[Argument, ...] = ()
    """Keyword arguments of ``gymnasium.make``."""
    wrappers: tuple[WorldWrapper, ...] = ()
    """Wrappers around the environment, the innermost first."""
    source: Sha256 | None = None
    """Sha256 of the code of the world: an edited world is another world. None: not pinned, so that
    the run id does not depend on it."""
    random_return: float | None = None
    oracle_return: float | None = None
    random_rate: float | None = None
    oracle_rate: float | None = None


class PluginWorld(Frozen, frozen=True, tag="plugin", tag_field="kind"):
    """A world of another package; ``rulescope.envs.plugin_world.pin_plugin_world`` makes one."""

    name: Annotated[str, Meta(min_length=1)]
    """Name of an entry point of the group ``rulescope.worlds``."""
    source: Sha256
    """Hash of its package's source: an edited world is another world."""


EnvironmentSpec = Catch | CatchStream | Tracking | DeepSea | MinAtar | Gymnasium | PluginWorld

WORLDS: dict[str, EnvironmentSpec] = {
    "catch": Catch(),
    "catch-dense": Catch(dense=True),
    "catch-long": Catch(rows=16, columns=16),
    "catch-tall": Catch(rows=16),
    "catch-big": Catch(rows=24, columns=24),
    "catch-stream": CatchStream(),
    "tracking": Tracking(),
    **{
        f"deep-sea-{depth}": DeepSea(depth=depth) for depth in (4, 6, 8, 10, 12, 14, 16, 20, 24, 30)
    },
    "minatar-breakout": MinAtar(game="breakout"),
    "minatar-freeway": MinAtar(game="freeway"),
    # The games as gymnax implements them, which the OPEN rules were trained on.
    "gymnax-breakout": MinAtar(game="breakout", sticky=0.0, actions="minimal", limit=1000),
    "gymnax-freeway": MinAtar(game="freeway", sticky=0.0, actions="minimal", limit=2500),
}


class Boundary(Frozen, frozen=True):
    """The episode ends that the learner observes; the world itself is unchanged.

    ``episodic`` reports the true ends, ``masked`` none, ``synthetic`` one every ``interval`` steps
    of a lane, counted from the reset of the environment and not restarted by a true end.
    """

    terminals: Literal["episodic", "masked", "synthetic"] = "episodic"
    interval: Annotated[int, Meta(ge=1)] | None = None
    truncation: Literal["terminal", "bootstrap"] = "terminal"
    """What a learner makes of an episode that a limit of the world cut off. ``terminal``: the same
    as of any other end, so the value after it is 0. ``bootstrap``: the value after it is the
    learner's own estimate for the observation at which the episode was cut off."""


class _Change(Frozen, frozen=True):
    """Base of the changes of the world within a lifetime, which follow."""

    at: Annotated[int, Meta(ge=0)]
    """Iteration after which the world changes, at once and in the middle of an episode."""

    @property
    def first_effect(self) -> int:
        """The first iteration in which the world differs from the unchanged one."""
        return self.at + 1

    @property
    def kind(self) -> str:
        """The name of the change, as in a specification."""
        return str(self.__struct_config__.tag)


class ActionFlip(_Change, frozen=True, tag="action-flip", tag_field="kind"):
    """Left and right are exchanged (in Freeway up and down; elsewhere the order is reversed)."""


class RewardMove(_Change, frozen=True, tag="reward-move", tag_field="kind"):
    """The column that pays is no longer that of the ball (or target) but a mapped one."""

    map: Annotated[str, Meta(pattern=r"^(mirror|shift(:[1-9][0-9]{0,2})?)$")] = "shift"
    """``shift:k``: k columns to the right, around the edge; ``shift``: by a quarter of the
    columns; ``mirror``: in reverse order."""


class ObservationFlip(_Change, frozen=True, tag="observation-flip", tag_field="kind"):
    """The columns of the observation are reversed; the world is unchanged."""


class RewardSign(_Change, frozen=True, tag="reward-sign", tag_field="kind"):
    """The reward is negated."""


Change = ActionFlip | RewardMove | ObservationFlip | RewardSign

CHANGES: dict[str, type[Change]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (ActionFlip, RewardMove, ObservationFlip, RewardSign)
}
"""Changes by name."""


def reward_columns(change: RewardMove, columns: int) -> list[int]:
    """Return the column that pays for each column of the ball, after ``change``.

    >>> reward_columns(RewardMove(at=1500), 8)
    [2, 3, 4, 5, 6, 7, 0, 1]
    """
    name, _, shift = change.map.partition(":")
    if name == "mirror":
        return list(reversed(range(columns)))
    by = int(shift) if shift else columns // 4
    return [(column + by) % columns for column in range(columns)]


def change_problem(environment: EnvironmentSpec, change: Change) -> str | None:
    """Return why this change is impossible in this world (key first), or None."""
    world = environment.__struct_config__.tag
    if isinstance(change, RewardMove):
        if not isinstance(environment, Catch | CatchStream | Tracking):
            return f"kind: the reward of {world!r} does not depend on a column that could be moved"
        columns = environment.columns
        if reward_columns(change, columns) == list(range(columns)):
            return f"map: {change.map!r} moves no reward on {columns} columns"
    if isinstance(change, ObservationFlip) and isinstance(environment, Gymnasium | PluginWorld):
        return f"kind: the columns in an observation of {world!r} are not known"
    return None
