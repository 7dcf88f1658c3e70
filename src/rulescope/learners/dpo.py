"""DPO: discovered policy optimisation (docs/further_rules.md)."""

from torch import Tensor

from rulescope.learners.drift_rule import DriftRule
from rulescope.rules.drift import dpo_drift


class DPO(DriftRule):
    """LPO's drift in closed form; it has no weights and no state."""

    def drift(self, log_ratio: Tensor, advantages: Tensor) -> Tensor:
        """Return the drift [B]."""
        return dpo_drift(log_ratio, advantages, self.own.alpha, self.own.beta)
