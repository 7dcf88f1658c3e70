"""An update rule whose agent has an LSTM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from learners.baseline_cases import LITTLE
from rulescope.core import seeds
from rulescope.core.errors import SpecError
from rulescope.learners.learner import Rollout
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.recurrent_rule import RecurrentRule
from rulescope.learners.update_rule import Seen, Setup, State, UpdateRule

pytestmark = pytest.mark.usefixtures("deterministic")

SETUP = Setup((3,), 2, steps=8, seed=3, learning_rate=0.01, agent=LITTLE, lanes=2)


class Remembering(RecurrentRule):
    """A2C with an agent that has a memory, and a further head."""

    MEMORY = 8
    HEADS = {"y": 2}  # noqa: RUF012

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        return a2c_loss(seen) + seen.heads["y"].square().mean(), state


class Forgetful(UpdateRule):
    """The same without memory."""

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        return a2c_loss(seen), state


def a2c_loss(seen: Seen) -> Tensor:
    advantages, returns = seen.advantages(seen.rewards)
    value = (seen.values[:-1] - returns).square().mean()
    return -(advantages * seen.chosen()).mean() + 0.5 * value - 0.01 * seen.entropy().mean()


def cues(learner: Any, rollouts: int, lanes: int = 2) -> Iterator[Rollout]:
    """Yield rollouts of a world that shows a cue once, and pays for naming it a step later."""
    rng = seeds.stream(0, "cues")
    cue, late = rng.integers(2, size=lanes), np.zeros(lanes, np.bool_)
    began = np.ones(lanes, np.bool_)
    for _ in range(rollouts):
        observed, choices, rewards, ends = [], [], [], []
        for step in range(9):
            shown = np.zeros((lanes, 3), np.float32)
            shown[np.arange(lanes), np.where(late, 2, cue)] = 1.0
            observed.append(shown)
            if step == 8:
                break
            choices.append(learner.act(shown))
            rewards.append(np.where(late, choices[-1].actions == cue, 0.0).astype(np.float32))
            ends.append(late.copy())
            learner.begin_episodes(late.copy())
            cue = np.where(late, rng.integers(2, size=lanes), cue)
            late = ~late
        kept = {key: np.stack([one.behaviour[key] for one in choices]) for key in choices[0][1]}
        actions = np.stack([one.actions for one in choices])
        yield Rollout(np.stack(observed), actions, np.stack(rewards), np.stack(ends), began, kept)
        began = ends[-1]


def trained(learner: Any, rollouts: int) -> float:
    """Return the mean reward of an episode in the last quarter of the rollouts."""
    rewards = []
    for each in cues(learner, rollouts):
        learner.learn(each, measure=False)
        rewards.append(each.rewards.sum() / each.terminals.sum())
    return float(np.mean(rewards[-rollouts // 4 :]))


def test_conforms() -> None:
    assert Remembering.declared_carriers() == ("moments", "params", "agent_state")
    assert tuple(Remembering(SETUP).carriers) == Remembering.declared_carriers()
    check_learner(lambda: Remembering(SETUP), (3,), 2, steps=8, rollouts=4)


def test_learning_sees_the_policy_that_acted() -> None:
    """The memory of acting, step by step, is that of the whole rollout, ends of episodes too."""
    kept: list[Seen] = []

    class Watching(Remembering):
        def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
            kept.append(seen)
            return super().loss(seen, state)

    learner = Watching(SETUP)
    for each in cues(learner, 3):
        learner.learn(each, measure=False)
        torch.testing.assert_close(kept[-1].chosen().detach(), kept[-1].before)


def test_only_an_agent_with_a_memory_learns_what_must_be_remembered() -> None:
    assert trained(Forgetful(SETUP), 300) < 0.7
    assert trained(Remembering(SETUP), 300) > 0.9


def test_a_memory_is_cleared_where_an_episode_begins() -> None:
    learner = Remembering(SETUP)
    learner.act(np.ones((2, 3), np.float32))
    learner.begin_episodes(np.array([True, False]))
    hidden = learner.carriers["agent_state"].get()["hidden"]
    assert not hidden[0].any()
    assert hidden[1].all()
    learner.act(np.ones((5, 3), np.float32))
    assert learner.carriers["agent_state"].get()["hidden"].shape == (5, 8)


def test_minibatches_of_transitions_are_refused() -> None:
    class Cut(Remembering):
        MINIBATCHES = 2

    with pytest.raises(SpecError, match="Cut: MINIBATCHES must be 1"):
        Cut(SETUP)
