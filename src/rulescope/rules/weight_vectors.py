"""The weights of a rule as one flat vector, for a search over them, and back.

start = load("lpg-random-8-16-32:0")         # initial weights of these sizes
vector = flatten_weights(start.arrays)       # [D] float64
candidate = rule_of(unflatten_weights(vector + step, start.arrays))
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rulescope.core.arrays import Arrays, digest
from rulescope.rules.rule_weights import RuleWeights


def flatten_weights(arrays: Arrays) -> NDArray[np.float64]:
    """Return all weights [D], array after array in the order of their sorted names."""
    return np.concatenate([np.ravel(arrays[name]) for name in sorted(arrays)]).astype(np.float64)


def unflatten_weights(vector: NDArray[np.floating], like: Arrays) -> dict[str, NDArray[np.float32]]:
    """Return ``vector`` [D] as arrays of the names and shapes of ``like``, in float32."""
    total = sum(each.size for each in like.values())
    if vector.shape != (total,):
        raise ValueError(f"a vector of {total} weights was expected, not {vector.shape}")
    made, start = {}, 0
    for name in sorted(like):
        stop = start + like[name].size
        made[name] = vector[start:stop].reshape(like[name].shape).astype(np.float32)
        start = stop
    return made


def rule_of(arrays: Arrays, name: str = "candidate") -> RuleWeights:
    """Return weights that have no file as a rule, for ``Setup.rule`` of a learner."""
    content = digest(arrays)
    return RuleWeights(name, dict(arrays), content, content)
