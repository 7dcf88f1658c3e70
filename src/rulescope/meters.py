"""The two score streams of a lifetime: recent episode returns and recent reward per interaction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rulescope.arrays import Arrays
from rulescope.envs.base import References, Step

RETURN_WINDOW = 100
"""Completed episodes, all lanes together, in order of completion."""
RATE_WINDOW = 4000
"""Interactions, all lanes together."""


class Meters:
    """Running windows over what really happened (descaled payoffs, physical episode ends)."""

    names = ("episodes", "mean_return", "reward_rate", "score", "rate_score")

    def __init__(self, lanes: int, references: References) -> None:
        self._references = references
        self._running = np.zeros(lanes)
        self._returns = np.full(RETURN_WINDOW, np.nan)
        self._payoffs = np.full((max(RATE_WINDOW // lanes, 1), lanes), np.nan)
        self._episodes = 0
        self._steps = 0

    def record(self, step: Step) -> None:
        """Take in one interaction of every lane."""
        self._payoffs[self._steps % len(self._payoffs)] = step.payoff
        self._steps += 1
        self._running += step.payoff
        if step.ended.any():
            for lane in np.flatnonzero(step.ended).tolist():
                self._returns[self._episodes % RETURN_WINDOW] = self._running[lane]
                self._running[lane] = 0.0
                self._episodes += 1

    def score(self) -> float:
        """Return the normalised score over the most recent episodes."""
        return self._references.return_score(_mean(self._returns, self._episodes))

    def read(self) -> dict[str, float]:
        """Return the current value of every stream; NaN where there is no data yet."""
        mean_return = _mean(self._returns, self._episodes)
        rate = _mean(self._payoffs, self._steps)
        return {
            "episodes": float(self._episodes),
            "mean_return": mean_return,
            "reward_rate": rate,
            "score": self._references.return_score(mean_return),
            "rate_score": self._references.rate_score(rate),
        }

    def save(self) -> dict[str, NDArray[np.generic]]:
        """Return the complete state."""
        return {
            "running": self._running.copy(),
            "returns": self._returns.copy(),
            "payoffs": self._payoffs.copy(),
            "counts": np.array([self._episodes, self._steps], dtype=np.int64),
        }

    def load(self, state: Arrays) -> None:
        """Continue from what :meth:`save` returned."""
        self._running = np.array(state["running"])
        self._returns = np.array(state["returns"])
        self._payoffs = np.array(state["payoffs"])
        self._episodes, self._steps = (int(count) for count in state["counts"])


def _mean(window: NDArray[np.float64], filled: int) -> float:
    """Return the mean of the part of a ring buffer that has been filled so far."""
    return float(window[:filled].mean()) if filled else float("nan")
