"""The whole numerical table: every family against one directory of golden arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rulescope.numerics.comparison import Comparison
from rulescope.numerics.forward import forward
from rulescope.numerics.golden import Golden
from rulescope.numerics.inner import inner
from rulescope.numerics.meta_gradient import meta_gradient, single_precision
from rulescope.numerics.values import value_estimator, value_interface

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
