"""Policy gradients with a drift term: what DPO and LPO have in common.

The loss is ``-mean(r A - drift) + c value_loss - d mean(entropy)`` with generalised advantages A,
estimated once per rollout and normalised in each minibatch, and the probability ratio r.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from rulescope.learners.adam import Adam
from rulescope.learners.update_rule import Seen, Setup, State, UpdateRule
from rulescope.rules.drift import drift_loss, normalise


class DriftRule(UpdateRule):
    """A rule that is a drift function; it has no state."""

    def __init__(self, setup: Setup) -> None:
        own: Any = setup.options
        self.own = own
        self.EPOCHS, self.MINIBATCHES, self.MAX_NORM = own.epochs, own.minibatches, own.max_norm
        super().__init__(setup)
        adam = Adam(self.params, own.learning_rate, own.max_norm, epsilon=own.adam_epsilon)
        self.optimiser, self.carriers = adam, {**self.carriers, "moments": adam.carrier}

    @abstractmethod
    def drift(self, log_ratio: Tensor, advantages: Tensor) -> Tensor:
        """Return the drift [B] of transitions with these normalised ``advantages`` [B]."""

    def prepare(self, seen: Seen, state: State) -> Mapping[str, Tensor]:  # noqa: ARG002
        """Return advantages, returns and the values at the time of acting, [S, N] each."""
        own = self.own
        advantages, returns = seen.advantages(seen.rewards, own.discount, own.trace)
        return {"advantages": advantages, "returns": returns, "values": seen.state_values()}

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return the loss of one minibatch."""
        advantages = normalise(seen.prepared["advantages"])
        log_ratio = seen.chosen() - seen.before
        policy = drift_loss(log_ratio, advantages, self.drift(log_ratio, advantages))
        value = value_loss(
            seen.state_values(),
            seen.prepared["values"],
            seen.prepared["returns"],
            self.own.value_clip,
        )
        entropy = seen.entropy().mean()
        own = self.own
        return policy + own.value_coefficient * value - own.entropy_coefficient * entropy, state


def value_loss(values: Tensor, before: Tensor, returns: Tensor, clip: float | None) -> Tensor:
    """Return half the mean squared error of ``values`` [B].

    With ``clip``, the larger one of that error and the error of the value that moved no further
    than this from ``before``.
    """
    errors = (values - returns).square()
    if clip is not None:
        moved = before + (values - before).clamp(-clip, clip)
        errors = errors.maximum((moved - returns).square())
    return 0.5 * errors.mean()
