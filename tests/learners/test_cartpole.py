"""A second yardstick: every baseline learns to balance a pole, which no board game resembles.

Random play lasts 22 steps. The budgets are far from what it takes to master the task (500 steps).
"""

from __future__ import annotations

import pytest

from learners.baseline_cases import cartpole_return
from rulescope.learners.baseline_config import A2C, DQN, PPO, A2CPopArt, Baseline, NetworkSizes

pytest.importorskip("gymnasium")
pytestmark = pytest.mark.usefixtures("deterministic")

NETWORK = NetworkSizes(hidden=(64, 64))
CASES: dict[str, tuple[Baseline, int, int]] = {
    "a2c": (
        A2C(agent=NETWORK, learning_rate=2e-3, discount=0.98, entropy_coefficient=0.0),
        400,
        8,
    ),
    "a2c-popart": (
        A2CPopArt(agent=NETWORK, learning_rate=2e-3, discount=0.98, advantages="normalised"),
        300,
        8,
    ),
    "ppo": (
        PPO(agent=NETWORK, learning_rate=1e-3, discount=0.98, entropy_coefficient=0.0),
        120,
        8,
    ),
    "dqn": (DQN(agent=NETWORK, learning_rate=1e-3, discount=0.99, target_every=500), 200, 2),
}
"""Learner, iterations of 29 steps, lanes."""


@pytest.mark.parametrize("name", CASES)
def test_balances_a_pole(name: str) -> None:
    config, iterations, lanes = CASES[name]
    assert cartpole_return(config, iterations, seed=0, lanes=lanes) > 60.0
