"""What the numbers of a profile say, in one sentence or two for each axis.

A sentence claims no more than its intervals: two columns differ if the interval of their
difference, paired by seed, leaves out zero, and from fewer than ``LEAST_SEEDS`` seeds no difference
is claimed. Competence comes before attribution: where the arms in question are not competent (a
score of 0.8), the sentence says so instead of speaking of windows or histories.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from rulescope.audit.history_answer import (
    LEAST_SEEDS,
    MARGIN,
    TOO_FEW,
    TOO_WIDE,
    competent,
    describe_groups,
    judge,
    number,
    with_interval,
)
from rulescope.audit.profile import (
    FROZEN,
    NULL,
    PINNED,
    REPORTED_ENDS,
    RULE,
    Measure,
    ProfileValue,
    Scales,
)
from rulescope.stats import COMPETENT
from rulescope.stats.agreement import least_seeds

Measures = Mapping[str, Measure]
"""The lines of an axis by their key."""

NOTHING = "Not measured."
RAW = (
    "In raw units: the world has no upper reference, so nothing counts as competent "
    "(--reference-best states one)."
)
CALLED = {
    PINNED: "itself with its state pinned",
    NULL: "its null rule",
    "DQN, small replay": "DQN with a small replay",
    "DQN, replay cleared": "DQN with its replay cleared",
}
"""Columns as they are called in a sentence, where their own name will not do."""
PLANNED = {"DQN": "100k", "DQN, small replay": "28672", "DQN, replay cleared": "cleared"}
"""Columns of which the difference in recovery is planned, and the replay of each."""
ORDERS = (
    "better than",
    "indistinguishable from",
    "no effect relative to",
    "undecided relative to",
    "worse than",
)
"""How the rule may compare with a column. The third and fourth are about the rule without its
history alone, for which a difference within the margin is no effect."""


def competence(found: Measures, small: str = "Catch 8×8") -> str:
    """Say how good it becomes, in the world ``small`` too, and beside which other columns."""
    sentences = []
    for key, world in (("score", small), ("long", "Catch 24×24")):
        if key in found:
            score = found[key]
            reached = f"It {_competent(score.figures[RULE], f' on {world}')}"
            sentences.append(_list([reached, *_ranks(score, score.figures)]))
    return " ".join(sentences) or NOTHING


def scale(found: Measures) -> str:
    """Say where its window is, and what its history does for it."""
    best, fixed = found.get("best"), found.get("0.8")
    if best is None or fixed is None:
        return NOTHING
    arms = {column: best.figures[column] for column in (RULE, PINNED) if column in best.figures}
    if not any(map(competent, arms.values())):
        names = {RULE: "it", PINNED: "pinned"}
        text = " and ".join(f"{names[column]} {_level(one)}" for column, one in arms.items())
        history = ", and nothing is attributed to its history" if PINNED in arms else ""
        return (
            f"It is competent at no reward scale (best score: {text}; {COMPETENT:g} is competent), "
            f"so it has no window{history}."
        )
    text = f"It is competent (score ≥ {COMPETENT:g}) {_where(fixed, RULE)}"
    if PINNED in fixed.figures:
        text += f", and {_where(fixed, PINNED)} with its state pinned"
    attributed = _attributed(found, arms)
    text += f". {attributed}" if attributed else "."
    half = found.get("half-best")
    if half is not None:
        text += f" It keeps half of its best score ({_level(best.figures[RULE])}) "
        text += _where(half, RULE)
        text += f", pinned {_where(half, PINNED)}." if PINNED in half.figures else "."
    return text


def _attributed(found: Measures, arms: Mapping[str, ProfileValue]) -> str:
    """Say what the history does for the range, by scores where a width of 0 would hide it.

    An arm that is competent at one scale and an arm that is competent at none have equal widths.
    """
    if PINNED not in arms:
        return ""
    whole = found["best"].differences.get(PINNED)
    with_it, without = (competent(arms[column]) for column in (RULE, PINNED))
    if whole is None or with_it == without:
        return _widening(found)
    result, reason = judge(with_it, without, whole)
    if result in ("asset", "burden"):
        how = "with" if with_it else "without"
        return f"It is competent only {how} its history ({with_interval(whole)})."
    if reason == TOO_FEW:
        return _too_few([whole], "an effect of the history on the best score")
    if result == "no effect" or abs(whole.value or 0.0) < MARGIN:
        return (
            f"Both arms lie at the threshold (best score {_level(arms[RULE])}, pinned "
            f"{_level(arms[PINNED])}; difference {with_interval(whole)}), so nothing is attributed "
            "to its history."
        )
    numbers = with_interval(whole)
    return f"An effect of the history on the best score is undecided: {reason} ({numbers})."


def _widening(found: Measures) -> str:
    """Say what the history does to the width; empty without a difference of widths.

    An interval of a difference of widths is that of the bootstrap alone, which says nothing below
    the seeds that its family needs.
    """
    if "contrast/0.8" not in found:
        return ""
    cause = "the history on the width of this range"
    one = found["contrast/0.8"].figures[RULE]
    needed = max(LEAST_SEEDS, least_seeds(one.family))
    if one.n < needed:
        return _too_few([one], f"an effect of {cause}", needed)
    more, less = "Its history widens this range", "Its history narrows this range"
    return _effect(found, "contrast/0.8", more, less, cause)


def inheritance(found: Measures) -> str:
    """Say whether a state from another reward scale can be revised."""
    sentences = []
    for key in (key for key in found if key.startswith("interaction/")):
        at = key.partition("/")[2]
        failed = _incompetent_matches(found, at)
        if failed:
            sentences.append(
                f"At scale {at}: {enumerate_names(failed)} "
                f"{'is' if len(failed) == 1 else 'are'} not competent (score ≥ {COMPETENT:g}), so "
                "nothing is attributed to the state."
            )
            continue
        more, less = (
            f"A state from the reciprocal scale hurts {how} when it is held than when the learner "
            "may revise it"
            for how in ("more", "less")
        )
        effect = _effect(found, key, more, less, "holding a state from the reciprocal scale")
        sentences.append(f"At scale {at}: {effect}")
    return " ".join(sentences) or NOTHING


def _incompetent_matches(found: Measures, at: str) -> list[str]:
    """Return which arms with a donor of the same scale are not competent, in words.

    The harm of the reciprocal donor is measured from these two, held and not held.
    """
    words = {
        "match-natural": "the arm that starts from a donor of its scale",
        "match-clamp": "the arm held at a donor of its scale",
    }
    arms = {arm: found.get(f"{arm}/{at}") for arm in words}
    scores = {arm: None if one is None else one.figures[RULE] for arm, one in arms.items()}
    return [
        f"{words[arm]} ({'not measured' if one is None else _level(one)})"
        for arm, one in scores.items()
        if one is None or not competent(one)
    ]


def boundaries(found: Measures) -> str:
    """Say what it loses without ends, reported or real."""
    sentences = [_reported_ends(found)] if {REPORTED_ENDS, "masked"} <= set(found) else []
    worlds = {"natural": "Tracking, which has no ends,", "stream": "a world that never resets"}
    sentences += [
        f"In {world} it {_competent(found[key].figures[RULE])}."
        for key, world in worlds.items()
        if key in found
    ]
    return " ".join(sentences) or NOTHING


def _reported_ends(found: Measures) -> str:
    """Say what reports of episode ends do."""
    arms = [found[key].figures[RULE] for key in (REPORTED_ENDS, "masked")]
    if any(map(competent, arms)):
        return _effect(
            found,
            "ends",
            "It does worse when episode ends are not reported",
            "It does better when episode ends are not reported",
            "reported episode ends",
        )
    return (
        f"It is not competent (score ≥ {COMPETENT:g}) with reported episode ends "
        f"({_level(arms[0])}) or without ({_level(arms[1])}), so no effect of them is judged."
    )


def change(found: Measures) -> str:
    """Say how it recovers, and beside which other columns."""
    sentences = []
    for key in (key for key in found if key.startswith("auc/")):
        condition = key.partition("/")[2]
        after = _with_planned(found[key], found, condition)
        words, before = condition.replace("-", " "), found.get(f"pre/{condition}")
        gates = None if before is None else before.figures
        parts = [f"After the {words} it averages {_summary(after.figures[RULE])}"]
        if gates is not None and not competent(gates[RULE]):
            dead = f"Before the {words} it is not competent ({_summary(gates[RULE])}; "
            dead += f"{COMPETENT:g} is competent)"
            frozen = [name for name in gates if name.startswith(FROZEN) and competent(gates[name])]
            if not frozen:
                sentences.append(f"{dead}, so its recovery is not judged.")
                continue
            sentences.append(
                f"{dead}; with its state {frozen[0]} it is ({_summary(gates[frozen[0]])})."
            )
            # Only this difference is judged: it tells whether the history is a burden.
            own = {name: one for name, one in after.differences.items() if name in frozen}
            after = replace(after, differences=own)
        elif f"final/{condition}" in found:
            parts.append(f"ends at {_level(found[f'final/{condition}'].figures[RULE])}")
        sentences.append(_list([*parts, *_ranks(after, gates)]))
    return " ".join(sentences) or NOTHING


def _with_planned(after: Measure, found: Measures, condition: str) -> Measure:
    """Return ``after`` with the planned differences, whose error is that of their family.

    They are printed below, so a sentence by narrower intervals would contradict them.
    """
    planned = {
        column: found[f"{replay}/{condition}"].figures[RULE]
        for column, replay in PLANNED.items()
        if column in after.differences and f"{replay}/{condition}" in found
    }
    return replace(after, differences={**after.differences, **planned})


def exploration(found: Measures) -> str:
    """Say whether goals are found, and kept."""
    sentences = []
    for key in (key for key in found if key.startswith("found/")):
        depth = key.partition("/")[2]
        solved = found.get(f"solved/{depth}")
        kept = "" if solved is None else f", and {_count(solved.figures[RULE])} solved it"
        logged = f"{_count(found[key].figures[RULE])} have the goal in the log"
        sentences.append(f"In DeepSea {depth}, {logged}{kept}.")
    return " ".join(sentences) or NOTHING


def effects(found: Measures, titles: Mapping[str, str]) -> str:
    """Say how many of the differences in ``titles`` leave out zero, and which."""
    differences = {key: found[key].figures[RULE] for key in titles if key in found}
    if not differences:
        return NOTHING
    if not any(map(judged, differences.values())):
        return _too_few(differences.values(), "any difference")
    clear = [
        f"{titles[key]} {with_interval(one, 4)}" for key, one in differences.items() if sign(one)
    ]
    named = f": {'; '.join(clear)}" if clear else ""
    return f"{len(clear)} of {len(differences)} differences have an interval without 0{named}."


def span(window: Scales) -> str:
    """Return the class of a window and its ends in words.

    >>> span(Scales("interval", 0.1, 100.0)), span(Scales("singleton", 1.0, 1.0))
    ('from 0.1 to 100', 'at 1 alone')
    """
    if window.kind == "none" or window.low is None or window.high is None:
        return "at no scale"
    if window.kind == "singleton":
        return f"at {window.low:g} alone"
    return f"from {window.low:g} to {window.high:g}"


def _where(measure: Measure, column: str) -> str:
    """Return where a column's window is, and how many decades that are, with their interval."""
    found = measure.figures[column]
    if found.window is None:
        return f"over {_decades(found)} of reward scale"
    where = span(found.window)
    if found.window.kind == "none" and not found.high:
        return where
    return f"{where} ({_decades(found)})"


