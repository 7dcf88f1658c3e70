"""Every kind of comparison with one directory of golden arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rulescope.numerics.golden import Golden
from rulescope.numerics.output_parity import (
    compare_forward,
    compare_value_estimator,
    compare_value_interface,
)
from rulescope.numerics.tolerances import Comparison, widen_for
from rulescope.numerics.update_parity import (
    compare_inner_steps,
    compare_meta_gradients,
    compare_precisions,
)

CHECKS: tuple[Callable[[Golden], Iterator[Comparison]], ...] = (
    compare_forward,
    compare_inner_steps,
    compare_value_estimator,
    compare_value_interface,
    compare_meta_gradients,
    compare_precisions,
)


def compare_all(golden: Golden) -> Iterator[Comparison]:
    """Yield the comparisons of every kind, with the tolerances of the device of ``golden``."""
    for check in CHECKS:
        for item in check(golden):
            yield widen_for(item, golden.device)
