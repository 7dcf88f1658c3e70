import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from benchmarks import disco_comparison
from rulescope.core import arrays
from rulescope.learners.disco_config import Disco
from rulescope.rules import rule_weights
from rulescope.run_spec import RunSpec

RULE = disco_comparison.FALLBACK


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A rule file that needs no download."""
    path = tmp_path / "rule.npz"
    path.write_bytes(arrays.pack(rule_weights.load(RULE).arrays, compress=False))
    return path


@pytest.fixture
def small() -> RunSpec:
    """A lifetime whose batch is full after two iterations."""
    learner = Disco(rule=RULE, batch=4, capacity=8)
    return RunSpec(learner=learner, iterations=1000, log_every=1000)


class FakeTrainer:
    """The interface of disco-torch's trainer; an update shrinks the parameters."""

    def __init__(
        self,
        agent: torch.nn.Module,
        *,
        device: torch.device,
        lr: float,
        replay_capacity: int,
        batch_size: int,
        weights_path: str,
    ) -> None:
        print("text that must not reach standard output")
        assert Path(weights_path).is_file()
        assert device.type == "cpu"
        assert replay_capacity >= batch_size
        self.agent, self.lr, self.batch_size, self.stored = agent, lr, batch_size, 0

    @torch.no_grad()
    def step(self, rollout: dict[str, Any]) -> dict[str, float]:
        observations, rewards = rollout["observations"], rollout["rewards"]
        outputs = self.agent(observations, torch.zeros(observations.shape[:2]))
        assert outputs["z"].shape[:2] == observations.shape[:2]
        self.stored += rewards.shape[1]
        ready = self.stored >= self.batch_size
        for parameter in self.agent.parameters() if ready else ():
            parameter.mul_(1.0 - self.lr)
        return {"num_grad_steps_this_call": float(ready)}


def fake_collect(
    agent: Any,
    step: Any,
    observation: Any,
    carried: Any,
    rollout_len: int,
    device: torch.device,
    discount: float,
) -> tuple[dict[str, Tensor], Any, Any]:
    """Collect as disco-torch does, as far as the trainer above needs it."""
    assert device.type == "cpu"
    assert 0.0 < discount < 1.0
    observations, rewards = [], []
    for _ in range(rollout_len):
        rows = torch.tensor(observation.reshape(len(observation), -1))
        observations.append(rows)
        outputs, carried = agent.forward_step(rows, carried)
        observation, reward, done = step(outputs["logits"].argmax(1).numpy())
        assert done.dtype == np.float32
        rewards.append(torch.tensor(reward))
    rollout = {"observations": torch.stack(observations), "rewards": torch.stack(rewards)}
    return rollout, observation, carried


@pytest.fixture
def fake_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a stand-in for disco-torch."""
    package = ModuleType("disco_torch")
    package.DiscoTrainer, package.collect_rollout = FakeTrainer, fake_collect  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "disco_torch", package)
    monkeypatch.setattr("importlib.metadata.version", lambda _: "0.0")


@pytest.fixture
def no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make disco-torch unavailable."""
    monkeypatch.setitem(sys.modules, "disco_torch", None)