def _decades(width: ProfileValue) -> str:
    """Return a width with its interval, or with its seeds where they are too few for one.

    >>> _decades(ProfileValue(2.0, 1.0, 3.0, 8, "bootstrap"))
    '2.0 [1.0, 3.0] decades'
    >>> _decades(ProfileValue(2.0, None, None, 1, "none"))
    '2.0 decades, 1 seed'
    """
    if width.method == "bootstrap":
        return f"{with_interval(width, 1)} decades"
    return f"{_number(width, 1)} decades, {width.n} seed{'' if width.n == 1 else 's'}"


def _competent(one: ProfileValue, where: str = "") -> str:
    """Return a predicate for a score: beyond doubt, in doubt, or not; or of two groups."""
    if one.groups is not None:
        return f"learns in part of its lifetimes{where}: {describe_groups(one.groups)}"
    if one.low is None or one.high is None or one.method == "range":
        return f"reaches {_number(one)}{where}, in too few seeds for an interval"
    if one.low >= COMPETENT:
        text = "becomes competent"
    elif one.high < COMPETENT:
        text = "does not become competent"
    else:
        text = "may or may not become competent"
    return f"{text}{where} ({with_interval(one)})"


def _ranks(measure: Measure, gates: Mapping[str, ProfileValue] | None) -> list[str]:
    """Return how the rule compares with every other column, those alike together.

    The same rule without its history is judged by the rules of the answer, with ``gates`` as the
    scores of competence (None if unknown), and left out where neither of the two is competent.
    """
    by_order: dict[str, list[str]] = {}
    for column, difference in measure.differences.items():
        order = _order(column, difference, gates) if judged(difference) else ""
        if order:
            by_order.setdefault(order, []).append(_called(column))
    phrases = [
        f"{order} {enumerate_names(by_order[order])}" for order in ORDERS if order in by_order
    ]
    if measure.differences and not any(map(judged, measure.differences.values())):
        few = max(one.n for one in measure.differences.values())
        phrases.append(f"with too few seeds for comparisons ({few}, {LEAST_SEEDS} are needed)")
    return phrases


