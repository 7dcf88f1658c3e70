"""The weights of a rule as tensors, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.learners.adam import array
from rulescope.learners.plugin_rule import Setup
from rulescope.rules.rule_weights import RuleWeights, short


def require_weights(setup: Setup, kind: str, fault: Callable[[Arrays], str | None]) -> RuleWeights:
    """Return the weights in ``setup``; :class:`SpecError` if they are not a rule of this ``kind``.

    ``fault`` says why arrays are not one.
    """
    rule = setup.rule
    if rule is None:
        raise SpecError(f"learner.rule: an {kind} learner needs the weights of a rule")
    problem = fault(rule.arrays)
    if problem:
        example = f"{kind.lower()}-random:0"
        raise SpecError(
            f"learner.rule: {short(rule.name)!r} is not an {kind} rule (it {problem}); valid: "
            f"{example}, or a file of such weights"
        )
    return rule


def tensors_of(
    rule: RuleWeights, device: str = "cpu", dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Return copies of the weights of ``rule`` on ``device``."""
    return {
        name: torch.tensor(each, device=device, dtype=dtype) for name, each in rule.arrays.items()
    }


def arrays_of(tensors: Mapping[str, Tensor]) -> Arrays:
    """Return ``tensors`` as arrays."""
    return {name: array(each) for name, each in tensors.items()}
