"""OPEN, a learned optimiser with a GRU carry for every parameter.

:class:`OPEN` is an ordinary optimiser of torch's; :class:`~rulescope.rules.open.step.Open` is the
step itself on flat vectors, which the learner of an audit uses.
"""

from rulescope.rules.open.optimiser import OPEN

__all__ = ["OPEN"]
