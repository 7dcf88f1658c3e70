"""The base of simple update rules: a subclass defines its initial state and its loss.

    class MyRule(UpdateRule):
        def start(self):
            return {"size": torch.zeros(())}

        def loss(self, seen, state):
            ...
            return loss, {"size": size}

One network outputs a policy and a value for every observation. After each rollout the rule gets
the outputs and the rollout, and returns a scalar loss, which Adam minimises, and its new state:
the carrier ``recurrent``, which an audit pins, freezes and transplants.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rulescope.core.arrays import Arrays, digest
from rulescope.core.errors import DivergedError, SpecError
from rulescope.learners import learner_config
from rulescope.learners.a2c import ActorCritic, generalised_advantages, rows
from rulescope.learners.adam import array, write
from rulescope.learners.baseline_config import A2C
from rulescope.learners.learner import Carrier, Rollout
from rulescope.learners.learner_base import HISTORY
from rulescope.learners.plugin_rule import Setup
from rulescope.rules.rule_weights import RuleWeights

__all__ = ["Seen", "Setup", "State", "UpdateRule"]

State = dict[str, Tensor]
"""The state of a rule: tensors by name, always of the same shapes and types."""
METRICS = ("loss", "entropy", "gradient_norm", "history_norm")


class Seen(NamedTuple):
    """One rollout of S steps and N lanes, and the network's current outputs; time comes first."""

    logits: Tensor
    """[S, N, A] of the policy; gradients flow through them."""
    values: Tensor
    """[S + 1, N]: the last row is of the observation after the last action. Gradients flow."""
    actions: Tensor
    """[S, N] int64"""
    rewards: Tensor
    """[S, N]: the reward of each action."""
    terminals: Tensor
    """[S, N] 0 or 1: whether the action ended an episode."""

    def chosen(self) -> Tensor:
        """Return log pi(action) [S, N]."""
        # Not gather: on a GPU its gradient is summed in no fixed order.
        taken = functional.one_hot(self.actions, self.logits.shape[-1])
        return (self.logits.log_softmax(-1) * taken).sum(-1)

    def entropy(self) -> Tensor:
        """Return the policy's entropy [S, N]."""
        logs = self.logits.log_softmax(-1)
        return -(logs.exp() * logs).sum(-1)

    def advantages(
        self, rewards: Tensor, discount: float = 0.997, trace: float = 0.95
    ) -> tuple[Tensor, Tensor]:
        """Return generalised advantages and returns, [S, N] each, as constants.

        ``rewards`` [S, N] are in the units of the values: the rollout's own, or rescaled by the
        rule. A terminal cuts off later rewards; the last row of values is the bootstrap.
        """
        values = self.values.detach()
        rewards_, terminals, estimates = (
            each.detach().cpu().numpy() for each in (rewards, self.terminals, values)
        )
        found = generalised_advantages(rewards_, terminals, estimates, discount, trace)
        advantages = torch.from_numpy(found).to(values)
        return advantages, advantages + values[:-1]