def _order(column: str, difference: ProfileValue, gates: Mapping[str, ProfileValue] | None) -> str:
    """Return how the rule compares with one column, one of :data:`ORDERS`; empty if not at all."""
    better, same, no_effect, undecided, worse = ORDERS
    if column != PINNED and not column.startswith(FROZEN):
        return (worse, same, better)[sign(difference) + 1]
    live, other = (
        gates is None or (name in gates and competent(gates[name])) for name in (RULE, column)
    )
    if not (live or other):
        return ""
    result, reason = judge(live, other, difference)
    if reason == TOO_WIDE and not sign(difference):
        return same
    return {"asset": better, "burden": worse, "no effect": no_effect}.get(result, undecided)


def _called(column: str) -> str:
    if column.startswith(FROZEN):
        return f"itself with its state {column}"
    return CALLED.get(column, column)


def _effect(found: Measures, key: str, above: str, below: str, cause: str) -> str:
    """Return a sentence about a difference that is due to ``cause``, by where its interval lies."""
    one = found[key].figures[RULE] if key in found else None
    if one is not None and judged(one) and found[key].unit == "score" and _negligible(one):
        return f"No effect of {cause}: the interval lies within ±{MARGIN:g} ({with_interval(one)})."
    return _sentence(one, above, below, cause)


