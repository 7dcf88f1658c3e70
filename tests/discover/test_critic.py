from __future__ import annotations

import torch
from torch.utils import _pytree as pytree

from rulescope.discover.critic import Critic, CriticState
from rulescope.discover.discovery_spec import Objective
from rulescope.discover.experience import Experience


def two_states(agents: int = 2, steps: int = 4, lanes: int = 8) -> Experience:
    """In state 0 the action 1 pays 1, in state 1 nothing does; every step is an episode."""
    generator = torch.Generator().manual_seed(0)
    state = torch.randint(2, (agents, steps + 1, lanes), generator=generator)
    actions = torch.randint(2, (agents, steps, lanes), generator=generator)
    payoffs = ((state[:, :-1] == 0) & (actions == 1)).float()
    zeros = torch.zeros_like(payoffs)
    return Experience(
        observations=torch.nn.functional.one_hot(state, 2).float(),
        actions=actions,
        rewards=1000.0 * payoffs,
        terminals=zeros,
        behaviour=torch.zeros(*actions.shape, 2),
        payoffs=payoffs,
        ended=torch.ones_like(payoffs),
    )


def initial(critic: Critic, agents: int) -> CriticState:
    states = [critic.initial(seed) for seed in range(agents)]
    stacked: CriticState = pytree.tree_map(lambda *x: torch.stack(x), *states)
    return stacked


def test_the_critic_learns_values_and_the_better_action_has_the_larger_advantage() -> None:
    critic = Critic((2,), Objective(critic_hidden=16, critic_rate=2e-2, critic_updates=8))
    state, experience = initial(critic, 2), two_states()
    for _ in range(25):
        advantages, state = critic.advantages(state, experience)
    values = torch.vmap(critic._value)(state.params, torch.eye(2).expand(2, 1, 2, 2))[:, 0]
    means = [
        experience.payoffs[i][experience.observations[i, :-1, :, 0] == 1].mean() for i in range(2)
    ]
    assert torch.allclose(values[:, 0], torch.stack(means), atol=0.05)
    assert values[:, 1].abs().max() < 0.05
    paying = experience.observations[:, :-1, :, 0] == 1
    assert advantages[paying & (experience.actions == 1)].min() > 0.5
    assert advantages[paying & (experience.actions == 0)].max() < -0.5


def test_rewards_after_an_episode_end_have_no_effect() -> None:
    critic = Critic((2,), Objective(critic_hidden=4, critic_updates=1))
    experience = two_states(agents=1)
    later = experience._replace(
        payoffs=torch.cat([experience.payoffs[:, :3], 5 + experience.payoffs[:, 3:]], 1)
    )
    first, second = (
        critic._generalised_advantages(x, torch.zeros(1, 5, 8)) for x in (experience, later)
    )
    assert torch.equal(first[:, :3], second[:, :3])
    assert torch.equal(first[:, 3] + 5, second[:, 3])
