"""The whole numerical table: every family against one directory of golden arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rulescope.numerics.forward_parity import forward
from rulescope.numerics.golden import Golden
from rulescope.numerics.inner_steps import inner
from rulescope.numerics.meta_gradient import meta_gradient, single_precision
from rulescope.numerics.tolerances import Comparison
from rulescope.numerics.value_parity import value_estimator, value_interface

FAMILIES: tuple[Callable[[Golden], Iterator[Comparison]], ...] = (
    forward,
    inner,
    value_estimator,
    value_interface,
    meta_gradient,
    single_precision,
)


def run_all(golden: Golden) -> Iterator[Comparison]:
    """Yield every comparison there is."""
    for family in FAMILIES:
        yield from family(golden)