def _sentence(one: ProfileValue | None, above: str, below: str, cause: str) -> str:
    """Return a sentence about a difference by where its interval lies."""
    if one is None or one.value is None:
        return "The difference could not be estimated."
    if not judged(one):
        return _too_few([one], f"an effect of {cause}")
    none = f"No effect of {cause} was detected: the interval includes 0"
    return f"{({1: above, -1: below}).get(sign(one), none)} ({with_interval(one)})."


def _negligible(one: ProfileValue) -> bool:
    """Tell whether an interval of a difference in score lies within the margin."""
    return one.low is not None and one.high is not None and -MARGIN < one.low <= one.high < MARGIN


def _too_few(figures: Iterable[ProfileValue], what: str, needed: int = LEAST_SEEDS) -> str:
    """Return that there are too few seeds to judge something."""
    n = max(one.n for one in figures)
    return f"There are too few seeds to judge {what} ({n}, {needed} are needed)."


def sign(one: ProfileValue) -> int:
    """Return 1 or -1 if the interval is above or below zero, else 0."""
    if not judged(one) or one.low is None or one.high is None:
        return 0
    return (one.low > 0) - (one.high < 0)


def judged(one: ProfileValue) -> bool:
    """Tell whether there is an interval, of enough seeds for a claim."""
    known = one.method in ("bootstrap", "wilson") and None not in (one.low, one.high)
    return known and one.n >= LEAST_SEEDS


def _summary(one: ProfileValue) -> str:
    """Return a score with its interval, or its two groups."""
    return (
        with_interval(one)
        if one.groups is None
        else f"{_number(one)} ({describe_groups(one.groups)})"
    )


def _level(one: ProfileValue) -> str:
    """Return a score without its interval, with its two groups if it has them."""
    return _number(one) if one.groups is None else f"{_number(one)}: {describe_groups(one.groups)}"


def _number(one: ProfileValue, digits: int = 2) -> str:
    return number(one.value, digits)


def _count(one: ProfileValue) -> str:
    """Return a share as a count.

    >>> _count(ProfileValue(2 / 3, 0.2, 0.9, 3, "wilson"))
    '2 of 3'
    """
    return f"{round((one.value or 0.0) * one.n)} of {one.n}"


def enumerate_names(names: Sequence[str]) -> str:
    """Return names in words: ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _list(parts: list[str]) -> str:
    return ", ".join(parts) + "."
