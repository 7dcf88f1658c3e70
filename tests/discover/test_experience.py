from __future__ import annotations

import numpy as np
import pytest
import torch

from rulescope import envs
from rulescope.discover.discovery_spec import World
from rulescope.discover.experience import Experience, PopulationReplay, WorldMix
from rulescope.envs.world_config import Boundary, Catch, DeepSea, Tracking


def experience(first: int, agents: int = 2, steps: int = 3, width: int = 2) -> Experience:
    """Trajectories that are known by their numbers: agent * 100 + count, at every step."""
    number = 100 * torch.arange(agents).view(-1, 1, 1) + first + torch.arange(width)
    flat = number.expand(agents, steps, width).float()
    longer = number.expand(agents, steps + 1, width).float()
    return Experience(
        observations=longer[..., None, None].expand(-1, -1, -1, 2, 2),
        actions=flat.long(),
        rewards=flat,
        terminals=flat,
        behaviour=flat.unsqueeze(-1).expand(-1, -1, -1, 3),
        payoffs=flat,
        ended=flat,
    )


def numbers(sampled: Experience) -> list[set[int]]:
    """The numbers of the trajectories of each agent; all columns must agree on them."""
    of_actions = sampled.actions[:, 0]
    for column in sampled:
        spread = column.float().flatten(3) if column.ndim > 3 else column.float().unsqueeze(-1)
        assert (spread == of_actions[:, None, :, None]).all()
    return [set(row.tolist()) for row in of_actions]


def test_the_replay_has_the_latest_trajectories_of_each_agent() -> None:
    replay = PopulationReplay(experience(0), capacity=5)
    for first in (0, 2, 4, 6):
        replay.append(experience(first))
    sampled = replay.sample(np.random.default_rng(0), 64)
    assert numbers(sampled) == [{3, 4, 5, 6, 7}, {103, 104, 105, 106, 107}]


def test_a_replay_that_is_not_full_samples_appended_trajectories_only() -> None:
    replay = PopulationReplay(experience(0), capacity=9)
    replay.append(experience(0))
    replay.clear(1)
    replay.append(experience(2))
    sampled = replay.sample(np.random.default_rng(0), 64)
    assert numbers(sampled) == [{0, 1, 2, 3}, {102, 103}]


def test_a_saved_replay_continues() -> None:
    replay = PopulationReplay(experience(0), capacity=3)
    replay.append(experience(0))
    other = PopulationReplay(experience(0), capacity=3)
    other.load(replay.save())
    for each in (replay, other):
        each.append(experience(2))
    a, b = (each.sample(np.random.default_rng(1), 8) for each in (replay, other))
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


WORLDS = [
    World(environment=Catch(rows=4, columns=3), agents=2),
    World(environment=Tracking(columns=5), agents=1),
]


def test_each_world_steps_as_it_would_alone() -> None:
    mix = WorldMix(WORLDS, lanes=2)
    alone = [envs.make(world.environment, Boundary(), 1.0, 2 * world.agents) for world in WORLDS]
    padded = mix.reset(5)
    first = [env.reset(5 + i) for i, env in enumerate(alone)]
    assert padded.shape == (6, 4, 5)
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert np.array_equal(padded[:4, :4, :3], first[0])
        assert np.array_equal(padded[4:, :2, :5], first[1])
        assert padded.sum() == first[0].sum() + first[1].sum()
        actions = rng.integers(3, size=6)
        step = mix.step(actions)
        own = [alone[0].step(actions[:4]), alone[1].step(actions[4:])]
        for name in ("reward", "terminal", "payoff", "ended"):
            together = np.concatenate([getattr(one, name) for one in own])
            assert np.array_equal(getattr(step, name), together)
        padded, first = step.observation, [one.observation for one in own]


def test_scores_are_those_of_each_world() -> None:
    mix = WorldMix(WORLDS, lanes=2)
    catch, tracking = (env.references for env in mix.worlds)
    best = np.array([catch.oracle_rate] * 4 + [tracking.random_rate] * 2)
    assert mix.scores(np.stack([best, best])) == pytest.approx([1.0, 0.0])


def test_a_saved_mix_continues() -> None:
    one, other = WorldMix(WORLDS, 2), WorldMix(WORLDS, 2)
    one.reset(1)
    other.reset(2)
    one.step(np.array([0, 1, 2, 0, 1, 2]))
    other.load(one.save())
    for _ in range(9):
        a, b = (h.step(np.array([2, 1, 0, 0, 0, 1])) for h in (one, other))
        assert np.array_equal(a.observation, b.observation)
        assert np.array_equal(a.payoff, b.payoff)


def test_a_surplus_action_wraps_around_to_the_first() -> None:
    worlds = [World(environment=DeepSea(depth=4), agents=1), WORLDS[1]]
    one, other = WorldMix(worlds, 1), WorldMix(worlds, 1)
    assert one.actions == 3
    assert np.array_equal(one.reset(0), other.reset(0))
    for _ in range(4):
        a, b = one.step(np.array([2, 1])), other.step(np.array([0, 1]))
        assert np.array_equal(a.observation, b.observation)
