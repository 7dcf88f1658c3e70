"""Rewards of random and optimal policies, exact by dynamic programming and sampled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.envs.environment import Actions, Array, Environment, References
from rulescope.envs.world_config import Catch, CatchStream, DeepSea, Tracking

Policy = Callable[[Array, Generator], Actions]
"""A map from observations [N, *shape] to actions [N], with a generator for its own randomness."""

Table = NDArray[np.float64]

PUBLISHED_DENSE_RANDOM = -3.04774
"""Random return of dense 8x8 Catch in the published audit: a mean of sampled episodes."""


@lru_cache(maxsize=64)
def catch_references(config: Catch) -> References:
    """Return the references that normalise scores in this Catch.

    They are exact, except for the one constant of ``references="published"``.
    """
    # Where only the catch pays, random play needs no computation: the ball's column is uniform on
    # every row (its clipped walk is doubly stochastic) and independent of the paddle.
    random = _start_value(config, _mean) if config.dense else 2 / config.columns - 1
    oracle = _start_value(config, _best)
    board = Catch(rows=config.rows, columns=config.columns, dense=config.dense, drift=config.drift)
    if config.references == "published" and board == Catch(dense=True):
        random = PUBLISHED_DENSE_RANDOM
    steps = config.rows - 1
    return References(random, oracle, random / steps, oracle / steps)


def catch_oracle(config: Catch) -> Policy:
    """Return a policy that is optimal in this Catch; it needs only the board."""
    best = np.stack([q.argmax(axis=0) for q in _action_values(config, _best)])[::-1]

    def act(observation: Array, _: Generator) -> Actions:
        # The ball is never seen on the last row: the step that lands it shows the next episode.
        row, ball = np.divmod(
            observation[:, :-1].reshape(len(observation), -1).argmax(axis=1), config.columns
        )
        paddle = observation[:, -1].argmax(axis=1)
        actions: Actions = best[row, ball, paddle]
        return actions

    return act


def tracking_references(config: Tracking) -> References:
    """Return the exact rates of Tracking; there are no episodes and so no returns.

    Both walks are doubly stochastic (clipped), hence uniform in the long run. An oracle that has
    reached the target's column is never more than one column away from it, and misses it only when
    the target moves, which half of the moves at a wall do not.
    """
    columns = config.columns
    return References(math.nan, math.nan, 1 / columns, 1 - config.drift * (columns - 1) / columns)


def catch_stream_references(config: CatchStream) -> References:
    """Return the exact rates of CatchStream: one contact every ``2 * (rows - 1)`` steps.

    The ball is in a uniform column and stays in it as Tracking's target does. (A paddle that
    cannot reach the ball before the first contact misses it, which no long-run rate shows.)
    """
    columns, period = config.columns, 2 * (config.rows - 1)
    caught = 1 - config.drift * (columns - 1) / columns
    return References(math.nan, math.nan, (2 / columns - 1) / period, (2 * caught - 1) / period)


def deep_sea_references(config: DeepSea) -> References:
    """Return the exact references of DeepSea, which do not depend on the mapping of the actions.

    The last ``depth - 1`` moves must go right; the best first move is left, which costs nothing.
    Half of all random moves cost.
    """
    depth = config.depth
    random = 0.5 ** (depth - 1) - 0.01 / 2
    oracle = 1 - 0.01 * (depth - 1) / depth
    return References(random, oracle, random / depth, oracle / depth)


def deep_sea_oracle(observation: Array, _: Generator) -> Actions:
    """Move left once, which is free, then always right: optimal without a mapping."""
    first = np.asarray(observation[:, 0].any(axis=1))
    return np.where(first, 0, 1)


def chase(observation: Array, _: Generator) -> Actions:
    """Move the player, shown in the last row, into the column of the ball or target above it.

    This policy is optimal in Tracking and CatchStream. It stays while the ball is in its own row,
    where the board does not distinguish the two.
    """
    above = observation[:, :-1].max(axis=1)
    ball, player = above.argmax(axis=1), observation[:, -1].argmax(axis=1)
    moves: Actions = np.where(above.any(axis=1), np.sign(ball - player), 0) + 1
    return moves


def uniform(actions: int) -> Policy:
    """Return the policy that draws each of ``actions`` with equal probability."""

    def act(observation: Array, generator: Generator) -> Actions:
        return generator.integers(actions, size=len(observation))

    return act


class Sample(NamedTuple):
    """Estimates from complete episodes and from all interactions."""

    mean_return: float
    """Mean undiscounted return, NaN if no episode ended."""
    error: float
    """Standard error of ``mean_return``, NaN below two episodes."""
    rate: float
    """Mean payoff per interaction."""
    episodes: int
    """Number of completed episodes."""
    rate_error: float = math.nan
    """Standard error of ``rate`` over the lanes, which are independent; NaN below two lanes."""
    interactions: int = 0
    """Interactions of all lanes together."""


def sample_references(
    env: Environment, policy: Policy, episodes: int, seed: int, step_cap: int = 100_000
) -> Sample:
    """Run ``policy`` in ``env`` until ``episodes`` have ended, or for ``step_cap`` vector steps.

    The cap ends the run in a world without episodes. Payoffs are the world's own, so wrappers make
    no difference.
    """
    generator = seeds.stream(seed, "references", "policy")
    observation = env.reset(seed)
    running = np.zeros(env.lanes)
    returns: list[float] = []
    totals, steps = np.zeros(env.lanes), 0
    while len(returns) < episodes and steps < step_cap:
        step = env.step(policy(observation, generator))
        observation = step.observation
        running += step.payoff
        returns.extend(running[step.ended].tolist())
        running[step.ended] = 0.0
        totals += step.payoff
        steps += 1
    count, interactions = len(returns), steps * env.lanes
    spread = float(np.std(totals, ddof=1)) / math.sqrt(env.lanes) if env.lanes > 1 else math.nan
    return Sample(
        mean_return=float(np.mean(returns)) if count else math.nan,
        error=float(np.std(returns, ddof=1)) / math.sqrt(count) if count > 1 else math.nan,
        rate=float(totals.sum()) / interactions if steps else math.nan,
        episodes=count,
        rate_error=spread / steps if steps else math.nan,
        interactions=interactions,
    )


def _mean(q: Table) -> Table:
    """Return state values under uniformly random actions, from action values [3, ...]."""
    value: Table = q.mean(axis=0)
    return value


def _best(q: Table) -> Table:
    """Return state values under the best action, from action values [3, ...]."""
    value: Table = q.max(axis=0)
    return value


def _start_value(config: Catch, choose: Callable[[Table], Table]) -> float:
    """Return the expected undiscounted return of an episode."""
    *_, first = _action_values(config, choose)
    return float(choose(first)[:, config.columns // 2].mean())


def _action_values(config: Catch, choose: Callable[[Table], Table]) -> Iterator[Table]:
    """Yield action values [3, ball, paddle] for each ball row, from the last but one up to row 0.

    ``choose`` maps action values to state values and so represents the policy.
    """
    columns = np.arange(config.columns)
    left, right = np.maximum(columns - 1, 0), np.minimum(columns + 1, config.columns - 1)
    distance = np.abs(columns[:, None] - columns[None, :])
    cost = distance / (config.columns - 1) if config.dense else np.zeros(distance.shape)
    after = np.where(distance == 0, 1.0, -1.0) - cost  # value of arriving in (ball, paddle)
    for _ in range(config.rows - 1):
        # Before the ball drifts, and with the paddle already moved.
        moved = (1 - config.drift) * after + config.drift / 2 * (after[left] + after[right])
        q = np.stack([moved[:, left], moved, moved[:, right]])
        yield q
        after = choose(q) - cost
