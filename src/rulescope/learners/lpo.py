"""LPO: learned policy optimisation (docs/further_rules.md)."""

from torch import Tensor

from rulescope.core.arrays import Arrays
from rulescope.learners.drift_rule import DriftRule
from rulescope.learners.update_rule import Setup
from rulescope.learners.weight_tensors import arrays_of, require_weights, tensors_of
from rulescope.rules.drift import lpo_drift
from rulescope.rules.lpo_format import fault


class LPO(DriftRule):
    """The drift is a network with fixed weights; it has no state."""

    def __init__(self, setup: Setup) -> None:
        rule = require_weights(setup, "LPO", fault)
        self.tensors = tensors_of(rule, setup.device)
        super().__init__(setup)

    def weights(self) -> Arrays:
        """Return the network's weights as they are in memory."""
        return arrays_of(self.tensors)

    def drift(self, log_ratio: Tensor, advantages: Tensor) -> Tensor:
        """Return the drift [B]."""
        own = self.own
        return lpo_drift(self.tensors, log_ratio, advantages, own.features, own.clip)
