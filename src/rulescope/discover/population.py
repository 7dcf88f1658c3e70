"""A population of agents that learn side by side under the rule that is being discovered.

All agents step together: their parameters, optimisers and recurrent states are stacked along a
first axis N, and the update of one agent is mapped over it with ``torch.vmap``. It is the same
update as in a lifetime (:meth:`DiscoUpdate.definition`), so the meta-gradient is that of the
update that the discovered rule will be used in.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.utils import _pytree as pytree

from rulescope.core import seeds
from rulescope.core.arrays import Arrays, prefix_names, unprefix
from rulescope.discover.critic import Critic
from rulescope.discover.discovery_spec import Discovery
from rulescope.discover.experience import Experience, PopulationReplay, WorldMix
from rulescope.discover.rule_tensors import Rule
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.rule_network import MetaNetwork, RuleState
from rulescope.learners.disco.update import DiscoUpdate, LearnerState
from rulescope.learners.disco.value_estimates import STD_EPSILON

Purpose = Literal["training", "evaluation"]
"""Agents learn from training worlds; the objective uses fresh experience of evaluation worlds."""


class EmittedTargets(NamedTuple):
    """The rule's targets for each agent in one update (logits), and what they are compared with."""

    policy: Tensor
    """[N, T, B, A]"""
    y: Tensor
    """[N, T, B, P]"""
    z: Tensor
    """[N, T, B, P]"""
    slow: Tensor
    """[N, T, B, A] probabilities of the slow policy; they do not depend on the rule"""
    improved: Tensor
    """[N, T, B, A] logits of the slow policy plus the clipped advantage of the action taken"""


