"""What is done to a carrier, and nothing else: the causal handle of every experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rulescope.learners.base import Learner
from rulescope.spec import Intervention

Content = dict[str, NDArray[Any]]


def pin(content: Content) -> Content:
    """Set every array to zero: the learner goes on without this part of its history."""
    return {name: np.zeros_like(array) for name, array in content.items()}


def placebo(content: Content) -> Content:
    """Write back what was read: any effect of this is an error of the program."""
    return content


OPERATIONS: dict[str, Callable[[Content], Content]] = {"pin": pin, "placebo": placebo}


def apply(intervention: Intervention, learner: Learner) -> None:
    """Carry out ``intervention`` on ``learner``, as is done after every iteration."""
    carrier = learner.carriers[intervention.carrier]
    carrier.set(OPERATIONS[intervention.operation](carrier.get()))
