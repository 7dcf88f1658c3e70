from __future__ import annotations

import msgspec
import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree

from discover.tiny_discovery import LEARNER, TINY, tiny
from rulescope.discover import rule_tensors
from rulescope.discover.discovery_spec import World
from rulescope.discover.population import Population, to_batch
from rulescope.envs.world_config import Boundary, Catch
from rulescope.learners.disco.rule_network import MetaNetwork
from rulescope.learners.disco.update import DiscoUpdate


def population(world: World = TINY.worlds[0], **changes: object) -> Population:
    return Population(tiny(worlds=(world,), **changes))


def test_each_agent_learns_as_it_would_alone() -> None:
    p = population()
    p.replay.append(p.collect("training", 5))
    batch = p.replay.sample(p.streams["replay"], 3)
    rule = rule_tensors.draw_initial(TINY.sizes, 7)
    together, emitted = torch.vmap(p._update_agent)(
        rule_tensors.copy_per_agent(rule, 3), p.state, batch
    )
    for agent in range(3):
        state, experience = pytree.tree_map(lambda x, i=agent: x[i], (p.state, batch))
        # The network of a lifetime, which runs the trajectory LSTM episode by episode.
        update = DiscoUpdate(p.agent, MetaNetwork(rule, LEARNER.conventions.sign_log), LEARNER)
        alone, step = update.definition(state, to_batch(experience))
        for one, all_ in zip(pytree.tree_leaves(alone), pytree.tree_leaves(together), strict=True):
            torch.testing.assert_close(all_[agent], one, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(emitted.policy[agent], step.targets.policy, rtol=1e-4, atol=1e-6)


def test_a_reward_scale_multiplies_the_rewards_of_its_agent_alone() -> None:
    world = World(environment=Catch(rows=3, columns=3), agents=6, scales=(1.0, 10.0))
    p = population(world, steps=12)
    assert set(p.scales) == {1.0, 10.0}
    experience = p.collect("training", 12)
    assert experience.payoffs.abs().amax() == 1.0
    expected = experience.payoffs * torch.tensor(p.scales).view(-1, 1, 1)
    assert torch.equal(experience.rewards, expected.float())


def test_a_masked_end_is_visible_to_the_critic_alone() -> None:
    world = msgspec.structs.replace(TINY.worlds[0], boundary=Boundary(terminals="masked"))
    experience = population(world, steps=8).collect("training", 8)
    assert experience.ended.sum() > 0
    assert experience.terminals.sum() == 0


def test_observations_follow_from_actions() -> None:
    experience = population(steps=10).collect("training", 10)
    boards, actions = experience.observations.numpy(), experience.actions.numpy()
    paddle = boards[:, :, :, -1].argmax(-1)
    continuing = experience.ended.numpy() == 0
    moved = np.clip(paddle[:, :-1] + actions - 1, 0, 2)
    assert (moved == paddle[:, 1:])[continuing].all()


def test_replacing_an_agent_leaves_the_others_unchanged() -> None:
    p = population()
    rule = rule_tensors.copy_per_agent(rule_tensors.draw_initial(TINY.sizes, 0), 3)
    p.update(rule)
    p.detach()
    before = pytree.tree_map(torch.clone, (p.state, p.critics))
    p.replace_agent(1)
    for old, new in zip(
        pytree.tree_leaves(before), pytree.tree_leaves((p.state, p.critics)), strict=True
    ):
        assert torch.equal(old[[0, 2]], new[[0, 2]])
    assert not torch.equal(before[0].params[1], p.state.params[1])
    assert torch.equal(torch.as_tensor(p.state.moments.updates), torch.tensor([1.0, 0.0, 1.0]))
    assert p.ages.tolist() == [1, 0, 1]
    assert p.replay.appended.tolist() == [2, 0, 2]


def test_the_first_lifetimes_end_at_different_times() -> None:
    world = World(environment=Catch(rows=3, columns=3), agents=20)
    lifetimes = population(world, lifetime=(50, 60)).lifetimes
    assert len(set(lifetimes.tolist())) > 10
    assert lifetimes.min() >= 1
    assert lifetimes.max() <= 60


@pytest.mark.parametrize(("chance", "moved"), [(0.0, False), (1.0, True)])
def test_a_transplant_moves_the_recurrent_state_alone(chance: float, moved: bool) -> None:
    p = population(World(environment=Catch(rows=3, columns=3), agents=8), transplants=chance)
    hidden = torch.arange(8.0).unsqueeze(1).expand(8, 4)
    p.state = p.state._replace(
        recurrent=p.state.recurrent._replace(hidden=hidden, cell=10 * hidden)
    )
    params = p.state.params
    p.transplant()
    assert torch.equal(p.state.recurrent.cell, 10 * p.state.recurrent.hidden)
    assert torch.equal(p.state.recurrent.hidden, hidden) != moved
    assert sorted(p.state.recurrent.hidden[:, 0].tolist()) == list(range(8))
    assert p.state.params is params