class UpdateRule(ActorCritic):
    """A learner that samples actions from its policy and learns by the loss of a subclass.

    A subclass that needs attributes of its own in :meth:`start` or :meth:`weights` sets them
    before it calls ``super().__init__(setup)``.
    """

    CARRIERS: ClassVar[tuple[str, ...]] = learner_config.CARRIERS
    LEARNING_RATE: ClassVar[float] = learner_config.LEARNING_RATE
    """Learning rate of Adam, unless a run sets another."""
    MAX_NORM: ClassVar[float] = 0.5
    """The gradient is scaled down to this norm."""
    metrics = METRICS

    def __init__(self, setup: Setup) -> None:
        made_of = A2C(
            agent=setup.agent, learning_rate=setup.learning_rate, max_norm=self.MAX_NORM
        )  # only for its network and optimiser; its coefficients are not used
        super().__init__(made_of, setup.observation_shape, setup.actions, setup.seed, setup.device)
        self.setup = setup
        self._state = self._initial_state()
        self.carriers = {HISTORY: Carrier(self._get, self._set), **self.carriers}
        weights = {name: np.array(each, np.float32) for name, each in self.weights().items()}
        if weights:
            content = digest(weights)
            self.rule = RuleWeights(type(self).__name__, weights, content, content)

    @abstractmethod
    def start(self) -> State:
        """Return the initial state; zero should mean "no history", as in a pinned carrier.

        It must not be empty. Names, shapes and types stay the same for the whole lifetime.
        """

    @abstractmethod
    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return a scalar loss and the new state."""

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return the rule's own learned weights, if any; they must never change."""
        return {}

    def rule_digest(self) -> str | None:
        """Return the digest of the current :meth:`weights`."""
        if self.rule is None or not self.rule.arrays:
            return super().rule_digest()
        return digest({name: np.array(each, np.float32) for name, each in self.weights().items()})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Compute the rule's loss on the rollout, make one step, and store the new state."""
        params = self.params.detach().requires_grad_()
        with torch.enable_grad():
            views = self.network.layout.views(params)
            outputs = self.network.outputs(views, self.tensor(rows(rollout)))
            seen = self._seen(rollout, outputs)
            loss, state = self._checked(self.loss(seen, dict(self._state)))
        [gradient] = torch.autograd.grad(loss, params, allow_unused=True)
        if gradient is None:
            raise self._fault("its loss does not depend on the network (was it detached?)")
        norm = self.optimiser.step_(gradient.contiguous())
        self._state = state
        if not measure:
            return {}
        return {
            "loss": loss.item(),
            "entropy": seen.entropy().mean().item(),
            "gradient_norm": norm,
            **self.carrier_metrics(),
        }

    def carrier_metrics(self) -> dict[str, float]:
        """Return the norm of the rule's history, all arrays together."""
        square = sum(float(each.double().square().sum()) for each in self._state.values())
        return {"history_norm": square**0.5}

    def _seen(self, rollout: Rollout, outputs: Tensor) -> Seen:
        """Return the rollout with the network's ``outputs`` [(S + 1) * N, A + 1]."""
        outputs = outputs.view(*rollout.observations.shape[:2], -1)
        return Seen(
            logits=outputs[:-1, :, :-1],
            values=outputs[..., -1],
            actions=torch.from_numpy(rollout.actions).to(self.device),
            rewards=self.tensor(rollout.rewards),
            terminals=self.tensor(rollout.terminals.astype(np.float32)),
        )

    def _initial_state(self) -> State:
        state = self.start()
        if not isinstance(state, dict) or not state:
            raise self._fault(
                "start() must return at least one tensor by name; otherwise it has no history"
            )
        for name, each in state.items():
            if not isinstance(each, Tensor) or not isinstance(name, str) or not name:
                raise self._fault(
                    f"start() must return tensors by name, but {name!r} is {type(each)}"
                )
        return {name: each.detach().clone().to(self.device) for name, each in state.items()}

    def _checked(self, answer: Any) -> tuple[Tensor, State]:
        """Return the result of :meth:`loss`, or raise :class:`SpecError` if it is invalid."""
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise self._fault(f"loss() must return (loss, state), not {type(answer)}")
        loss, state = answer
        if not isinstance(loss, Tensor) or loss.shape != ():
            what = f"shape {list(loss.shape)}" if isinstance(loss, Tensor) else f"{type(loss)}"
            raise self._fault(f"loss() must return a scalar tensor first, not {what}")
        if not loss.requires_grad:
            raise self._fault("its loss does not depend on the network (was it detached?)")
        if not isinstance(state, dict) or set(state) != set(self._state):
            names = sorted(state) if isinstance(state, dict) else type(state)
            raise self._fault(f"loss() must return a state of {sorted(self._state)}, not {names}")
        for name, old in self._state.items():
            self._check_like(name, state[name], old)
        # In the initial order: a carrier's arrays never change places.
        return loss, {name: state[name].detach().clone() for name in self._state}

    def _check_like(self, name: str, new: Any, old: Tensor) -> None:
        alike = isinstance(new, Tensor) and (new.shape, new.dtype) == (old.shape, old.dtype)
        if not alike:
            found = (list(new.shape), new.dtype) if isinstance(new, Tensor) else type(new)
            expected = (list(old.shape), old.dtype)
            raise self._fault(f"state {name!r} was {expected} initially and is now {found}")
        if not bool(torch.isfinite(new).all()):
            raise DivergedError(f"the rule's state {name!r} is no longer finite")

    def _fault(self, what: str) -> SpecError:
        return SpecError(f"rule {type(self).__module__}.{type(self).__qualname__}: {what}")

    def _get(self) -> dict[str, NDArray[Any]]:
        return {name: array(each) for name, each in self._state.items()}

    def _set(self, content: Arrays) -> None:
        new = {name: each.clone() for name, each in self._state.items()}
        for name, each in new.items():
            write(content[name], each)
        self._state = new
