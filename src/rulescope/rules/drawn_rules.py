"""Names of LPG and LPO rules whose weights are drawn from a seed, and these weights.

``lpg-random:0`` and ``lpo-random:0`` have the sizes of the public implementations, and
``ta-lpg-random:0`` is the temporally-aware one. Other sizes stand before the colon:
``lpg-random-8-16-32:0`` (predictions, embedding, hidden), ``lpo-random-64:0`` (hidden).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rulescope.core.arrays import Arrays
from rulescope.core.errors import WeightsError, nearest
from rulescope.rules import lpg_format, lpo_format
from rulescope.rules.lpg_format import LIFETIME_INPUTS, STEP_INPUTS, LpgSizes
from rulescope.rules.lpo_format import LpoSizes

RANDOM = "-random"
DRAWN: dict[str, LpgSizes | LpoSizes] = {
    f"lpg{RANDOM}": LpgSizes(),
    f"ta-lpg{RANDOM}": LpgSizes(inputs=STEP_INPUTS + LIFETIME_INPUTS),
    f"lpo{RANDOM}": LpoSizes(),
}
"""Names before any sizes, and the sizes where none are named."""


def is_drawn(name: str) -> bool:
    """Return whether ``name`` names an LPG or LPO rule with random weights.

    >>> is_drawn("lpg-random:0"), is_drawn("lpo-random-64:1"), is_drawn("open-random:0")
    (True, True, False)
    """
    kind, colon, _ = name.partition(":")
    return bool(colon) and _family(kind) in DRAWN


def draw(name: str, seed: int) -> dict[str, NDArray[np.float32]]:
    """Return the weights of the drawn rule called ``name``, with this ``seed``."""
    sizes = read_sizes(name)
    if isinstance(sizes, LpgSizes):
        return lpg_format.draw(sizes, seed)
    return lpo_format.draw(sizes, seed)


def name_drawn(sizes: LpgSizes | LpoSizes, seed: int = 0) -> str:
    """Return the name of a rule of these ``sizes`` with random weights.

    >>> name_drawn(LpgSizes()), name_drawn(LpgSizes(8, 16, 32, 7)), name_drawn(LpoSizes(64), 1)
    ('lpg-random:0', 'ta-lpg-random-8-16-32:0', 'lpo-random-64:1')
    """
    if sizes in DRAWN.values():
        family = next(name for name, each in DRAWN.items() if each == sizes)
        return f"{family}:{seed}"
    aware = isinstance(sizes, LpgSizes) and sizes.aware
    named = sizes[:3]  # the number of inputs follows from the family
    family = "lpo" if isinstance(sizes, LpoSizes) else "ta-lpg" if aware else "lpg"
    return f"{family}{RANDOM}-{'-'.join(map(str, named))}:{seed}"


def sizes_of(arrays: Arrays) -> LpgSizes | LpoSizes | None:
    """Return the sizes of an LPG or LPO rule, or None if ``arrays`` are another kind of rule."""
    first = next(iter(arrays), "")
    if first.startswith(lpg_format.PREFIX):
        return lpg_format.sizes_of(arrays)
    return lpo_format.sizes_of(arrays) if first.startswith(lpo_format.PREFIX) else None


def _family(kind: str) -> str:
    first, found, _ = kind.partition(RANDOM)
    return first + found


def read_sizes(name: str) -> LpgSizes | LpoSizes:
    """Return the sizes of the drawn rule called ``name``."""
    kind = name.partition(":")[0]
    family = _family(kind)
    if family not in DRAWN:
        raise WeightsError(f"no rule is called {name!r}{nearest(family, DRAWN)}")
    usual, text = DRAWN[family], kind.removeprefix(family).removeprefix("-")
    if not text:
        if kind != family:
            raise WeightsError(f"{name!r}: no sizes after the dash")
        return usual
    numbers = text.split("-")
    sizes = [int(each) for each in numbers if each.isascii() and each.isdigit() and len(each) < 5]
    named = 3 if isinstance(usual, LpgSizes) else 1
    least = 2 if isinstance(usual, LpgSizes) else 1  # of predictions, which come first
    if len(numbers) != named or len(sizes) != named or sizes[0] < least or not all(sizes):
        example = f"{family}-8-16-32:0" if named == 3 else f"{family}-64:0"
        raise WeightsError(
            f"{name!r}: {named} sizes up to 9999 are needed (or none), such as {example}"
        )
    if isinstance(usual, LpoSizes):
        return LpoSizes(hidden=sizes[0])
    return LpgSizes(sizes[0], sizes[1], sizes[2], usual.inputs)
