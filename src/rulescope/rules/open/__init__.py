"""OPEN, a learned optimiser with a GRU carry for every parameter.

:class:`OPEN` is a torch optimiser; ``open_step.Open`` is the step itself, on flat vectors.
"""

from rulescope.rules.open.open_optimiser import OPEN

__all__ = ["OPEN"]