class Population:
    """The agents of a discovery, those of the first world first."""

    def __init__(self, spec: Discovery, device: str = "cpu") -> None:
        self.spec, self.device = spec, device
        self._worlds = [world for world in spec.worlds for _ in range(world.agents)]  # [N]
        self.agents = len(self._worlds)
        """N"""
        self._mixes: dict[Purpose, WorldMix] = {
            "training": WorldMix(spec.worlds, spec.lanes),
            "evaluation": WorldMix(spec.worlds, spec.judged_lanes),
        }
        shape, actions = self._mixes["training"].observation_shape, self._mixes["training"].actions
        learner = spec.learner
        self.agent = Agent(
            shape,
            actions,
            spec.sizes.predictions,
            learner.interface.bins,
            learner.agent,
            learner.conventions,
        )
        self.critic = Critic(shape, spec.objective)
        self.streams = {
            name: seeds.stream(spec.seed, "population", name)
            for name in ("action", "replay", "birth", "transplant")
        }
        self._observations = {
            purpose: mix.reset(int(self.streams["birth"].integers(2**31)))
            for purpose, mix in self._mixes.items()
        }
        self.ages = np.zeros(self.agents, dtype=np.int64)
        """[N] updates made"""
        self.lifetimes = np.zeros(self.agents, dtype=np.int64)
        """[N] updates after which each agent is replaced"""
        self.scales = np.ones(self.agents)
        """[N] multiplier of each agent's rewards"""
        initial = [self._initialise(agent) for agent in range(self.agents)]
        self.state, self.critics = pytree.tree_map(lambda *parts: torch.stack(parts), *initial)
        # Lifetimes that began together would end together, and all agents be young at once.
        self.lifetimes -= self.streams["birth"].integers(self.lifetimes)
        self.lifetimes = np.maximum(self.lifetimes, 1)
        self.replay = PopulationReplay(self._empty_experience(), learner.capacity)

    def _empty_experience(self) -> Experience:
        """Return experience with B = 0."""
        mix, n = self._mixes["training"], self.agents
        lead = (n, self.spec.steps, 0)
        zeros = partial(torch.zeros, device=self.device)
        return Experience(
            observations=zeros(n, self.spec.steps + 1, 0, *mix.observation_shape),
            actions=zeros(lead, dtype=torch.int64),
            rewards=zeros(lead),
            terminals=zeros(lead),
            behaviour=zeros(*lead, mix.actions),
            payoffs=zeros(lead),
            ended=zeros(lead),
        )

    def _initialise(self, agent: int) -> tuple[LearnerState, Any]:
        """Draw lifetime and reward scale of ``agent``; return initial states of learner and critic.

        The states have no axis N.
        """
        stream = self.streams["birth"]
        first, last = self.spec.lifetime
        self.ages[agent] = 0
        self.lifetimes[agent] = stream.integers(first, last + 1)
        scales = self._worlds[agent].scales
        self.scales[agent] = scales[int(stream.integers(len(scales)))]
        params = self.agent.initial(int(stream.integers(2**31)))
        units = self.spec.sizes.lifetime
        state = LearnerState.fresh(params, RuleState(torch.zeros(units), torch.zeros(units)))
        state = state._replace(moments=state.moments._replace(updates=torch.zeros(())))
        critic = self.critic.initial(int(stream.integers(2**31)))
        state, critic = pytree.tree_map(lambda x: x.to(self.device), (state, critic))
        return state, critic

    def replace_agent(self, agent: int) -> None:
        """Replace ``agent`` by an initial one in the same world."""
        initial = self._initialise(agent)

        def put(stacked: Tensor, one: Tensor) -> None:
            stacked[agent] = one

        pytree.tree_map_(put, (self.state, self.critics), initial)
        self.replay.clear(agent)

    @torch.no_grad()
    def collect(self, purpose: Purpose, steps: int) -> Experience:
        """Return ``steps`` transitions of every lane under the current policies."""
        mix, observation = self._mixes[purpose], self._observations[purpose]
        params = self.state.params.detach()
        policy = torch.vmap(lambda p, rows: self.agent.policy(self.agent.layout.views(p), rows))
        observations, logits, actions, transitions = [observation], [], [], []
        for _ in range(steps):
            rows = torch.from_numpy(observation).to(self.device)
            rows = rows.view(self.agents, -1, *observation.shape[1:])
            logits.append(policy(params, rows).flatten(0, 1).cpu().numpy())
            noise = self.streams["action"].gumbel(size=logits[-1].shape)
            actions.append((logits[-1] + noise).argmax(axis=1))
            transitions.append(mix.step(actions[-1]))
            observation = transitions[-1].observation
            observations.append(observation)
        self._observations[purpose] = observation

        def tensor(items: list[NDArray[Any]], dtype: torch.dtype = torch.float32) -> Tensor:
            stacked = torch.tensor(np.stack(items), dtype=dtype, device=self.device)
            # [T, N * B, ...] to [N, T, B, ...]
            by_agent = stacked.view(len(items), self.agents, -1, *stacked.shape[2:])
            return by_agent.transpose(0, 1).contiguous()

        rewards = tensor([step.reward for step in transitions])
        scales = torch.tensor(self.scales, dtype=torch.float32, device=self.device)
        return Experience(
            observations=tensor(observations),
            actions=tensor(actions, torch.int64),
            rewards=rewards * scales.view(-1, 1, 1),
            terminals=tensor([step.terminal for step in transitions]),
            behaviour=tensor(logits),
            payoffs=tensor([step.payoff for step in transitions]),
            ended=tensor([step.ended for step in transitions]),
        )

    def update(self, rule: Rule) -> EmittedTargets:
        """Collect experience and update every agent; differentiable in ``rule`` [N, ...]."""
        self.replay.append(self.collect("training", self.spec.steps))
        batch = self.replay.sample(self.streams["replay"], self.spec.learner.batch)
        self.state, emitted = torch.vmap(self._update_agent)(rule, self.state, batch)
        self.ages += 1
        return emitted

    def _update_agent(
        self, rule: Rule, state: LearnerState, experience: Experience
    ) -> tuple[LearnerState, EmittedTargets]:
        """Return the state after one update, and the targets; nothing here has the axis N."""
        conventions = self.spec.learner.conventions
        network = MetaNetwork(rule, conventions.sign_log, dense=True)
        batch = to_batch(experience)
        state, step = DiscoUpdate(self.agent, network, self.spec.learner).definition(state, batch)
        targets, now = step.targets, batch.index[:-1]
        slow = step.slow.logits[now].detach()
        advantage = step.estimate.normalised_advantage.clamp(-1.0, 1.0).unsqueeze(-1)
        taken = functional.one_hot(batch.actions, self.agent.actions)
        improved = (slow + STD_EPSILON).log() + advantage * taken
        return state, EmittedTargets(targets.policy, *targets.logits, slow, improved)

    def scores(self, experience: Experience) -> list[float]:
        """Return the score of each world in evaluation ``experience``: 0 random, 1 optimal."""
        payoffs = experience.payoffs.transpose(0, 1).flatten(1).cpu().numpy()
        return self._mixes["evaluation"].scores(payoffs)

    def are_finite(self) -> Tensor:
        """Return for each agent [N] whether its whole state is finite."""
        leaves = pytree.tree_leaves(self.state)
        return torch.stack(
            [x.detach().view(self.agents, -1).isfinite().all(1) for x in leaves]
        ).all(0)

    def detach(self) -> None:
        """Cut the graph of gradients: the next meta-step starts from the present states."""
        self.state = pytree.tree_map(lambda x: x.detach(), self.state)

    def transplant(self) -> None:
        """Give some agents, at random, the recurrent state of another one."""
        stream = self.streams["transplant"]
        chosen = stream.random(self.agents) < self.spec.transplants
        sources = np.where(chosen, stream.permutation(self.agents), range(self.agents))
        donors = torch.tensor(sources, device=self.device)
        hidden, cell = self.state.recurrent
        recurrent = self.state.recurrent._replace(hidden=hidden[donors], cell=cell[donors])
        self.state = self.state._replace(recurrent=recurrent)

    def save(self) -> dict[str, NDArray[Any]]:
        """Return everything that :meth:`load` needs to continue to the bit."""
        leaves, _ = pytree.tree_flatten((self.state, self.critics))
        parts: dict[str, Arrays] = {
            "leaf": {str(i): leaf.detach().cpu().numpy().copy() for i, leaf in enumerate(leaves)},
            "replay": self.replay.save(),
            "stream": {name: seeds.pack(stream) for name, stream in self.streams.items()},
            "agents": {"ages": self.ages, "lifetimes": self.lifetimes, "scales": self.scales},
        }
        for purpose, mix in self._mixes.items():
            parts[purpose] = {"observation": self._observations[purpose]}
            parts[f"{purpose}-worlds"] = mix.save()
        return {name: np.array(array) for name, array in prefix_names(parts).items()}

    def load(self, state: Arrays) -> None:
        """Continue from what :meth:`save` of the same specification returned."""
        leaves, tree = pytree.tree_flatten((self.state, self.critics))
        saved = unprefix("leaf", state)
        new = [torch.tensor(saved[str(i)], device=self.device) for i in range(len(leaves))]
        self.state, self.critics = pytree.tree_unflatten(new, tree)
        self.replay.load(unprefix("replay", state))
        self.streams = {name: seeds.unpack(w) for name, w in unprefix("stream", state).items()}
        self.ages, self.lifetimes, self.scales = (
            np.array(state[f"agents/{name}"]) for name in ("ages", "lifetimes", "scales")
        )
        for purpose, mix in self._mixes.items():
            self._observations[purpose] = np.array(state[f"{purpose}/observation"])
            mix.load(unprefix(f"{purpose}-worlds", state))


def to_batch(experience: Experience) -> Batch:
    """Return one agent's experience (without N) as a learner's batch; every step is its own row."""
    (steps, width), device = experience.actions.shape, experience.actions.device
    return Batch(
        rows=experience.observations.flatten(0, 1),
        index=torch.arange((steps + 1) * width, device=device).view(steps + 1, width),
        actions=experience.actions,
        rewards=experience.rewards,
        terminals=experience.terminals,
        behaviour=experience.behaviour,
        began=torch.zeros(width, device=device),
    )
