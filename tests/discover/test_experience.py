from __future__ import annotations

import numpy as np
import torch

from rulescope.discover.experience import Experience, PopulationReplay


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
