"""Baselines against Stable-Baselines3: both sides do the same work and are timed."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import numpy as np
import pytest

from benchmarks import sb3_comparison
from benchmarks.measurement import Plan
from benchmarks.peer_process import PeerMissingError
from benchmarks.sb3_comparison import baseline_spec
from benchmarks.sb3_peer import Lane, SB3Peer
from rulescope import envs
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import Boundary, Catch
from rulescope.learners.baseline_config import DQN, NetworkSizes
from rulescope.lifetime import Lifetime
from rulescope.run_spec import RunSpec

LITTLE = NetworkSizes(hidden=(24, 16))
PLAN = Plan(rounds=2, iterations=2, warm_up=1)


def little(learner: str) -> RunSpec:
    """Return a measured lifetime with a small network and, for DQN, an early start."""
    spec = baseline_spec(learner)
    config = msgspec.structs.replace(spec.learner, agent=LITTLE)
    if isinstance(config, DQN):
        config = msgspec.structs.replace(config, start=100, capacity=1000)
    return msgspec.structs.replace(spec, learner=config)


@pytest.fixture
def peer() -> None:
    pytest.importorskip("stable_baselines3")


def lane() -> Lane:
    return Lane(envs.make(Catch(), Boundary(), scale=1.0, lanes=1), seed=0)


def test_a_lane_is_a_lane_of_our_world() -> None:
    ours = envs.make(Catch(), Boundary(), scale=1.0, lanes=1)
    theirs, first = lane(), ours.reset(0)
    np.testing.assert_array_equal(theirs.reset()[0], first[0])
    for k in range(40):
        step = ours.step(np.array([k % 3]))
        seen, reward, ended, cut, _ = theirs.step(np.int64(k % 3))
        np.testing.assert_array_equal(seen, step.observation[0])
        assert (reward, ended, cut) == (step.reward[0], step.terminal[0], False)
        np.testing.assert_array_equal(theirs.reset()[0], seen)


def trained(learner: str) -> Any:
    peer = SB3Peer(little(learner), iterations=2)
    peer.warm_up(updates=4)
    return peer


@pytest.mark.usefixtures("peer")
@pytest.mark.parametrize("learner", sb3_comparison.LEARNERS)
def test_the_networks_have_as_many_parameters_as_ours(learner: str) -> None:
    ours = Lifetime(little(learner)).learner.carriers["params"].get()["flat"].size
    policy = SB3Peer(little(learner), iterations=2).model.policy
    online = policy.q_net if learner == "dqn" else policy
    assert sum(p.numel() for p in online.parameters()) == ours


@pytest.mark.usefixtures("peer")
@pytest.mark.parametrize(("learner", "epochs"), [("a2c", 1), ("ppo", 4)])
def test_an_iteration_has_as_many_steps_and_updates_as_ours(learner: str, epochs: int) -> None:
    peer = trained(learner)
    before = peer.model.num_timesteps, peer.model._n_updates
    peer.iterate()
    assert peer.model.num_timesteps - before[0] == 2 * 58
    # PPO counts its passes.
    assert peer.model._n_updates - before[1] == 2 * epochs


@pytest.mark.usefixtures("peer")
def test_dqn_makes_as_many_updates_as_ours() -> None:
    peer, ours = trained("dqn"), Lifetime(little("dqn"))
    ours.run(until=10)
    counts = [peer.model._n_updates, _updates(ours)]
    for _ in range(2):
        peer.iterate()
    ours.run(until=14)
    # The peer restarts its count with every call, so it may be one update ahead.
    assert 29 <= peer.model._n_updates - counts[0] <= 30
    assert _updates(ours) - counts[1] == 29


def _updates(lifetime: Lifetime) -> int:
    return int(lifetime.learner.carriers["moments"].get()["updates"])


@pytest.mark.usefixtures("peer")
@pytest.mark.parametrize("learner", sb3_comparison.LEARNERS)
def test_both_sides_are_timed(learner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sb3_comparison, "baseline_spec", little)
    rounds: list[str] = []
    found = sb3_comparison.measure_baseline(learner, PLAN, rounds.append)
    assert rounds == [learner] * 2
    assert found.peer is not None
    assert found.peer["name"] == "stable-baselines3"
    assert found.peer_ms is not None
    assert found.ratio_to_peer is not None
    for spread in (found.ours_ms, found.peer_ms, found.ratio_to_peer):
        assert 0.0 < spread.q1 <= spread.median <= spread.q3


def test_a_missing_peer_is_an_error_unless_it_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sb3_comparison, "baseline_spec", little)
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(
        PeerMissingError, match=r"stable-baselines3.*pip install rulescope\[bench\]"
    ):
        sb3_comparison.measure_baseline("a2c", PLAN)
    found = sb3_comparison.measure_baseline("a2c", msgspec.structs.replace(PLAN, peer=False))
    assert (found.peer, found.peer_ms, found.ratio_to_peer) == (None, None, None)
    assert found.ours_ms.median > 0.0


def test_a_learner_that_the_peer_lacks_is_refused() -> None:
    with pytest.raises(SpecError, match="valid: a2c, ppo, dqn"):
        sb3_comparison.baseline_spec("a2c-popart")
