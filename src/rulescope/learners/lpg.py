"""LPG: learned policy gradient, and its temporally-aware form (docs/further_rules.md)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.learners.learner import Carrier, Rollout
from rulescope.learners.sgd import Sgd
from rulescope.learners.update_rule import Seen, Setup, State, UpdateRule
from rulescope.learners.weight_tensors import arrays_of, require_weights, tensors_of
from rulescope.rules.lpg_format import fault, sizes_of
from rulescope.rules.lpg_network import lpg_loss


class LPG(UpdateRule):
    """The rule reads each rollout backwards; what it remembers of it ends with the rollout.

    The network's value output is unused: the rule has targets for the head y instead.
    """

    MAX_NORM = math.inf

    def __init__(self, setup: Setup) -> None:
        own: Any = setup.options
        rule = require_weights(setup, "LPG", fault)
        self.own, self.tensors = own, tensors_of(rule, setup.device)
        self.HEADS = {"y": sizes_of(rule.arrays).predictions}
        self.updates = 0
        if sizes_of(rule.arrays).aware != (own.lifetime_inputs != "none"):
            raise SpecError(f"learner.lifetime_inputs: {_advice(own.lifetime_inputs)}")
        if own.lifetime_inputs != "none" and setup.iterations is None:
            raise SpecError("learner.lifetime_inputs: the rule needs the lifetime's iterations")
        super().__init__(setup)
        if own.optimiser == "sgd":
            self.optimiser = Sgd(self.params, own.learning_rate, own.max_norm)
            del self.carriers["moments"]
        if own.lifetime_inputs != "none":
            self.carriers = {"schedule": Carrier(self._age, self._set_age), **self.carriers}

    def weights(self) -> Arrays:
        """Return the rule's weights as they are in memory."""
        return arrays_of(self.tensors)

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return the loss of the rollout."""
        y, chosen = seen.heads["y"].softmax(-1), seen.chosen().exp()
        loss = lpg_loss(
            self.tensors,
            seen.rewards,
            seen.terminals,
            chosen,
            y,
            self.own.y_coefficient,
            self.lifetime_inputs(),
        )
        return loss, state

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Make one step, and count it."""
        metrics = super().learn(rollout, measure)
        self.updates += 1
        return metrics

    def lifetime_inputs(self) -> tuple[float, float] | None:
        """Return what a temporally-aware rule reads of the lifetime."""
        whole, form = self.setup.iterations, self.own.lifetime_inputs
        if form == "none" or whole is None:
            return None
        return (self.updates, whole) if form == "raw" else (self.updates / whole, math.log(whole))

    def _age(self) -> dict[str, NDArray[Any]]:
        return {"updates": np.array(self.updates)}

    def _set_age(self, content: Arrays) -> None:
        self.updates = int(content["updates"])


def _advice(form: str) -> str:
    if form == "none":
        return "the rule is temporally aware, so it needs 'raw' or 'relative'"
    return f"{form!r} is for a temporally-aware rule, and this one is not; use 'none'"
