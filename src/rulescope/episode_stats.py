"""Running statistics of a lifetime: recent episode returns and reward per interaction."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rulescope.core.arrays import Arrays
from rulescope.envs.environment import References, Step

RETURN_WINDOW = 100
"""Completed episodes, all lanes together, in order of completion."""
RATE_WINDOW = 4000
"""Interactions, all lanes together."""

STREAMS = ("episodes", "mean_return", "reward_rate", "score", "rate_score")
GOALS = ("goals", "success", "first_goal_interaction", "first_goal_episode")
"""Columns of worlds with a goal: how often it was reached, the share of recent episodes that
reached it, and the interaction and episode (from 1, all lanes together) that first did."""


HEADLINES = {
    "score": "score",
    "rate_score": "score of the reward rate",
    "mean_return": "mean return",
    "reward_rate": "reward per interaction",
}
"""Columns that measure performance, preferred first, with their printed names."""


def headline(log: Arrays) -> str:
    """Return the first column of ``HEADLINES`` that has a finite value in ``log``."""
    known = (name for name in HEADLINES if np.isfinite(log[name]).any())
    return next(known, "score")


class EpisodeStats:
    """Running windows over unscaled rewards and true episode ends.

    In a world that has a goal (``goals``), also when it was first reached and how often recently.
    """

    def __init__(self, lanes: int, references: References, *, goals: bool = False) -> None:
        self.names: tuple[str, ...] = (*STREAMS, *(GOALS if goals else ()))
        self._goals = Goals() if goals else None
        self._references = references
        self._running = np.zeros(lanes)
        self._returns = np.full(RETURN_WINDOW, np.nan)
        self._payoffs = np.full((max(RATE_WINDOW // lanes, 1), lanes), np.nan)
        self._episodes = 0
        self._steps = 0

    def record(self, step: Step) -> None:
        """Add one interaction of every lane."""
        self._payoffs[self._steps % len(self._payoffs)] = step.payoff
        self._steps += 1
        self._running += step.payoff
        for lane, ended in enumerate(step.ended.tolist()):
            if ended:
                self._returns[self._episodes % RETURN_WINDOW] = self._running[lane]
                self._running[lane] = 0.0
                self._episodes += 1
        if self._goals is not None and step.goal is not None:
            self._goals.record(step.goal, step.ended)

    def score(self) -> float:
        """Return the normalised score of recent episodes; without episodes, of the reward rate."""
        if math.isnan(self._references.random_return):
            return self._references.rate_score(_mean(self._payoffs, self._steps))
        return self._references.return_score(_mean(self._returns, self._episodes))

    def read(self) -> dict[str, float]:
        """Return the current value of every stream; NaN where there is no data yet."""
        mean_return = _mean(self._returns, self._episodes)
        rate = _mean(self._payoffs, self._steps)
        goals = {} if self._goals is None else self._goals.read()
        return goals | {
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
            **({} if self._goals is None else self._goals.save()),
        }

    def load(self, state: Arrays) -> None:
        """Restore what :meth:`save` returned."""
        self._running = np.array(state["running"])
        self._returns = np.array(state["returns"])
        self._payoffs = np.array(state["payoffs"])
        self._episodes, self._steps = (int(count) for count in state["counts"])
        if self._goals is not None:
            self._goals.load(state)


class Goals:
    """First time and frequency of reaching a goal."""

    def __init__(self) -> None:
        self._recent = np.full(RETURN_WINDOW, np.nan)
        self._count = np.zeros(3, dtype=np.int64)  # goals, episodes, interactions
        self._first = np.full(2, np.nan)  # interaction, episode

    def record(self, goal: NDArray[np.bool_], ended: NDArray[np.bool_]) -> None:
        """Add one interaction of every lane; a goal is reached at the end of an episode."""
        for reached, end in zip(goal.tolist(), ended.tolist(), strict=True):
            self._count[2] += 1
            if reached:
                self._count[0] += 1
                if self._count[0] == 1:
                    self._first[:] = self._count[2], self._count[1] + 1
            if end:
                self._recent[self._count[1] % RETURN_WINDOW] = reached
                self._count[1] += 1

    def read(self) -> dict[str, float]:
        """Return the columns named in ``GOALS``; the first goal is NaN until there is one."""
        values = (
            float(self._count[0]),
            _mean(self._recent, int(self._count[1])),
            *(float(moment) for moment in self._first),
        )
        return dict(zip(GOALS, values, strict=True))

    def save(self) -> dict[str, NDArray[np.generic]]:
        """Return the complete state."""
        return {
            "goals_recent": self._recent.copy(),
            "goals_count": self._count.copy(),
            "goals_first": self._first.copy(),
        }

    def load(self, state: Arrays) -> None:
        """Restore what :meth:`save` returned."""
        self._recent = np.array(state["goals_recent"])
        self._count = np.array(state["goals_count"])
        self._first = np.array(state["goals_first"])


def _mean(window: NDArray[np.float64], filled: int) -> float:
    """Return the mean of the part of a ring buffer that has been filled so far."""
    return float(window[:filled].mean()) if filled else float("nan")
