"""Small baselines, and a loop in which they live without the rest of the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from rulescope import learners
from rulescope.envs.boundaries import Masked, Synthetic
from rulescope.envs.catch import CatchEnv
from rulescope.envs.environment import Environment, Step
from rulescope.envs.world_config import Catch
from rulescope.learners.baseline_config import A2C, DQN, PPO, A2CPopArt, Baseline, NetworkSizes
from rulescope.learners.further_config import Further
from rulescope.learners.learner import Choice, Learner, Rollout

LITTLE = NetworkSizes(hidden=(24, 16))
LITTLE_CHANNEL = NetworkSizes(torso="channel", hidden=(1, 16), channels=4)

SMALL: dict[str, Baseline] = {
    "a2c": A2C(agent=LITTLE),
    "ppo": PPO(agent=LITTLE),
    "a2c-popart": A2CPopArt(agent=LITTLE),
    "dqn": DQN(agent=LITTLE, capacity=40, batch=8, start=12, target_every=10),
}


def factory(
    config: Baseline, shape: tuple[int, ...] = (4, 4), interactions: int = 84
) -> Callable[[], Learner]:
    return lambda: learners.make(config, shape, 3, 7, seed=1, interactions=interactions)


def in_channels(config: Baseline) -> Baseline:
    return msgspec.structs.replace(config, agent=LITTLE_CHANNEL)


class World(Protocol):
    """What the loop needs of an environment."""

    def step(self, actions: NDArray[np.int64]) -> Any: ...


def live(
    learner: Learner, world: World, first: NDArray[np.float32], iterations: int, steps: int = 29
) -> list[float]:
    """Let ``learner`` live in ``world`` from its ``first`` observation; return episode returns.

    (``world.step`` returns a ``Step``; only its first four entries are looked at here.)
    """
    observation, lanes = first, len(first)
    began, running, returns = np.zeros(lanes, np.bool_), np.zeros(lanes), []
    for _ in range(iterations):
        observations, taken, choices = [observation], [], []
        for _ in range(steps):
            choice: Choice = learner.act(observations[-1])
            step: Step = world.step(choice.actions)
            running += step.payoff
            returns += running[step.ended].tolist()
            running[step.ended] = 0.0
            choices.append(choice)
            taken.append(step)
            observations.append(step.observation)
        rollout = Rollout(
            observations=np.stack(observations),
            actions=np.stack([choice.actions for choice in choices]),
            rewards=np.stack([step.reward for step in taken]),
            terminals=np.stack([step.terminal for step in taken]),
            began=began,
            behaviour={
                name: np.stack([choice.behaviour[name] for choice in choices])
                for name in choices[0].behaviour
            },
        )
        observation, began = observations[-1], taken[-1].terminal
        learner.learn(rollout, measure=False)
    return returns


def catch_score(config: Baseline | Further, iterations: int, size: int = 5, seed: int = 0) -> float:
    """Return the normalised score of the last 100 episodes of Catch on a small board."""
    world = CatchEnv(Catch(rows=size, columns=size), lanes=2)
    learner = learners.make(
        config, world.observation_shape, 3, 29, seed, interactions=iterations * 58
    )
    returns = live(learner, world, world.reset(seed), iterations)
    return world.references.return_score(float(np.mean(returns[-100:])))


def boundary_life(config: Baseline, terminals: str, iterations: int = 12) -> dict[str, Any]:
    """Return everything that a learner carries after some iterations under this boundary.

    ``terminals``: episodic, masked, or the interval of synthetic ones.
    """
    catch = CatchEnv(Catch(), lanes=2)
    world: Environment = catch
    if terminals == "masked":
        world = Masked(catch)
    elif terminals != "episodic":
        world = Synthetic(catch, int(terminals))
    learner = learners.make(config, (8, 8), 3, 29, 0, interactions=iterations * 58)
    live(learner, world, world.reset(0), iterations)
    return learner.save()


class CartPole:
    """Lanes of Gymnasium's CartPole-v1 with immediate auto-reset; a time limit ends an episode."""

    def __init__(self, lanes: int, seed: int) -> None:
        import gymnasium

        self.games = [gymnasium.make("CartPole-v1") for _ in range(lanes)]
        first = [game.reset(seed=1000 * seed + k)[0] for k, game in enumerate(self.games)]
        self.first: NDArray[np.float32] = np.stack(first).astype(np.float32)

    def step(self, actions: NDArray[np.int64]) -> Step:
        seen, rewards, ends = [], [], []
        for game, action in zip(self.games, actions.tolist(), strict=True):
            observation, reward, terminated, truncated, _ = game.step(action)
            ended = bool(terminated or truncated)
            seen.append(game.reset()[0] if ended else observation)
            rewards.append(float(reward))
            ends.append(ended)
        payoff, ended_now = np.array(rewards), np.array(ends)
        observation = np.stack(seen).astype(np.float32)
        return Step(observation, payoff.astype(np.float32), ended_now, payoff, ended_now)


def cartpole_return(config: Baseline, iterations: int, seed: int, lanes: int = 2) -> float:
    """Return the mean length of the last 20 episodes of CartPole (at most 500)."""
    world = CartPole(lanes, seed)
    learner = learners.make(config, (4,), 2, 29, seed, interactions=iterations * 29 * lanes)
    return float(np.mean(live(learner, world, world.first, iterations)[-20:]))
