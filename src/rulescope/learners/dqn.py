"""DQN: epsilon-greedy actions, a uniform replay of transitions, and a target network.

A rollout is taken in step by step: its transitions are stored in order of time, and between them
the updates and target copies fall due by the count of interactions (all lanes together), just as if
they had been made while acting. Only the actions of a rollout are all chosen before its updates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.learners.learner import Carrier, Choice, Learner, Rollout
from rulescope.learners.norm_clipped_adam import Adam, flat_carrier, to_tensor
from rulescope.learners.torso import Evaluation, Network
from rulescope.learners.trajectory_replay import by_first_appearance
from rulescope.learners.transition_replay import TransitionReplay, Transitions
from rulescope.spec.baseline_config import DQN


class DQNLearner(Learner):
    """Deep Q-learning; the network's outputs are the values of the actions, [R, A]."""

    metrics = ("loss_value", "td_magnitude", "q_mean", "gradient_norm", "epsilon", "stored")

    def __init__(
        self,
        config: DQN,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        interactions: int,
        device: str = "cpu",
    ) -> None:
        """``interactions`` is the length of the lifetime, of which exploration takes a share."""
        self.config = config
        self.actions = actions
        self.device = torch.device(device)
        self.horizon = config.exploration * interactions
        self.network = Network(observation_shape, actions, config.agent)
        self.params = self.network.initial(seed).to(self.device)
        self.target = self.params.clone()
        self.gradient = torch.zeros_like(self.params)
        layout = self.network.layout
        self._views, self._target_views = layout.views(self.params), layout.views(self.target)
        self._into = layout.views(self.gradient)
        self.optimiser = Adam(self.params, config.learning_rate, config.max_norm)
        self.replay = TransitionReplay(config.capacity, observation_shape)
        self.interactions = 0
        # Choices since the last rollout was learned from. Between iterations it is always zero,
        # so it is no part of the persistent state.
        self._pending = 0
        self.streams = {name: seeds.stream(seed, name) for name in ("action", "replay")}
        self.carriers = {
            "target": flat_carrier(self.target),
            "moments": self.optimiser.carrier,
            "replay": Carrier(self.replay.get, self.replay.set),
            "schedule": Carrier(self._get_schedule, self._set_schedule),
            "params": flat_carrier(self.params),
        }

    def epsilon(self, interactions: int) -> float:
        """Return the probability of a random action after so many ``interactions``."""
        first, last = self.config.epsilon
        return first + (last - first) * min(interactions / self.horizon, 1.0)

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Take the action of highest value or, with probability epsilon, any action."""
        lanes = len(observation)
        evaluation = Evaluation(self.network, self._views, self._tensor(observation))
        greedy = evaluation.said.argmax(axis=1)
        # Always the same draws, so that what is explored does not depend on what is greedy.
        stream = self.streams["action"]
        chance, other = stream.random(lanes), stream.integers(self.actions, size=lanes)
        epsilon = self.epsilon(self.interactions + self._pending)
        self._pending += lanes
        return Choice(np.where(chance < epsilon, other, greedy), {})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Store the transitions in order of time, and make the updates that fall due on the way.

        What an update draws from the replay does not depend on the updates before it. So those
        between two copies of the target are drawn first and made together.
        """
        config, lanes = self.config, rollout.actions.shape[1]
        drawn: list[Transitions] = []
        seen: list[dict[str, float]] = []
        self._pending = 0
        for t, actions in enumerate(rollout.actions):
            self.replay.append(
                rollout.observations[t],
                actions,
                rollout.rewards[t],
                rollout.terminals[t],
                rollout.observations[t + 1],
            )
            before, self.interactions = self.interactions, self.interactions + lanes
            if self._started():
                drawn += [
                    self.replay.sample(self.streams["replay"], config.batch)
                    for _ in range(_due(before, self.interactions, config.train_every * lanes))
                ]
            if _due(before, self.interactions, config.target_every):
                seen += self._train(drawn, measure)
                drawn = []
                self.target.copy_(self.params)
        seen += self._train(drawn, measure)
        self.replay.settle()
        if not measure:
            return {}
        means = {name: float(np.mean([one[name] for one in seen])) for name in (seen or [{}])[0]}
        epsilon = self.epsilon(self.interactions)
        return {**means, "epsilon": epsilon, **self.carrier_metrics()}

    def carrier_metrics(self) -> dict[str, float]:
        """Return how many transitions the replay holds."""
        return {"stored": float(len(self.replay))}

    def _started(self) -> bool:
        """Whether enough transitions were made, or are stored, for an update."""
        by_lifetime = self.config.start_counts == "interactions"
        return (self.interactions if by_lifetime else len(self.replay)) >= self.config.start

    def _train(self, drawn: list[Transitions], measure: bool) -> list[dict[str, float]]:
        """Make one update on each of the batches; return the metrics of each if asked to."""
        if not drawn:
            return []
        batch = Transitions(*(np.stack(column) for column in zip(*drawn, strict=True)))
        metrics = [
            self._update(rows, actions, aims, measure)
            for rows, actions, aims in zip(
                self._tensor(self.replay.rows(batch.before)),
                batch.actions,
                self.aims(batch),
                strict=True,
            )
        ]
        return metrics if measure else []

    def aims(self, batch: Transitions) -> NDArray[np.float64]:
        """Return reward + discount * the target network's best value of what followed.

        What follows a terminal belongs to another episode and counts nothing. The target network
        is asked about each distinct observation once. The shape is that of ``batch.rewards``.
        """
        distinct, place = by_first_appearance(batch.after)
        rows = self._tensor(self.replay.rows(distinct))
        best = Evaluation(self.network, self._target_views, rows).said.max(axis=1)
        onward = self.config.discount * ~batch.terminals
        aims: NDArray[np.float64] = batch.rewards + onward * best[place]
        return aims

    def _update(
        self,
        rows: Tensor,
        actions: NDArray[np.int64],
        aims: NDArray[np.float64],
        measure: bool,
    ) -> dict[str, float]:
        """Make one step; ``rows`` [B, *shape], ``actions`` [B], ``aims`` [B]."""
        evaluation = Evaluation(self.network, self._views, rows)
        said, taken = evaluation.said, (np.arange(len(actions)), actions)
        error = said[taken] - aims
        # Half the square up to an error of one and linear beyond, or the square itself.
        huber = self.config.loss == "huber"
        slope = np.minimum(np.maximum(error, -1.0), 1.0) if huber else 2.0 * error
        at_outputs = np.zeros_like(said)
        at_outputs[taken] = slope / len(slope)
        evaluation.gradient_(self._tensor(at_outputs), self._into)
        norm = self.optimiser.step_(self.gradient)
        if not measure:
            return {}
        size = np.abs(error)
        # The slope is the error itself up to one, and one beyond.
        loss = np.abs(slope) * (size - 0.5 * np.abs(slope)) if huber else np.square(error)
        return {
            "loss_value": float(loss.mean()),
            "td_magnitude": float(size.mean()),
            "q_mean": float(said.mean()),
            "gradient_norm": norm,
        }

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return to_tensor(array, self.device)

    def _get_schedule(self) -> dict[str, NDArray[Any]]:
        return {"interactions": np.array(self.interactions, dtype=np.int64)}

    def _set_schedule(self, content: Arrays) -> None:
        self.interactions = int(content["interactions"])


def _due(before: int, now: int, every: int) -> int:
    """Return how often a multiple of ``every`` was reached on the way from ``before`` to ``now``.

    >>> _due(6, 8, 4), _due(8, 10, 4), _due(0, 9, 4)
    (1, 0, 2)
    """
    return now // every - before // every
