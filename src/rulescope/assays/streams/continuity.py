"""A check, without a learner, that a world never resets.

The paddle is moved away from the centre and left there, and nothing drifts. So a reset by the world
shows as a reported terminal, as a paddle at the centre again, or as a ball that is not one row
further. CatchStream must show none of these. Masked Catch, the control, reports no terminal either,
but shows its resets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.envs import make
from rulescope.envs.environment import Environment
from rulescope.envs.world_config import Boundary, Catch, CatchStream

STEPS = 200
LEFT, STAY = 0, 1


class Continuity(NamedTuple):
    """Resets seen in ``STEPS`` steps of one lane."""

    terminals: int
    """Terminals that were reported."""
    snaps: int
    """Steps at which the paddle was suddenly at the centre."""
    jumps: int
    """Steps at which the ball was not one row from where it had been."""
    repeats: bool
    """Whether the same seed gave the same observations and payoffs again."""

    @property
    def holds(self) -> bool:
        """Whether the world is deterministic and never reset anything."""
        return self.repeats and not (self.terminals or self.snaps or self.jumps)


def continuity(world: Catch | CatchStream, boundary: Boundary, seed: int = 0) -> Continuity:
    """Return the resets of ``world`` while the paddle stays off centre."""
    first, second = (_trace(make(world, boundary, 1.0, lanes=1), seed) for _ in range(2))
    centre = world.columns // 2
    arrived = (first.paddles[1:] == centre) & (first.paddles[:-1] != centre)
    return Continuity(
        terminals=int(first.terminals.sum()),
        snaps=int(arrived.sum()),
        jumps=int((np.abs(np.diff(first.rows)) != 1).sum()),
        repeats=first.equals(second),
    )


def structural_check(seed: int = 0) -> dict[str, Continuity]:
    """Return the published check: CatchStream without drift, and masked Catch as its control."""
    masked = Boundary(terminals="masked")
    return {
        "CatchStream": continuity(CatchStream(drift=0.0), Boundary(), seed),
        "masked Catch": continuity(Catch(), masked, seed),
    }


class _Trace(NamedTuple):
    """One lane over ``STEPS`` steps; places have one entry more, for the beginning."""

    rows: NDArray[np.int64]
    paddles: NDArray[np.int64]
    terminals: NDArray[np.bool_]
    payoffs: NDArray[np.float64]
    boards: NDArray[np.float32]

    def equals(self, other: _Trace) -> bool:
        """Return whether everything was the same at every step."""
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in self._fields
        )


def _trace(env: Environment, seed: int) -> _Trace:
    env.reset(seed)
    env.step(np.array([LEFT]))
    places = [_place(env)]
    steps = []
    for _ in range(STEPS):
        steps.append(env.step(np.array([STAY])))
        places.append(_place(env))
    rows, paddles = np.array(places).T
    return _Trace(
        rows,
        paddles,
        np.array([step.terminal[0] for step in steps]),
        np.array([step.payoff[0] for step in steps]),
        np.array([step.observation[0] for step in steps]),
    )


def _place(env: Environment) -> tuple[int, int]:
    """Return the row of the ball and the column of the paddle."""
    state = env.save()
    return int(np.asarray(state["row"], np.int64)), int(np.asarray(state["paddles"], np.int64)[0])
