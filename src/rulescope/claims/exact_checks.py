"""The exact claims by id, each with the function that checks it.

A check computes the quantities of its claim and does not judge them: the predicate of the claim
does. Its module is imported when it is called, because some of them import torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from rulescope.claims.exact_result import ExactCheck, Inputs

__all__ = ["EXACT_CHECKS", "Check", "ExactCheck", "Inputs"]

Check = Callable[[Inputs], ExactCheck]

_PLACES = {
    "port-matches-the-original": "run_checks:check_parity",
    "projection-is-lossless-inside-support": "interface_checks:check_projection",
    "effective-bins-of-two-onehots": "interface_checks:check_effective_bins",
    "value-gradient-is-p-minus-w": "interface_checks:check_value_gradient",
    "matched-capacity-is-disco-replay": "run_checks:check_capacity",
    "pinned-states-are-zero": "run_checks:check_pinned",
    "two-exposures-are-one-experiment": "run_checks:check_exposures",
    "catchstream-never-resets": "run_checks:check_continuity",
    "random-discovery-chance-formula": "printed_checks:check_chance",
    "deepsea-wilson-intervals": "printed_checks:check_wilson",
    "printed-windows-follow-from-curves": "printed_checks:check_windows",
    "printed-contrasts-add-up": "printed_checks:check_sums",
    "central-interaction-budgets": "design_checks:check_budgets",
    "run-and-contrast-counts": "design_checks:check_counts",
    "family-11-tails": "design_checks:check_tails",
    "trim-equals-iqm-at-twelve-not-eighteen": "design_checks:check_estimators",
    "normalisation-references": "design_checks:check_references",
    "linear-support-clips-thousand": "interface_checks:check_linear_support",
    "checkpoint-parameter-count": "run_checks:check_checkpoint",
}
"""Module and function of each check, in the order of the ledger."""


def _later(place: str) -> Check:
    """Return the check at ``place``, whose module is imported by the first call."""
    module, function = place.split(":")

    def check(inputs: Inputs) -> ExactCheck:
        found = getattr(import_module(f"rulescope.claims.{module}"), function)
        return cast(Check, found)(inputs)

    return check


EXACT_CHECKS: Mapping[str, Check] = MappingProxyType(
    {claim: _later(place) for claim, place in _PLACES.items()}
)
"""By claim id, in the order of the ledger."""
