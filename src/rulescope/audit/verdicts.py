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
CALLED = {
    WITHOUT: "itself without its history",
    NULL: "its null rule",
    "DQN, small replay": "DQN with a small replay",
    "DQN, replay cleared": "DQN with its replay cleared",
}
"""Columns as they are called in a sentence, where their own name will not do."""


def competence(found: Measures) -> str:
    """Say how good it becomes, and beside whom."""
    score = found.get("score")
    if score is None:
        return NOTHING
    return _list([f"It {_competent(score[RULE], ' on Catch 8×8')}", *_ranks(score)])


def scale(found: Measures) -> str:
    """Say how wide its window is, and what its history does for it."""
    widths = found.get("half-best")
    if widths is None:
        return NOTHING
    best = found.get("best", {}).get(RULE)
    if best is None or best.missing:
        return "It scores above random play at no reward scale, so there is no range to speak of."
    said = (
        f"It keeps at least half of its best score ({best.value:.2f}) over "
        f"{widths[RULE].value:.1f} decades of reward scale"
    )
    if WITHOUT in widths and not widths[WITHOUT].missing:
        said += f", over {widths[WITHOUT].value:.1f} with its state pinned"
    more, less = "Its history widens the range", "Its history narrows the range"
    return f"{said}. {_effect(found, 'contrast', more, less, 'the history')}"


def inheritance(found: Measures) -> str:
    """Say whether a foreign history can be revised."""
    said = []
    for key in (key for key in found if key.startswith("interaction/")):
        more, less = (
            f"A state from the reciprocal scale hurts {how} when it is held than when the learner "
            "may revise it"
            for how in ("more", "less")
        )
        told = _effect(found, key, more, less, "holding a state from the reciprocal scale")
        said.append(f"At scale {key.partition('/')[2]}: {told}")
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
        said += f" In a world that never resets it {_competent(stream)}."
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


def effects(found: Measures, titles: Mapping[str, str]) -> str:
    """Say how many of the differences in ``titles`` can be told from chance, and which."""
    differences = {key: found[key][RULE] for key in titles if key in found}
    if not differences:
        return NOTHING
    if not any(map(_interval, differences.values())):
        return "There are too few seeds to tell any difference from chance."
    clear = [f"{titles[key]} {_shown(one, 4)}" for key, one in differences.items() if _sign(one)]
    named = f": {'; '.join(clear)}" if clear else ""
    return f"{len(clear)} of {len(differences)} differences can be told from chance{named}."


def _competent(one: Estimate, where: str = "") -> str:
    """Return a predicate for a score: beyond doubt, in doubt, or not."""
    if not _interval(one):
        return f"reaches {one.value:.2f}{where}, in too few seeds for an interval"
    if one.low >= COMPETENT:
        said = "becomes competent"
    elif one.high < COMPETENT:
        said = "does not become competent"
    else:
        said = "may or may not become competent"
    return f"{said}{where} ({_shown(one)})"


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


def _effect(found: Measures, key: str, above: str, below: str, cause: str) -> str:
    """Return a sentence about a difference that is due to ``cause``, by where its interval lies."""
    one = found.get(key, {}).get(RULE)
    if one is None:
        return "The difference could not be estimated."
    if not _interval(one):
        return f"There are too few seeds to tell an effect of {cause} from chance ({_shown(one)})."
    none = f"No effect of {cause} can be told from chance"
    return f"{({1: above, -1: below}).get(_sign(one), none)} ({_shown(one)})."


def _sign(one: Estimate) -> int:
    """Return 1 or -1 if the interval is above or below zero, else 0."""
    return (one.low > 0) - (one.high < 0) if _interval(one) else 0


def _interval(one: Estimate) -> bool:
    """Tell whether there is an interval that says more than which seeds there were."""
    return one.method in ("bootstrap", "wilson") and one.low <= one.high


def _shown(one: Estimate, digits: int = 2) -> str:
    ends = (one.value, one.low, one.high)
    value, low, high = (f"{each:.{digits}f}".replace("-", "−") for each in ends)
    return f"{value} [{low}, {high}]" if _interval(one) else value


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
