"""The Disco learner: samples from its policy, stores trajectories, learns the rule's targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import arrays, seeds
from rulescope.core.arrays import Arrays
from rulescope.learners.adam import Moments
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.diagnostics import METRICS, measurements, recurrent_norms
from rulescope.learners.disco.rule_network import MetaNetwork, RuleState
from rulescope.learners.disco.update import DiscoUpdate
from rulescope.learners.disco.value_estimates import Averages
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner import Carrier, Choice, Learner, Rollout
from rulescope.learners.replay import Sample, TrajectoryReplay
from rulescope.learners.return_statistics import RETURN_SCALE, ReturnStatistics
from rulescope.rules.rule_weights import RuleWeights


class DiscoLearner(Learner):
    """A learner driven by fixed rule weights."""

    metrics: tuple[str, ...] = METRICS
    rule: RuleWeights

    def __init__(
        self,
        config: Disco,
        weights: RuleWeights,
        observation_shape: tuple[int, ...],
        actions: int,
        steps: int,
        seed: int,
        device: str = "cpu",
    ) -> None:
        self.config = config
        self.device = torch.device(device)
        self.rule = weights
        self._weights = {
            name: torch.tensor(array, device=self.device) for name, array in weights.arrays.items()
        }
        network = MetaNetwork(self._weights, config.conventions.sign_log)
        agent = Agent(
            observation_shape,
            actions,
            network.predictions,
            config.interface.bins,
            config.agent,
            config.conventions,
        )
        params = agent.initial(seed).to(self.device)
        self.update = DiscoUpdate(agent, network, config)
        self.state = self.update.fresh(params)
        self._views = agent.layout.views(params)
        self.transitions = steps if config.conventions.alignment == "bootstrap" else steps - 1
        self.replay = TrajectoryReplay(
            config.capacity,
            self.transitions + 1,
            observation_shape,
            {
                "actions": ((self.transitions,), np.int64),
                "rewards": ((self.transitions,), np.float32),
                "terminals": ((self.transitions,), np.float32),
                "behaviour": ((self.transitions, actions), np.float32),
                "began": ((), np.float32),
            },
        )
        self.streams = {name: seeds.stream(seed, name) for name in ("action", "replay")}
        self.carriers = self._make_carriers()
        self.statistics: ReturnStatistics | None = None
        if config.scaling is not None:
            self.statistics = ReturnStatistics(config.scaling, config.discount)
            self.carriers = {"scaling": self.statistics.carrier, **self.carriers}
            self.metrics = (*METRICS, RETURN_SCALE)

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Sample from the policy: the largest of logits plus Gumbel noise."""
        rows = torch.from_numpy(observation).to(self.device)
        logits = self.update.agent.policy(self._views, rows).cpu().numpy()
        noise = self.streams["action"].gumbel(size=logits.shape)
        return Choice((logits + noise).argmax(axis=1), {"logits": logits})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Store each lane's trajectory; once a batch is there, make one update."""
        if self.statistics is not None:
            self.statistics.push(rollout)
        t = self.transitions
        for lane in range(rollout.actions.shape[1]):
            self.replay.append(
                rollout.observations[: t + 1, lane],
                actions=rollout.actions[:t, lane],
                rewards=rollout.rewards[:t, lane],
                terminals=rollout.terminals[:t, lane],
                behaviour=rollout.behaviour["logits"][:t, lane],
                began=rollout.began[lane],
            )
        if len(self.replay) < self.config.batch:
            return {}
        batch = self.batch(self.streams["replay"])
        self.state, step = self.update.fast_(self.state, batch)
        if not measure:
            return {}
        scale = {} if self.statistics is None else {RETURN_SCALE: self.statistics.sigma}
        return {**measurements(step, self.state, self.update.interface), **scale}

    def carrier_metrics(self) -> dict[str, float]:
        """Return the norms of the recurrent state."""
        return recurrent_norms(self.state)

    def batch(self, rng: Generator) -> Batch:
        """Draw a batch from the replay; nothing but ``rng`` changes."""
        return self._batch(self.replay.sample(rng, self.config.batch))

    def _batch(self, sample: Sample) -> Batch:
        def tensor(array: NDArray[Any]) -> torch.Tensor:
            return torch.from_numpy(array).to(self.device)

        timed = {
            name: tensor(values.swapaxes(0, 1))
            for name, values in sample.columns.items()
            if values.ndim > 1
        }
        sigma = None if self.statistics is None else self.statistics.sigma
        return Batch(
            rows=tensor(sample.rows),
            index=tensor(sample.index.T),
            actions=timed["actions"],
            rewards=timed["rewards"] if sigma is None else timed["rewards"] / sigma,
            terminals=timed["terminals"],
            behaviour=timed["behaviour"],
            began=tensor(sample.columns["began"]),
        )

    def rule_digest(self) -> str:
        """Return the digest of the rule weights as they are in memory now."""
        return arrays.digest({name: _array(tensor) for name, tensor in self._weights.items()})

    def _make_carriers(self) -> Mapping[str, Carrier]:
        return {
            "recurrent": Carrier(self._get_recurrent, self._set_recurrent),
            "averages": Carrier(self._get_averages, self._set_averages),
            "target": Carrier(self._get_target, self._set_target),
            "moments": Carrier(self._get_moments, self._set_moments),
            "replay": Carrier(self.replay.get, self.replay.set),
            "params": Carrier(self._get_params, self._set_params),
        }

    def _tensor(self, array: NDArray[Any]) -> torch.Tensor:
        return torch.tensor(array, dtype=self.state.params.dtype, device=self.device)

    def _get_recurrent(self) -> dict[str, NDArray[Any]]:
        hidden, cell = self.state.recurrent
        return {"h": _array(hidden), "c": _array(cell)}

    def _set_recurrent(self, content: Arrays) -> None:
        pair = RuleState(self._tensor(content["h"]), self._tensor(content["c"]))
        self.state = self.state._replace(recurrent=pair)

    def _get_averages(self) -> dict[str, NDArray[Any]]:
        advantage, td = self.state.averages
        return {"advantage": _array(advantage), "td": _array(td)}

    def _set_averages(self, content: Arrays) -> None:
        pair = Averages(self._tensor(content["advantage"]), self._tensor(content["td"]))
        self.state = self.state._replace(averages=pair)

    def _get_target(self) -> dict[str, NDArray[Any]]:
        return {"flat": _array(self.state.target)}

    def _set_target(self, content: Arrays) -> None:
        self.state.target.copy_(self._tensor(content["flat"]))

    def _get_moments(self) -> dict[str, NDArray[Any]]:
        first, second, updates = self.state.moments
        return {
            "first": _array(first),
            "second": _array(second),
            "updates": np.array(updates, dtype=np.int64),
        }

    def _set_moments(self, content: Arrays) -> None:
        first, second = self._tensor(content["first"]), self._tensor(content["second"])
        self.state = self.state._replace(moments=Moments(first, second, int(content["updates"])))

    def _get_params(self) -> dict[str, NDArray[Any]]:
        return {"flat": _array(self.state.params)}

    def _set_params(self, content: Arrays) -> None:
        # In place: the acting policy looks at the same memory.
        self.state.params.copy_(self._tensor(content["flat"]))


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    """Return a copy as a NumPy array."""
    return np.array(tensor.cpu().numpy())
