"""Numbers of the published text that are in no table of results: rows of ``printed.json``."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec


class WorkedWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The weights of one target in a worked example."""

    interface: str
    """By a name of :data:`~rulescope.learners.disco_config.INTERFACES`."""
    target: float
    weights: dict[int, float]
    """By the index of the atom; those of all other atoms are zero."""


class PrintedReferences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Returns of random and optimal play in one world."""

    random: float
    optimal: float


class PrintedNumbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them."""

    worked_weights: tuple[WorkedWeights, ...]
    bins: dict[str, int]
    """Effective bins of ``one`` one-hot prediction, of ``two`` different ones, of a ``uniform``
    prediction."""
    large_target: float
    """Said to lie outside the linear support and inside the transformed one."""
    references: dict[str, PrintedReferences]
    """By world."""
    tracking_random_rate: float
    parameters: int
    """Values in the released checkpoint of Disco103."""
    coverage: float
    """Of one member of the primary family."""
    tail_draws: float
    """Bootstrap draws beyond each bound of such a member."""
    interactions: dict[str, int]
    """Of all lifetimes of an assay, or of one lifetime or a part of it."""
    counts: dict[str, int]
    """Runs, cells, members of families, log rows, and iterations by depth of the sea."""


@cache
def printed() -> PrintedNumbers:
    """Return the printed numbers."""
    content = (resources.files("rulescope.claims") / "printed.json").read_bytes()
    return msgspec.json.decode(content, type=PrintedNumbers)
