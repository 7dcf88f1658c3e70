from __future__ import annotations

import json
import math
from typing import Any, Literal

import msgspec
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

from learners.baseline_cases import LITTLE, SMALL, catch_score, factory, in_channels
from rulescope import learners
from rulescope.core.structs import without_defaults
from rulescope.learners.baseline_config import DQN, VARIANTS, NetworkSizes
from rulescope.learners.dqn import DQNLearner
from rulescope.learners.learner import Rollout
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.replay import Transitions
from rulescope.run_spec import RunSpec

pytestmark = pytest.mark.usefixtures("deterministic")


def test_conforms() -> None:
    check_learner(factory(SMALL["dqn"]), (4, 4), 3, steps=7)


def test_conforms_with_channels_and_before_it_learns() -> None:
    config = in_channels(DQN(batch=4, start=30))
    check_learner(factory(config, (2, 5, 4)), (2, 5, 4), 3, steps=7, lanes=3, rollouts=3)


def test_carriers_are_those_of_the_configuration() -> None:
    assert set(factory(DQN(agent=LITTLE))().carriers) == set(DQN.CARRIERS)


def test_published_settings() -> None:
    config, smaller = VARIANTS["dqn"], VARIANTS["dqn-28672"]
    assert isinstance(config, DQN)
    assert (config.learning_rate, config.discount, config.max_norm) == (3e-4, 0.997, 10.0)
    assert (config.capacity, config.batch, config.start) == (100_000, 32, 1000)
    assert (config.train_every, config.target_every) == (4, 1000)
    assert (config.epsilon, config.exploration) == ((1.0, 0.05), 0.2)
    assert smaller == msgspec.structs.replace(config, capacity=28_672)


def test_the_length_of_the_lifetime_is_required() -> None:
    with pytest.raises(ValueError, match="interactions"):
        learners.make(DQN(), (4, 4), 3, 7, seed=0)


def little(**changes: Any) -> DQNLearner:
    config = msgspec.structs.replace(SMALL["dqn"], **changes)
    assert isinstance(config, DQN)
    return DQNLearner(config, (3, 3), 3, seed=0, interactions=1000)


def rollout(learner: DQNLearner, rng: np.random.Generator, steps: int = 7) -> Rollout:
    observations = rng.standard_normal((steps + 1, 2, 3, 3)).astype(np.float32)
    return Rollout(
        observations=observations,
        actions=np.stack([learner.act(seen).actions for seen in observations[:-1]]),
        rewards=rng.standard_normal((steps, 2)).astype(np.float32),
        terminals=rng.random((steps, 2)) < 0.3,
        began=np.zeros(2, np.bool_),
        behaviour={},
    )


def outputs(learner: DQNLearner, flat: torch.Tensor, rows: NDArray[np.float32]) -> torch.Tensor:
    params = learner.network.layout.views(flat)
    hidden = torch.tensor(rows).flatten(1)
    for layer in ("torso.0", "torso.1"):
        hidden = (hidden @ params[f"{layer}.w"] + params[f"{layer}.b"]).relu()
    return hidden @ params["head.w"] + params["head.b"]


def test_what_follows_a_terminal_counts_nothing() -> None:
    learner, rng = little(), np.random.default_rng(0)
    seen = rng.standard_normal((4, 3, 3)).astype(np.float32)
    ends = np.array([True, False])
    rewards = np.array([1.0, 2.0], np.float32)
    learner.replay.append(seen[:2], np.zeros(2, np.int64), rewards, ends, seen[2:])
    learner.target.mul_(1.5)  # so that the target is not the network itself
    batch = learner.replay.sample(np.random.default_rng(1), 40)
    best = outputs(learner, learner.target, seen[2:]).amax(1).tolist()
    expected = np.where(batch.terminals, 1.0, 2.0 + 0.997 * best[1])
    assert batch.terminals.any()
    np.testing.assert_allclose(learner.td_targets(batch), expected, rtol=1e-5)


@pytest.mark.parametrize("loss", ["huber", "squared"])
def test_one_update_is_that_of_autograd_and_torch_adam(loss: Literal["huber", "squared"]) -> None:
    learner = little(loss=loss, start=1, batch=16, max_norm=0.7, learning_rate=0.01)
    rng = np.random.default_rng(3)
    seen = rng.standard_normal((10, 3, 3)).astype(np.float32)
    rewards = 3.0 * rng.standard_normal(5).astype(np.float32)
    learner.replay.append(seen[:5], rng.integers(3, size=5), rewards, rng.random(5) < 0.4, seen[5:])
    twin = np.random.default_rng(9)
    batch: Transitions = learner.replay.sample(twin, 16)
    flat = torch.nn.Parameter(learner.params.clone())
    with torch.no_grad():
        best = outputs(learner, learner.target, learner.replay.rows(batch.after)).amax(1)
        aims = torch.tensor(batch.rewards) + 0.997 * ~torch.tensor(batch.terminals) * best
    values = outputs(learner, flat, learner.replay.rows(batch.before))
    taken = values.gather(1, torch.tensor(batch.actions).unsqueeze(1)).squeeze(1)
    measure = functional.smooth_l1_loss if loss == "huber" else functional.mse_loss
    value = measure(taken, aims)
    value.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_([flat], 0.7)
    torch.optim.Adam([flat], lr=0.01).step()

    (metrics,) = learner._train([batch], measure=True)
    torch.testing.assert_close(learner.params, flat.detach(), rtol=1e-4, atol=1e-5)
    assert metrics["loss_value"] == pytest.approx(value.item(), rel=1e-5)


