"""DQN: epsilon-greedy actions, a uniform replay of transitions, and a target network.

A rollout is processed step by step: its transitions are stored in order of time, and updates and
target copies are made between them by the count of interactions (all lanes together), as if they
were made while acting. Only the actions of a rollout are all chosen before its updates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.learners.adam import Adam, flat_carrier, to_tensor
from rulescope.learners.baseline_config import DQN, UNITS
from rulescope.learners.learner import Carrier, Choice, Learner, Rollout
from rulescope.learners.replay import TransitionReplay, Transitions, order_by_first_appearance
from rulescope.learners.torso import Evaluation, Network
from rulescope.learners.unit_replacement import REPLACEMENT_METRICS, STREAM, Replacement


class DQNLearner(Learner):
    """Deep Q-learning; the network's outputs are the values of the actions, [R, A]."""

    metrics: tuple[str, ...] = (
        "loss_value",
        "td_magnitude",
        "q_mean",
        "gradient_norm",
        "epsilon",
        "stored",
    )

    def __init__(
        self,
        config: DQN,
        observation_shape: tuple[int, ...],
        actions: int,
        seed: int,
        interactions: int,
        device: str = "cpu",
    ) -> None:
        """``interactions`` is the length of the lifetime; exploration lasts a share of it."""
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
        # Choices since the last call of learn. It is always zero between iterations, so it is not
        # part of the persistent state.
        self._pending = 0
        self.streams = {name: seeds.stream(seed, name) for name in ("action", "replay")}
        self.carriers = {
            "target": flat_carrier(self.target),
            "moments": self.optimiser.carrier,
            "replay": Carrier(self.replay.get, self.replay.set),
            "schedule": Carrier(self._get_schedule, self._set_schedule),
            "params": flat_carrier(self.params),
        }
        self.replacement: Replacement | None = None
        if config.replacement is not None:
            layers = self.network.hidden_layers(self._views)
            self.replacement = Replacement(config.replacement, layers)
            self.streams[STREAM] = seeds.stream(seed, STREAM)
            self.carriers = {UNITS: self.replacement.carrier, **self.carriers}
            self.metrics = (*self.metrics, *REPLACEMENT_METRICS)

    def epsilon(self, interactions: int) -> float:
        """Return the probability of a random action after ``interactions``."""
        first, last = self.config.epsilon
        return first + (last - first) * min(interactions / self.horizon, 1.0)

    def act(self, observation: NDArray[np.float32]) -> Choice:
        """Take the action of highest value or, with probability epsilon, any action."""
        lanes = len(observation)
        evaluation = Evaluation(self.network, self._views, self._tensor(observation))
        greedy = evaluation.output_array.argmax(axis=1)
        # Always the same number of draws: exploration does not depend on the greedy actions.
        stream = self.streams["action"]
        draws, other = stream.random(lanes), stream.integers(self.actions, size=lanes)
        epsilon = self.epsilon(self.interactions + self._pending)
        self._pending += lanes
        return Choice(np.where(draws < epsilon, other, greedy), {})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Store the transitions in order of time, and make the updates that are due in between.

        Samples from the replay do not depend on earlier updates. So the batches between two copies
        of the target are drawn first and trained on together.
        """
        config, lanes = self.config, rollout.actions.shape[1]
        drawn: list[Transitions] = []
        measured: list[dict[str, float]] = []
        self._pending = 0
        ended, following = transition_ends(rollout)
        for t, actions in enumerate(rollout.actions):
            self.replay.append(
                rollout.observations[t], actions, rollout.rewards[t], ended[t], following[t]
            )
            before, self.interactions = self.interactions, self.interactions + lanes
            if self._started():
                drawn += [
                    self.replay.sample(self.streams["replay"], config.batch)
                    for _ in range(_due(before, self.interactions, config.train_every * lanes))
                ]
            if _due(before, self.interactions, config.target_every):
                measured += self._train(drawn, measure)
                drawn = []
                self.target.copy_(self.params)
        measured += self._train(drawn, measure)
        self.replay.settle()
        if not measure:
            return {}
        means = {
            name: float(np.mean([one[name] for one in measured])) for name in (measured or [{}])[0]
        }
        epsilon = self.epsilon(self.interactions)
        return {**means, "epsilon": epsilon, **self.carrier_metrics()}

    def carrier_metrics(self) -> dict[str, float]:
        """Return the number of transitions in the replay, and what is replaced of the units."""
        units = {} if self.replacement is None else self.replacement.metrics()
        return {"stored": float(len(self.replay)), **units}

    def _started(self) -> bool:
        """Return whether there are enough transitions for an update."""
        by_lifetime = self.config.start_counts == "interactions"
        return (self.interactions if by_lifetime else len(self.replay)) >= self.config.start

    def _train(self, drawn: list[Transitions], measure: bool) -> list[dict[str, float]]:
        """Make one update on each batch; return the metrics of each if ``measure``."""
        if not drawn:
            return []
        batch = Transitions(*(np.stack(column) for column in zip(*drawn, strict=True)))
        metrics = [
            self._update(rows, actions, td_targets, measure)
            for rows, actions, td_targets in zip(
                self._tensor(self.replay.rows(batch.before)),
                batch.actions,
                self.td_targets(batch),
                strict=True,
            )
        ]
        return metrics if measure else []

    def td_targets(self, batch: Transitions) -> NDArray[np.float64]:
        """Return reward + discount * the target network's best value of the next observation.

        After a terminal the next observation belongs to another episode and counts as zero. The
        target network evaluates each distinct observation once. The shape is that of
        ``batch.rewards``.
        """
        distinct, place = order_by_first_appearance(batch.after)
        rows = self._tensor(self.replay.rows(distinct))
        best = Evaluation(self.network, self._target_views, rows).output_array.max(axis=1)
        continuation = self.config.discount * ~batch.terminals
        td_targets: NDArray[np.float64] = batch.rewards + continuation * best[place]
        return td_targets

    def _update(
        self,
        rows: Tensor,
        actions: NDArray[np.int64],
        td_targets: NDArray[np.float64],
        measure: bool,
    ) -> dict[str, float]:
        """Make one step; ``rows`` [B, *shape], ``actions`` [B], ``aims`` [B]."""
        evaluation = Evaluation(self.network, self._views, rows)
        outputs, taken = evaluation.output_array, (np.arange(len(actions)), actions)
        error = outputs[taken] - td_targets
        # Half the square up to an error of one and linear beyond, or the square itself.
        huber = self.config.loss == "huber"
        slope = np.minimum(np.maximum(error, -1.0), 1.0) if huber else 2.0 * error
        at_outputs = np.zeros_like(outputs)
        at_outputs[taken] = slope / len(slope)
        evaluation.gradient_(self._tensor(at_outputs), self._into)
        norm = self.optimiser.step_(self.gradient)
        if self.replacement is not None:
            self.replacement.step_(evaluation.hidden(len(rows)), self.streams[STREAM])
        if not measure:
            return {}
        size = np.abs(error)
        # The slope is the error itself up to one, and one beyond.
        loss = np.abs(slope) * (size - 0.5 * np.abs(slope)) if huber else np.square(error)
        return {
            "loss_value": float(loss.mean()),
            "td_magnitude": float(size.mean()),
            "q_mean": float(outputs.mean()),
            "gradient_norm": norm,
        }

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return to_tensor(array, self.device)

    def _get_schedule(self) -> dict[str, NDArray[Any]]:
        return {"interactions": np.array(self.interactions, dtype=np.int64)}

    def _set_schedule(self, content: Arrays) -> None:
        self.interactions = int(content["interactions"])


def transition_ends(rollout: Rollout) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
    """Return for each transition whether nothing follows [S, N], and what does [S, N, *shape].

    Where an episode was cut off and is to be bootstrapped, that is the observation at the cut.
    """
    following = rollout.observations[1:]
    if rollout.truncated is None or rollout.final is None:
        return rollout.terminals, following
    following = following.copy()
    following[rollout.truncated] = rollout.final
    return rollout.terminals & ~rollout.truncated, following


def _due(before: int, now: int, every: int) -> int:
    """Return the number of multiples of ``every`` above ``before``, up to ``now``.

    >>> _due(6, 8, 4), _due(8, 10, 4), _due(0, 9, 4)
    (1, 0, 2)
    """
    return now // every - before // every
