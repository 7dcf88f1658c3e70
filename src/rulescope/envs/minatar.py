"""Games of the MinAtar package, an optional dependency (it is under the GPL)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.random import Generator, RandomState

from rulescope.core import seeds
from rulescope.core.errors import SpecError
from rulescope.envs.environment import (
    UNKNOWN,
    Actions,
    Array,
    SeededWorld,
    State,
    Step,
    merge_final,
)
from rulescope.envs.world_config import MinAtar

ACTIONS = "nlurdf"
"""Nothing, left, up, right, down, fire: the full action set, in the order of the package."""

OPPOSITE = {"breakout": {"l": "r", "r": "l"}, "freeway": {"u": "d", "d": "u"}}
"""Actions that an action flip exchanges in each game; the others stay."""

STATE: dict[str, dict[str, tuple[int, ...]]] = {
    "breakout": {
        **dict.fromkeys(["ball_x", "ball_y", "ball_dir", "last_x", "last_y", "pos", "strike"], ()),
        "terminal": (),
        "brick_map": (10, 10),
    },
    "freeway": {
        **dict.fromkeys(["pos", "move_timer", "terminate_timer", "terminal"], ()),
        "cars": (8, 4),
    },
}
"""The attributes that hold the state of each game, with their shapes."""

_FIXED = {"channels", "action_map", "random"}
"""The other attributes of a game: constants, and the random generator, which is replaced."""


class MinAtarEnv(SeededWorld):
    """``lanes`` games with boards of [channels, 10, 10], 1 where an object is.

    Sticky actions are the package's own: the last *executed* action is repeated, also across an
    episode end. An episode ends when the game ends, or after ``limit`` steps; both are reported
    as terminal, and with a limit ``truncated`` tells them apart. There are no references: returns
    and rates are reported unnormalised.

    The package draws through NumPy's legacy interface, which reads the stream of the lane here.
    """

    def __init__(self, config: MinAtar, lanes: int) -> None:
        super().__init__(lanes)
        self.config = config
        self._make = _package().Environment
        game = self._new(seeds.stream(0, "env", 0))
        found = vars(game.env).keys() - _FIXED
        if found != STATE[config.game].keys():
            # A version with more state would be restored incompletely, without any error.
            raise SpecError(
                f"the installed MinAtar keeps {sorted(found)} of {config.game}; version 1.0.15 is "
                f"supported, which keeps {sorted(STATE[config.game])}"
            )
        minimal: list[int] = game.minimal_action_set()
        self._meaning = minimal if config.actions == "minimal" else list(range(len(ACTIONS)))
        self.actions = len(self._meaning)
        rows, columns, channels = game.state_shape()
        self.observation_shape = (channels, rows, columns)
        self.references = UNKNOWN
        self._games: list[Any] = []
        self._ages = np.zeros(lanes, np.int64)

    def reset(self, seed: int) -> Array:
        """Start every lane anew from ``seed`` and return the first boards [N, channels, 10, 10]."""
        self._seed(seed)
        self._games = [self._new(stream) for stream in self._streams]
        self._ages = np.zeros(self.lanes, np.int64)
        return self._boards()

    def step(self, actions: Actions) -> Step:
        """Take an action [N] of the action set in every game."""
        chosen = self._checked(actions)
        results = [
            game.act(self._meaning[action])
            for game, action in zip(self._games, chosen, strict=True)
        ]
        payoff = np.array([reward for reward, _ in results], np.float64)
        ended = np.array([over for _, over in results], np.bool_)
        self._ages += 1
        truncated = final = None
        if self.config.limit is not None:
            truncated = (self._ages >= self.config.limit) & ~ended
            final = self._boards() if truncated.any() else None
            ended |= truncated
        for lane in np.flatnonzero(ended).tolist():
            self._games[lane].reset()
            self._ages[lane] = 0
        boards = self._boards()
        if truncated is not None:
            final = merge_final(boards, final, truncated)
        reward = payoff.astype(np.float32)
        return Step(boards, reward, ended.copy(), payoff, ended, None, truncated, final)

    def save(self) -> State:
        """Return the state of the games, each attribute as an array [N, ...], and the streams.

        Also ``ages`` [N], steps since the start of the episode, and ``executed`` [N], the last
        action.
        """
        games = [game.env for game in self._games]
        return {
            "streams": self._packed(),
            "ages": self._ages.copy(),
            "executed": np.array([game.last_action for game in self._games]),
            **{
                f"game.{name}": np.array([getattr(game, name) for game in games])
                for name in STATE[self.config.game]
            },
        }

    def load(self, state: State) -> None:
        """Restore a state that :meth:`save` returned, also in an env that was never reset."""
        lanes, shapes = (self.lanes,), STATE[self.config.game]
        expected = {"streams": (self.lanes, 6), "ages": lanes, "executed": lanes}
        expected |= {f"game.{name}": lanes + shape for name, shape in shapes.items()}
        arrays = self._verified(state, expected)
        self._streams = [seeds.unpack(words) for words in arrays["streams"]]
        # A new game draws its start: from a temporary stream, which is then replaced.
        self._games = [self._new(seeds.stream(0, "env", lane)) for lane in range(self.lanes)]
        self._ages = np.array(arrays["ages"], np.int64)
        for lane, (game, stream) in enumerate(zip(self._games, self._streams, strict=True)):
            game.last_action = int(arrays["executed"][lane])
            game.random = game.env.random = RandomState(stream.bit_generator)
            for name in shapes:
                setattr(game.env, name, _restored(arrays[f"game.{name}"][lane], name))

    def flipped(self) -> tuple[int, ...]:
        """Exchange left and right in Breakout, up and down in Freeway."""
        opposite = OPPOSITE[self.config.game]
        meant = [ACTIONS[action] for action in self._meaning]
        return tuple(meant.index(opposite.get(letter, letter)) for letter in meant)

    def _new(self, stream: Generator) -> Any:
        """Return a game at the start of an episode drawn from ``stream``."""
        game = self._make(self.config.game, sticky_action_prob=self.config.sticky)
        # The package has started an episode from its own generator, so another one is started.
        game.random = game.env.random = RandomState(stream.bit_generator)
        game.reset()
        return game

    def _boards(self) -> Array:
        """Return all boards in a new array, channels first."""
        boards = np.stack([game.state() for game in self._games])
        return np.ascontiguousarray(boards.transpose(0, 3, 1, 2), np.float32)


def _package() -> Any:
    try:
        return import_module("minatar")
    except ModuleNotFoundError as fault:
        if fault.name != "minatar":
            raise
        raise SpecError(
            "MinAtar worlds need the extra 'minatar': pip install 'rulescope[minatar]' "
            "(MinAtar is under the GPL-3.0, so Rulescope does not include it)"
        ) from None


def _restored(array: Any, name: str) -> Any:
    """Return the value of the attribute ``name``: an array, nested lists, or a plain number."""
    return np.array(array) if name == "brick_map" else array.tolist()
