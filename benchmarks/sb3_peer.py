"""The peer of the baselines: Stable-Baselines3, with the same work.

The same game (our own world, lane by lane, as a Gymnasium environment), the same number of lanes
and steps, the same networks, and as many updates on as many transitions:

* A2C and PPO: a torso of two ReLU layers, shared by policy and value, with linear heads; Adam;
  PPO's minibatches are of 15, 15, 15 and 13 transitions where ours are of 15, 15, 14 and 14;
* DQN: two ReLU layers, the same replay, batch, training interval and target interval.

Stable-Baselines3 is an optional dependency.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.peer_process import import_peer
from rulescope import envs
from rulescope.core.errors import SpecError
from rulescope.envs.environment import Environment
from rulescope.learners.baseline_config import A2C, DQN, PPO, NetworkSizes
from rulescope.run_spec import RunSpec

NAME, MODULE = "stable-baselines3", "stable_baselines3"
NEVER = 10**9
"""Iterations, or episodes, between two log lines of the peer."""


class Lane(gymnasium.Env[NDArray[np.float32], np.int64]):
    """One lane of our world, which begins its next episode before it is reset."""

    def __init__(self, world: Environment, seed: int) -> None:
        self._world = world
        self._observation = world.reset(seed)[0]
        self.observation_space = spaces.Box(0.0, 1.0, world.observation_shape, np.float32)
        self.action_space = spaces.Discrete(world.actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Return the first observation of the episode that has just begun."""
        del seed, options
        return self._observation, {}

    def step(
        self, action: np.int64
    ) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Play ``action``; no episode is cut short by a time limit."""
        step = self._world.step(np.array([action]))
        self._observation = step.observation[0]
        return self._observation, float(step.reward[0]), bool(step.terminal[0]), False, {}


class Torso(nn.Module):
    """Our torso, with the constructor and the attribute that the peer requires."""

    def __init__(self, observation_space: spaces.Box, hidden: tuple[int, int]) -> None:
        super().__init__()
        first, self.features_dim = hidden
        self._layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(math.prod(observation_space.shape), first),
            nn.ReLU(),
            nn.Linear(first, self.features_dim),
            nn.ReLU(),
        )

    def forward(self, observations: Tensor) -> Tensor:
        """Return the features [R, width] of ``observations`` [R, *shape]."""
        features: Tensor = self._layers(observations)
        return features


class SB3Peer:
    """The peer in the world of ``spec``; a turn is ``iterations`` iterations."""

    def __init__(self, spec: RunSpec, iterations: int) -> None:
        lanes = [_lane(spec, number) for number in range(spec.lanes)]
        self._size = spec.lanes * spec.steps
        self._iterations = iterations
        self.model = _model(spec, import_peer(NAME, f"{MODULE}.common.vec_env").DummyVecEnv(lanes))
        # A logger without output; the default one creates an empty folder in every turn.
        self.model.set_logger(import_peer(NAME, f"{MODULE}.common.logger").Logger(None, []))

    def warm_up(self, updates: int) -> None:
        """Make ``updates`` iterations, after those without an update."""
        first = getattr(self.model, "learning_starts", 0)
        self._learn(updates + -(-first // self._size))

    def iterate(self) -> None:
        """Run one turn."""
        self._learn(self._iterations)

    def _learn(self, iterations: int) -> None:
        """Continue for ``iterations``.

        DQN's training interval does not divide an odd number of iterations, so the number of
        updates varies by one.
        """
        self.model.learn(self._size * iterations, log_interval=NEVER, reset_num_timesteps=False)


def _lane(spec: RunSpec, number: int) -> Any:
    """Return a function that makes lane ``number`` of the world of ``spec``."""

    def build() -> Lane:
        world = envs.make(spec.environment, spec.boundary, spec.scale, 1, spec.change, spec.steps)
        return Lane(world, spec.seed + number)

    return build


def _model(spec: RunSpec, lanes: Any) -> Any:
    """Return the peer's learner with the settings of ours."""
    sb3, config = import_peer(NAME, MODULE), spec.learner
    common: dict[str, Any] = {"seed": spec.seed, "device": "cpu"}
    match config:
        case A2C() | PPO():
            common |= {
                "learning_rate": config.learning_rate,
                "n_steps": spec.steps,
                "gamma": config.discount,
                "gae_lambda": config.trace,
                "ent_coef": config.entropy_coefficient,
                "vf_coef": config.value_coefficient,
                "max_grad_norm": config.max_norm,
                "policy_kwargs": _shared(config.agent),
            }
        case DQN():
            return sb3.DQN("MlpPolicy", lanes, **_q_learning(config), **common)
        case _:
            raise SpecError(f"learner: {NAME} has no counterpart of {type(config).__name__}")
    if isinstance(config, A2C):
        return sb3.A2C("MlpPolicy", lanes, use_rms_prop=False, **common)
    size = -(-spec.steps * spec.lanes // config.minibatches)
    with warnings.catch_warnings():
        # It warns that the last minibatch of an epoch is smaller, which is true of ours too.
        warnings.simplefilter("ignore", UserWarning)
        return sb3.PPO(
            "MlpPolicy",
            lanes,
            batch_size=size,
            n_epochs=config.epochs,
            clip_range=config.clip,
            normalize_advantage=config.normalise_advantages,
            **common,
        )


def _shared(sizes: NetworkSizes) -> dict[str, Any]:
    """Return the policy's keywords for one torso with two linear heads."""
    return {
        "features_extractor_class": Torso,
        "features_extractor_kwargs": {"hidden": sizes.hidden},
        "net_arch": [],
    }


def _q_learning(config: DQN) -> dict[str, Any]:
    """Return DQN's keywords: as in ours, intervals count steps of all lanes."""
    return {
        "learning_rate": config.learning_rate,
        "buffer_size": config.capacity,
        "learning_starts": config.start,
        "batch_size": config.batch,
        "gamma": config.discount,
        "train_freq": config.train_every,
        "target_update_interval": config.target_every,
        "exploration_initial_eps": config.epsilon[0],
        "exploration_final_eps": config.epsilon[1],
        "exploration_fraction": config.exploration,
        "max_grad_norm": config.max_norm,
        "policy_kwargs": {"net_arch": list(config.agent.hidden)},
    }
