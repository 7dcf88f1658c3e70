"""A population of agents that live side by side, and learn as a rule in the making says.

All agents take each step together: their parameters, optimisers and recurrent states are stacked
along a first axis N, and the update of one agent is mapped over it with ``torch.vmap``. It is the
same update that a lifetime makes (:meth:`DiscoUpdate.definition`), so what is differentiated here
is what will be run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
from rulescope.discover.experience import Experience, Store
from rulescope.discover.rule_weights import Rule
from rulescope.discover.world_mix import Habitat
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.rule_network import MetaNetwork, RuleState
from rulescope.learners.disco.update import DiscoUpdate, LearnerState
from rulescope.learners.disco.value_estimates import STD_EPSILON


class Emitted(NamedTuple):
    """What the rule told each agent in one update; logits."""

    policy: Tensor
    """[N, T, B, A]"""
    y: Tensor
    """[N, T, B, P]"""
    z: Tensor
    """[N, T, B, P]"""
    slow: Tensor
    """[N, T, B, A] probabilities of the slow policy, not of the rule's making"""
    improved: Tensor
    """[N, T, B, A] logits of the slow policy, moved by the clipped advantage of the action taken"""


class Population:
    """The agents of a discovery, those of the first world first."""

    def __init__(self, spec: Discovery) -> None:
        self.spec = spec
        self._homes = [world for world in spec.worlds for _ in range(world.agents)]
        self.agents = len(self._homes)
        self._habitats = {
            "lived": Habitat(spec.worlds, spec.lanes),
            "judged": Habitat(spec.worlds, spec.judged_lanes),
        }
        shape, actions = self._habitats["lived"].board, self._habitats["lived"].actions
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
            name: habitat.reset(int(self.streams["birth"].integers(2**31)))
            for name, habitat in self._habitats.items()
        }
        self.ages = np.zeros(self.agents, dtype=np.int64)
        """[N] updates made"""
        self.spans = np.zeros(self.agents, dtype=np.int64)
        """[N] updates after which each agent is replaced"""
        self.scales = np.ones(self.agents)
        """[N] multiplier of each agent's rewards"""
        newborn = [self._newborn(agent) for agent in range(self.agents)]
        self.state, self.critics = pytree.tree_map(lambda *parts: torch.stack(parts), *newborn)
        # Lifetimes that began together would end together, and all agents be young at once.
        self.spans -= self.streams["birth"].integers(self.spans)
        self.spans = np.maximum(self.spans, 1)
        self.store = Store(self._blank(), learner.capacity)

    def _blank(self) -> Experience:
        """Return an empty experience, which has every shape."""
        habitat, n = self._habitats["lived"], self.agents
        lead = (n, self.spec.steps, 0)
        return Experience(
            observations=torch.zeros(n, self.spec.steps + 1, 0, *habitat.board),
            actions=torch.zeros(lead, dtype=torch.int64),
            rewards=torch.zeros(lead),
            terminals=torch.zeros(lead),
            behaviour=torch.zeros(*lead, habitat.actions),
            payoffs=torch.zeros(lead),
            ended=torch.zeros(lead),
        )

    def _newborn(self, agent: int) -> tuple[LearnerState, Any]:
        """Return the state of a learner and a critic without history; draw the agent's fate."""
        birth = self.streams["birth"]
        first, last = self.spec.lifetime
        self.ages[agent] = 0
        self.spans[agent] = birth.integers(first, last + 1)
        scales = self._homes[agent].scales
        self.scales[agent] = scales[int(birth.integers(len(scales)))]
        params = self.agent.initial(int(birth.integers(2**31)))
        units = self.spec.sizes.lifetime
        state = LearnerState.fresh(params, RuleState(torch.zeros(units), torch.zeros(units)))
        state = state._replace(moments=state.moments._replace(updates=torch.zeros(())))
        return state, self.critic.fresh(int(birth.integers(2**31)))

    def replace(self, agent: int) -> None:
        """Put a newborn in the place of ``agent``, in the same world."""
        newborn = self._newborn(agent)

        def put(stacked: Tensor, one: Tensor) -> None:
            stacked[agent] = one

        pytree.tree_map_(put, (self.state, self.critics), newborn)
        self.store.clear(agent)

    @torch.no_grad()
    def live(self, kind: str, steps: int) -> Experience:
        """Play ``steps`` interactions with the present policies, in a habitat of this ``kind``."""
        habitat, observation = self._habitats[kind], self._observations[kind]
        params = self.state.params.detach()
        policy = torch.vmap(lambda p, rows: self.agent.policy(self.agent.layout.views(p), rows))
        observations, logits, actions, played = [observation], [], [], []
        for _ in range(steps):
            rows = torch.from_numpy(observation).view(self.agents, -1, *observation.shape[1:])
            said = policy(params, rows).flatten(0, 1).numpy()
            noise = self.streams["action"].gumbel(size=said.shape)
            chosen = (said + noise).argmax(axis=1)
            step = habitat.step(chosen)
            observation = step.observation
            observations.append(observation)
            logits.append(said)
            actions.append(chosen)
            played.append(step)
        self._observations[kind] = observation

        def tensor(items: list[NDArray[Any]], dtype: torch.dtype = torch.float32) -> Tensor:
            stacked = torch.tensor(np.stack(items), dtype=dtype)  # [T, N * B, ...]
            apart = stacked.view(len(items), self.agents, -1, *stacked.shape[2:])
            return apart.transpose(0, 1).contiguous()

        told = tensor([step.reward for step in played])
        return Experience(
            observations=tensor(observations),
            actions=tensor(actions, torch.int64),
            rewards=told * torch.tensor(self.scales, dtype=torch.float32).view(-1, 1, 1),
            terminals=tensor([step.terminal for step in played]),
            behaviour=tensor(logits),
            payoffs=tensor([step.payoff for step in played]),
            ended=tensor([step.ended for step in played]),
        )

    def learn(self, rule: Rule) -> Emitted:
        """Let every agent live on and make one update; differentiable in ``rule`` [N, ...]."""
        self.store.append(self.live("lived", self.spec.steps))
        batch = self.store.sample(self.streams["replay"], self.spec.learner.batch)
        self.state, emitted = torch.vmap(self._update)(rule, self.state, batch)
        self.ages += 1
        return emitted

    def _update(
        self, rule: Rule, state: LearnerState, seen: Experience
    ) -> tuple[LearnerState, Emitted]:
        """Make the update of one agent, which has no axis N."""
        conventions = self.spec.learner.conventions
        network = MetaNetwork(rule, conventions.sign_log, dense=True)
        batch = as_batch(seen)
        state, step = DiscoUpdate(self.agent, network, self.spec.learner).definition(state, batch)
        targets, now = step.targets, batch.index[:-1]
        slow = step.slow.logits[now].detach()
        advantage = step.estimate.normalised_advantage.clamp(-1.0, 1.0).unsqueeze(-1)
        taken = functional.one_hot(batch.actions, self.agent.actions)
        improved = (slow + STD_EPSILON).log() + advantage * taken
        return state, Emitted(targets.policy, *targets.logits, slow, improved)

    def scores(self, seen: Experience) -> list[float]:
        """Return how much of what can be earned was earned, in each world."""
        payoffs = seen.payoffs.transpose(0, 1).flatten(1).numpy()
        return self._habitats["judged"].scores(payoffs)

    def sound(self) -> Tensor:
        """Tell which agents [N] are finite in all that they carry."""
        leaves = pytree.tree_leaves(self.state)
        return torch.stack(
            [x.detach().view(self.agents, -1).isfinite().all(1) for x in leaves]
        ).all(0)

    def detach(self) -> None:
        """Forget how the present states came about: the next meta-step starts from them."""
        self.state = pytree.tree_map(lambda x: x.detach(), self.state)

    def transplant(self) -> None:
        """Give some agents, by chance, the recurrent state of another one."""
        stream = self.streams["transplant"]
        chosen = stream.random(self.agents) < self.spec.transplants
        donors = torch.tensor(np.where(chosen, stream.permutation(self.agents), range(self.agents)))
        hidden, cell = self.state.recurrent
        recurrent = self.state.recurrent._replace(hidden=hidden[donors], cell=cell[donors])
        self.state = self.state._replace(recurrent=recurrent)

    def save(self) -> dict[str, NDArray[Any]]:
        """Return everything that :meth:`load` needs to go on to the bit."""
        leaves, _ = pytree.tree_flatten((self.state, self.critics))
        parts: dict[str, Arrays] = {
            "leaf": {str(i): leaf.detach().numpy().copy() for i, leaf in enumerate(leaves)},
            "store": self.store.save(),
            "stream": {name: seeds.pack(stream) for name, stream in self.streams.items()},
            "observation": dict(self._observations),
            "fate": {"ages": self.ages, "spans": self.spans, "scales": self.scales},
            **{f"habitat-{name}": habitat.save() for name, habitat in self._habitats.items()},
        }
        return {name: np.array(array) for name, array in prefix_names(parts).items()}

    def load(self, state: Arrays) -> None:
        """Go on from what :meth:`save` of the same specification returned."""
        leaves, tree = pytree.tree_flatten((self.state, self.critics))
        kept = unprefix("leaf", state)
        new = [torch.tensor(kept[str(i)]) for i in range(len(leaves))]
        self.state, self.critics = pytree.tree_unflatten(new, tree)
        self.store.load(unprefix("store", state))
        self.streams = {name: seeds.unpack(w) for name, w in unprefix("stream", state).items()}
        self._observations = {k: np.array(v) for k, v in unprefix("observation", state).items()}
        fate = unprefix("fate", state)
        self.ages, self.spans, self.scales = (
            np.array(fate[name]) for name in ("ages", "spans", "scales")
        )
        for name, habitat in self._habitats.items():
            habitat.load(unprefix(f"habitat-{name}", state))


def as_batch(seen: Experience) -> Batch:
    """Return one agent's experience as a learner's batch, every step a row of its own."""
    steps, width = seen.actions.shape
    return Batch(
        rows=seen.observations.flatten(0, 1),
        index=torch.arange((steps + 1) * width).view(steps + 1, width),
        actions=seen.actions,
        rewards=seen.rewards,
        terminals=seen.terminals,
        behaviour=seen.behaviour,
        began=torch.zeros(width),
    )