def test_updates_fall_due_by_steps_and_target_copies_by_interactions() -> None:
    learner, rng = little(start=13, train_every=2, target_every=20), np.random.default_rng(0)
    updates, copied = [], []
    for _ in range(6):
        before = learner.target.clone()
        learner.learn(rollout(learner, rng), measure=False)
        updates.append(int(learner.carriers["moments"].get()["updates"]))
        copied.append(not torch.equal(before, learner.target))
    # 7 steps of 2 lanes an iteration; learning may start with interaction 14, the next due is 16.
    total = [14 * k for k in range(1, 7)]
    assert updates == [k // 4 - 3 for k in total]
    assert copied == [False, True, True, False, True, True]  # at 20, 40, 60 and 80
    assert learner.carriers["schedule"].get()["interactions"] == 84


def test_updates_drawn_together_see_only_what_had_happened() -> None:
    """One long rollout teaches the same as two short ones, but for what was chosen in them."""
    whole, halves, rng = little(), little(), np.random.default_rng(0)
    one = rollout(whole, rng, steps=8)
    for _ in range(2):
        whole.learn(one, measure=False)
        for part in (slice(0, 4), slice(4, 8)):
            piece = one._replace(
                observations=one.observations[part.start : part.stop + 1],
                actions=one.actions[part],
                rewards=one.rewards[part],
                terminals=one.terminals[part],
            )
            halves.learn(piece, measure=False)
    torch.testing.assert_close(whole.params, halves.params, rtol=1e-5, atol=1e-6)


def test_exploration_falls_with_every_interaction() -> None:
    learner = little()
    assert learner.epsilon(0) == 1.0
    assert learner.epsilon(100) == pytest.approx(0.525)
    assert learner.epsilon(200) == learner.epsilon(900) == pytest.approx(0.05)
    asked: list[int] = []
    falling = learner.epsilon

    def epsilon(interactions: int) -> float:
        asked.append(interactions)
        return falling(interactions)

    learner.epsilon = epsilon  # type: ignore[method-assign]
    rng = np.random.default_rng(0)
    for _ in range(2):
        learner.learn(rollout(learner, rng, steps=3), measure=False)
    assert asked == [0, 2, 4, 6, 8, 10]


def test_random_actions_have_the_frequency_epsilon() -> None:
    learner = little(epsilon=(0.3, 0.3))
    rows = np.zeros((2, 3, 3), np.float32)
    values = outputs(learner, learner.params, rows)[0]
    greedy = int(values.argmax())
    chosen = np.concatenate([learner.act(rows).actions for _ in range(2000)])
    share, expected = (chosen == greedy).mean(), 0.7 + 0.3 / 3
    assert abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / 4000)


def cleared(learner: DQNLearner, rng: np.random.Generator) -> list[int]:
    """Return the updates made so far, at the clearing of the replay and after each rollout since.

    Three rollouts of 14 interactions precede the clearing; the two that follow have 10.
    """
    empty = learner.carriers["replay"].get()
    for _ in range(3):
        learner.learn(rollout(learner, rng), measure=False)
    learner.carriers["replay"].set(empty)
    updates = [int(learner.carriers["moments"].get()["updates"])]
    for _ in range(2):
        learner.learn(rollout(learner, rng, steps=5), measure=False)
        updates.append(int(learner.carriers["moments"].get()["updates"]))
    return updates


def test_clearing_the_replay_stops_learning_until_it_is_filled_again() -> None:
    learner = little()
    at_clearing, empty, filled = cleared(learner, np.random.default_rng(0))
    assert at_clearing == empty < filled
    assert learner.interactions == 3 * 14 + 20  # the schedule goes on


def test_a_start_counted_in_interactions_is_not_repeated_after_clearing_the_replay() -> None:
    one, other = little(), little(start_counts="interactions")
    assert one.config.start_counts == "stored"
    stored = cleared(one, np.random.default_rng(0))
    interactions = cleared(other, np.random.default_rng(0))
    assert interactions[0] == stored[0]  # until the clearing the two readings are one
    due = (52 // 8 - 42 // 8, 62 // 8 - 52 // 8)  # every 4 steps of 2 lanes
    assert np.diff(interactions).tolist() == list(due)


def test_both_counts_of_the_start_give_the_same_lifetime_without_clearing() -> None:
    one, other = little(start=13), little(start=13, start_counts="interactions")
    for learner in (one, other):
        rng = np.random.default_rng(0)
        for _ in range(5):
            learner.learn(rollout(learner, rng), measure=False)
    assert torch.equal(one.params, other.params)


def test_the_default_count_of_the_start_is_no_part_of_a_run_id() -> None:
    plain = RunSpec(learner=DQN())
    assert "start_counts" not in json.dumps(without_defaults(plain))
    assert RunSpec(learner=DQN(start_counts="interactions")).id != plain.id


def test_learns_catch() -> None:
    config = DQN(
        agent=NetworkSizes(hidden=(64, 64)), learning_rate=1e-3, start=200, target_every=200
    )
    assert catch_score(config, iterations=150) > 0.8
