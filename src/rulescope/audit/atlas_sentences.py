"""What an atlas says, in a few sentences that claim no more than the intervals support.

A rule is competent where its interval lies at or above 0.8, and not competent where it lies below.
One rule is ranked above another where the interval of their difference within seeds excludes zero.
From fewer than :data:`LEAST_SEEDS` seeds nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence

from rulescope.audit.atlas_rows import SCORE, Atlas, AtlasRow, AtlasRule, AxisWorth
from rulescope.audit.axis_sentences import enumerate_names, judged, sign
from rulescope.audit.history_answer import LEAST_SEEDS, TOO_FEW, with_interval
from rulescope.audit.profile import Verdict
from rulescope.stats import COMPETENT

COMPETENCE = ("score", "long", "best", "masked", "natural", "stream")
"""Keys of the measures that tell where a rule is competent."""
RANKED = ("score", "decades", "rate", "return")
"""Units of the measures that rules are ranked by."""
NAMED = 3
"""Differences of one rule that a sentence names; the others are counted."""
HISTORIES: dict[Verdict, str] = {
    "asset": "The history is an asset for",
    "burden": "The history is a burden for",
    "both": "The history is an asset at some places and a burden at others for",
    "neither": "No effect of the history, wherever an arm is competent, for",
    "undecided": "What the history does is undecided for",
    "no history": "Without a history that could be an asset or a burden:",
}
"""How a sentence about rules with this answer begins."""


def describe(atlas: Atlas) -> tuple[str, ...]:
    """Return the sentences: histories, competence, ranks, and what is not comparable."""
    return (*_histories(atlas), *_competence(atlas), *_ranks(atlas), *_budgets(atlas))


def _histories(atlas: Atlas) -> list[str]:
    sentences = []
    for verdict, beginning in HISTORIES.items():
        found = [rule for rule in atlas.rules if rule.verdict == verdict]
        if found:
            sentences.append(
                f"{beginning} {enumerate_names([_with_axes(rule) for rule in found])}."
            )
    return sentences


def _with_axes(rule: AtlasRule) -> str:
    """Return a rule with the axes that decide its answer, or the reason why none does."""
    label = f"{rule.label} in {rule.world}" if _unnamed_world(rule) else rule.label
    if rule.verdict in ("asset", "burden", "both"):
        wanted = ("asset", "burden", "both")
        parts = [
            f"{_at(axis, one)}{'' if one.verdict == rule.verdict else f', {one.verdict}'}: "
            f"{'' if one.worth is None else with_interval(one.worth, one.digits)}{_opposite(one)}"
            for axis, one in rule.axes.items()
            if one.verdict in wanted
        ]
        return f"{label} ({'; '.join(parts)})"
    if rule.verdict == "undecided":
        reasons = dict.fromkeys(one.reason for one in rule.axes.values() if one.reason)
        return f"{label} ({'; '.join(reasons)})" if reasons else label
    return label


def _unnamed_world(rule: AtlasRule) -> bool:
    """Return whether the rule was audited in a world that its label does not name."""
    return bool(rule.world) and rule.world not in rule.label


def _opposite(one: AxisWorth) -> str:
    """Return the place that shows most of the other direction, where the history is both."""
    if one.opposite is None:
        return ""
    where = f"{one.opposite_place}: " if one.opposite_place else ""
    return f", {where}{with_interval(one.opposite, one.digits)}"


def _at(axis: str, one: AxisWorth) -> str:
    return " ".join(filter(None, (axis, one.place)))


def _competence(atlas: Atlas) -> list[str]:
    """Say at which places which rules are competent."""
    rows = [row for row in atlas.rows if row.key in COMPETENCE and row.unit == SCORE]
    known = [row for row in rows if judged(row.value)]
    if rows and not known:
        return [_too_few("competence", rows)]
    sentences = []
    for kind in dict.fromkeys((row.line, row.budget) for row in known):
        found = [row for row in known if (row.line, row.budget) == kind]
        budgets = {row.budget for row in known if row.line == kind[0]}
        length = f" ({kind[1] or 'budget unknown'})" if len(budgets) > 1 else ""
        groups: dict[str, list[str]] = {}
        for row in found:
            groups.setdefault(_level(row), []).append(row.rule)
        levels = ("competent", "not competent", "undecided", "competent in part of the lifetimes")
        parts = [f"{name}: {', '.join(groups[name])}" for name in levels if name in groups]
        sentences.append(f"{found[0].title}{length}: {'; '.join(parts)}.")
    return sentences


def _level(row: AtlasRow) -> str:
    """Return what the interval of a score says about competence."""
    if row.value.groups is not None and row.value.groups.high >= COMPETENT:
        return "competent in part of the lifetimes"
    if (row.value.low or 0.0) >= COMPETENT:
        return "competent"
    return "not competent" if (row.value.high or 0.0) < COMPETENT else "undecided"


def _ranks(atlas: Atlas) -> list[str]:
    """Say which rules differ from the reference, and where."""
    rows = [row for row in atlas.rows if row.difference is not None and _ranked(row)]
    known = [row for row in rows if row.difference is not None and judged(row.difference)]
    if rows and not known:
        return [_too_few("differences between rules", rows)]
    sentences = []
    for rule in dict.fromkeys(row.rule for row in known):
        own = [row for row in known if row.rule == rule]
        parts = [
            f"{word} in {_listed(found)}"
            for word, direction in (("higher", 1), ("lower", -1))
            if (found := [row for row in own if _direction(row) == direction])
        ]
        same = sum(_direction(row) == 0 for row in own)
        if same:
            parts.append(
                f"no difference detected in {same} of {len(own)} (the interval includes 0)"
            )
        sentences.append(f"{rule} against {atlas.reference}, within seeds: {'; '.join(parts)}.")
    return sentences


def _ranked(row: AtlasRow) -> bool:
    return row.unit in RANKED and not row.is_difference


def _direction(row: AtlasRow) -> int:
    return 0 if row.difference is None else sign(row.difference)


def _listed(rows: Sequence[AtlasRow]) -> str:
    """Return the first differences of some rows with their intervals, and the number of others."""
    shown = [
        f"{row.title} ({with_interval(row.difference, row.digits)})"
        for row in rows[:NAMED]
        if row.difference is not None
    ]
    more = len(rows) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _budgets(atlas: Atlas) -> list[str]:
    """Say which rules were run with another budget than the reference."""
    return [
        f"{rule.label} was run with another budget than {atlas.reference} in "
        f"{enumerate_names(rule.other_budgets)}: not compared there."
        for rule in atlas.rules
        if rule.other_budgets
    ]


def _too_few(what: str, rows: Sequence[AtlasRow]) -> str:
    most = max(row.value.n for row in rows)
    return f"No claim about {what}: {TOO_FEW} ({most}, {LEAST_SEEDS} are needed)."
