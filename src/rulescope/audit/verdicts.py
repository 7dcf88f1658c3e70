"""What the numbers of a profile say, in one sentence or two for each axis.

A verdict never says more than its intervals: two arms differ if their intervals lie apart, an
effect is there if its interval leaves out zero, and without intervals nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.audit.profile import NULL, RULE, WITHOUT
from rulescope.stats import Estimate

Measures = Mapping[str, Mapping[str, Estimate]]
"""Estimates by the key of a measure, then by column."""

COMPETENT = 0.8
NOTHING = "Not measured."
CALLED = {WITHOUT: "itself without its history", NULL: "its null rule"}
"""Columns as they are called in a sentence, where their own name will not do."""


def competence(found: Measures) -> str:
    """Say how good it becomes, and beside whom."""
    score = found.get("score")
    if score is None:
        return NOTHING
    return _list(
        [f"It {_competent(score[RULE])} on Catch 8×8 ({_shown(score[RULE])})", *_ranks(score)]
    )


def scale(found: Measures) -> str:
    """Say how wide its window is, and what its history does for it."""
    widths = found.get("half-best")
    if widths is None:
        return NOTHING
    said = f"It learns over {widths[RULE].value:.1f} decades of reward scale"
    if WITHOUT in widths and not widths[WITHOUT].missing:
        said += f", over {widths[WITHOUT].value:.1f} with its state pinned"
    more, less = "Its history widens the range", "Its history narrows the range"
    return f"{said}. {_effect(found, 'contrast', more, less)}"


def inheritance(found: Measures) -> str:
    """Say whether a foreign history can be revised."""
    said = []
    for key in (key for key in found if key.startswith("interaction/")):
        more, less = (
            f"A foreign state hurts {how} when it is held than when it may be revised"
            for how in ("more", "less")
        )
        said.append(f"At scale {key.partition('/')[2]}: {_effect(found, key, more, less)}")
    return " ".join(said) or NOTHING


def boundaries(found: Measures) -> str:
    """Say what it loses without ends, told or real."""
    if "told" not in found or "masked" not in found:
        return NOTHING
    order = _order(found["told"][RULE], found["masked"][RULE])
    told: dict[int | None, str] = {
        1: "It does worse when it is not told of episode ends.",
        -1: "It does better when it is not told of episode ends.",
        0: "Whether it is told of episode ends makes no difference that these seeds can show.",
        None: "There are too few seeds to say whether it needs to be told of episode ends.",
    }
    said = told[order]
    if "stream" in found:
        stream = found["stream"][RULE]
        said += f" In a world that never resets it {_competent(stream)} ({_shown(stream)})."
    return said


def change(found: Measures) -> str:
    """Say how it recovers, and beside whom."""
    said = []
    for key in (key for key in found if key.startswith("auc/")):
        after, condition = found[key], key.partition("/")[2]
        parts = [f"After the {condition.replace('-', ' ')} it averages {_shown(after[RULE])}"]
        if f"final/{condition}" in found:
            parts.append(f"ends at {found[f'final/{condition}'][RULE].value:.2f}")
        said.append(_list([*parts, *_ranks(after)]))
    return " ".join(said) or NOTHING


def exploration(found: Measures) -> str:
    """Say whether goals are found, and kept."""
    said = []
    for key in (key for key in found if key.startswith("found/")):
        depth = key.partition("/")[2]
        solved = found.get(f"solved/{depth}", {}).get(RULE)
        kept = "" if solved is None else f", and {_count(solved)} solved it"
        said.append(f"In DeepSea {depth}, {_count(found[key][RULE])} found the goal{kept}.")
    return " ".join(said) or NOTHING


def effects(found: Measures) -> str:
    """Say how many differences can be told from chance, and which."""
    differences = {key: each[RULE] for key, each in found.items() if len(each) == 1}
    if not differences:
        return NOTHING
    clear = [key.replace("/", " ") for key, one in differences.items() if _sign(one)]
    named = f": {', '.join(clear)}" if clear else ""
    return f"{len(clear)} of {len(differences)} differences can be told from chance{named}."


def _competent(one: Estimate) -> str:
    """Return a verb for a score: beyond doubt, in doubt, or not."""
    if not _interval(one):
        return f"reaches {one.value:.2f} in too few seeds for an interval"
    if one.low >= COMPETENT:
        return "becomes competent"
    return "does not become competent" if one.high < COMPETENT else "is competent in some lifetimes"


def _ranks(figures: Mapping[str, Estimate]) -> list[str]:
    """Return how the rule compares with every other column, those alike together."""
    by_order: dict[int | None, list[str]] = {}
    for column, other in figures.items():
        if column != RULE:
            by_order.setdefault(_order(figures[RULE], other), []).append(CALLED.get(column, column))
    words = {1: "better than", 0: "not to be told from", -1: "worse than"}
    return [f"{words[order]} {_and(by_order[order])}" for order in words if order in by_order]


def _order(one: Estimate, other: Estimate) -> int | None:
    """Return 1 or -1 if the interval of ``one`` lies above or below, 0 if not; None without any."""
    if not (_interval(one) and _interval(other)):
        return None
    return (one.low > other.high) - (one.high < other.low)


def _effect(found: Measures, key: str, above: str, below: str) -> str:
    """Return a sentence about a difference, by where its interval lies."""
    one = found.get(key, {}).get(RULE)
    if one is None:
        return "The difference could not be estimated."
    none = "No effect of the history can be told from chance"
    return f"{({1: above, -1: below}).get(_sign(one), none)} ({_shown(one)})."


def _sign(one: Estimate) -> int:
    """Return 1 or -1 if the interval is above or below zero, else 0."""
    return (one.low > 0) - (one.high < 0) if _interval(one) else 0


def _interval(one: Estimate) -> bool:
    """Tell whether there is an interval that says more than which seeds there were."""
    return one.method in ("bootstrap", "wilson") and one.low <= one.high


def _shown(one: Estimate) -> str:
    return (
        f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]" if _interval(one) else f"{one.value:.2f}"
    )


def _count(one: Estimate) -> str:
    """Return a share as a count.

    >>> _count(Estimate(2 / 3, 0.2, 0.9, n=3, method="wilson"))
    '2 of 3'
    """
    return f"{round(one.value * one.n)} of {one.n}"


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _list(parts: list[str]) -> str:
    return ", ".join(parts) + "."
