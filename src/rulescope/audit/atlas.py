"""From the profiles of several rules to their atlas. See docs/atlas.md.

Values of different rules are compared within seeds: every rule of an audit runs with the seeds 0,
1, ..., and an equal seed means equal worlds. They are compared only where both were run with one
budget; a row with another budget is shown and marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import numpy as np
from msgspec.structs import replace

from rulescope.assays.frame import Floats
from rulescope.audit import atlas_sentences
from rulescope.audit.atlas_rows import (
    ABSENT,
    IS_REFERENCE,
    NO_COMMON_SEED,
    NOT_BY_SEED,
    OTHER_BUDGET,
    OTHER_UNIT,
    UNKNOWN_BUDGET,
    Atlas,
    AtlasRow,
    AtlasRule,
    AxisWorth,
)
from rulescope.audit.evidence import RAW_UNIT
from rulescope.audit.history_answer import combine, nearest_to_decision
from rulescope.audit.profile import PINNED, RULE, Axis, Comparison, Measure, Profile, ProfileValue
from rulescope.core.errors import SpecError, nearest
from rulescope.stats import paired_estimate

USUAL_REFERENCE = "a2c"
"""The rule that others are compared with, if it is among them; else the first."""
OLD = (
    "{}: the profile was written by an earlier version, without budgets and values by seed; "
    "the same `rulescope audit`, repeated, adds them"
)


def make_atlas(profiles: Mapping[str, Profile], reference: str | None = None) -> Atlas:
    """Return the atlas of ``profiles``, given by folder, compared with the rule ``reference``.

    ``reference`` is the label of a rule or, if that is unique, its name.
    """
    labels = label_profiles(profiles)
    chosen = find_reference(labels, profiles, reference)
    rows = [row for folder, one in profiles.items() for row in rows_of(one, labels[folder])]
    compared = compare_rows(in_order(rows), chosen)
    rules = [_rule(labels[folder], folder, one, compared) for folder, one in profiles.items()]
    notes = [OLD.format(labels[folder]) for folder, one in profiles.items() if not one.budgets]
    made = Atlas(chosen, tuple(rules), tuple(compared), notes=tuple(notes))
    return replace(made, sentences=atlas_sentences.describe(made))


def label_profiles(profiles: Mapping[str, Profile]) -> dict[str, str]:
    """Return a name for each profile, by folder: the rule's, longer where several have it."""
    names: dict[str, tuple[str, ...]] = {
        folder: (
            one.rule,
            f"{one.rule} ({one.preset})",
            f"{one.rule} ({one.preset}{f', in {one.world}' if one.world else ''})",
            f"{one.rule} ({folder})",
        )
        for folder, one in profiles.items()
    }

    def shared(name: str, length: int) -> bool:
        return [each[length] for each in names.values()].count(name) > 1

    return {
        folder: next((name for i, name in enumerate(each) if not shared(name, i)), each[-1])
        for folder, each in names.items()
    }


def find_reference(
    labels: Mapping[str, str], profiles: Mapping[str, Profile], wanted: str | None
) -> str:
    """Return the label of the rule that others are compared with."""
    by_name = {
        name: [label for folder, label in labels.items() if name in (label, profiles[folder].rule)]
        for name in dict.fromkeys([*labels.values(), *(one.rule for one in profiles.values())])
    }
    if wanted is None:
        found = by_name.get(USUAL_REFERENCE, [])
        return found[0] if found else next(iter(labels.values()))
    if wanted not in by_name:
        raise SpecError(f"--reference: no profile of {wanted!r}{nearest(wanted, by_name)}")
    if len(by_name[wanted]) > 1:
        raise SpecError(
            f"--reference: several profiles of {wanted!r}: name one of "
            f"{', '.join(repr(label) for label in by_name[wanted])}"
        )
    return by_name[wanted][0]


def rows_of(profile: Profile, label: str) -> Iterator[AtlasRow]:
    """Yield the rows of one rule, not yet compared with others."""
    comparisons = () if profile.answer is None else profile.answer.comparisons
    by_measure = {one.measure: one for one in comparisons if one.measure}
    worths = axis_worths(comparisons)
    keys = set()
    for axis in profile.axes:
        for measure in (*axis.measures, *axis.further):
            keys.add(measure.key)
            yield _measure_row(profile, label, axis, measure, by_measure.get(measure.key), worths)
    for one in comparisons:
        if one.measure not in keys:
            yield _place_row(profile, label, one, worths)


def _axis_name(one: Comparison, profile: Profile) -> str:
    """Return the axis of the profile that a comparison belongs to: ``streams`` are one's start."""
    names = [axis.name for axis in profile.axes]
    return next((name for name in names if name.lower().startswith(one.axis)), one.axis)


def _measure_row(
    profile: Profile,
    label: str,
    axis: Axis,
    measure: Measure,
    asked: Comparison | None,
    worths: Mapping[str, AxisWorth],
) -> AtlasRow:
    """Return the row of a line of a profile; ``asked`` is the comparison of its history."""
    row = AtlasRow(
        label,
        axis.name,
        measure.key,
        measure.title,
        measure.unit,
        measure.source,
        measure.digits,
        measure.difference,
        profile.budgets.get(measure.source, ""),
        measure.figures[RULE],
        world=profile.world,
    )
    if asked is not None:
        without = measure.figures.get(asked.against)
        return replace(row, without=without, **_history(asked, worths))
    own = next((one for name, one in worths.items() if axis.name.lower().startswith(name)), None)
    return replace(
        row,
        without=measure.figures.get(PINNED),
        against=PINNED if PINNED in measure.figures else "",
        worth=measure.differences.get(PINNED),
        verdict=None if own is None else own.verdict,
    )


def _place_row(
    profile: Profile, label: str, one: Comparison, worths: Mapping[str, AxisWorth]
) -> AtlasRow:
    """Return the row of a comparison that has no line in the profile, as of OPEN's scales."""
    what = "Score" if one.unit in ("score", RAW_UNIT) else "Reward"
    row = AtlasRow(
        label,
        _axis_name(one, profile),
        f"history/{one.axis}/{one.place}",
        f"{what}, {' '.join(filter(None, (one.axis, one.place)))}",
        one.unit,
        one.source,
        one.digits,
        False,
        profile.budgets.get(one.source, ""),
        one.live,
        world=profile.world,
    )
    return replace(row, without=one.other, **_history(one, worths))


def _history(one: Comparison, worths: Mapping[str, AxisWorth]) -> dict[str, object]:
    """Return the fields of a row that a comparison of its history fills."""
    return {
        "against": one.against,
        "worth": one.difference,
        "result": one.result,
        "reason": one.reason,
        "verdict": worths[one.axis].verdict,
    }


def axis_worths(comparisons: Sequence[Comparison]) -> dict[str, AxisWorth]:
    """Return what the places of each axis say together, by the rules of the answer."""
    by_axis: dict[str, list[Comparison]] = {}
    for one in comparisons:
        by_axis.setdefault(one.axis, []).append(one)
    return {axis: _worth(places) for axis, places in by_axis.items()}


def _worth(places: Sequence[Comparison]) -> AxisWorth:
    verdict = combine(places)
    shown = [one for one in places if one.result in ("asset", "burden")]
    most = max(shown or places, key=lambda one: abs(one.difference.value or 0.0))
    if verdict == "undecided":
        most = nearest_to_decision(places)
    made = AxisWorth(verdict, len(places), most.place, most.difference, most.digits, most.reason)
    others = [one for one in shown if one.result != most.result]
    if verdict != "both" or not others:
        return made
    other = max(others, key=lambda one: abs(one.difference.value or 0.0))
    return replace(made, opposite_place=other.place, opposite=other.difference)


def in_order(rows: Sequence[AtlasRow]) -> list[AtlasRow]:
    """Return ``rows`` axis by axis and measure by measure, each as it first occurs."""
    axes = list(dict.fromkeys(row.axis for row in rows))
    lines = list(dict.fromkeys(row.line for row in rows))
    places = {line: (axes.index(line[0]), number) for number, line in enumerate(lines)}
    return sorted(rows, key=lambda row: places[row.line])


def compare_rows(rows: Iterable[AtlasRow], reference: str) -> list[AtlasRow]:
    """Return ``rows``, ordered by measure, with their differences from the rule ``reference``."""
    made: list[AtlasRow] = []
    for _, group in groupby(rows, lambda row: row.line):
        made += _compare_line(list(group), reference)
    return made


def _compare_line(rows: Sequence[AtlasRow], reference: str) -> list[AtlasRow]:
    """Return the rows of one measure, compared. Their differences share one error rate."""
    standard = next((row for row in rows if row.rule == reference), None)
    base = standard or rows[0]
    notes = [_problem(row, standard, base) for row in rows]
    family = max(notes.count(""), 1)
    return [
        replace(row, note=note, difference=None if note else _difference(row, base, family))
        for row, note in zip(rows, notes, strict=True)
    ]


def _problem(row: AtlasRow, standard: AtlasRow | None, base: AtlasRow) -> str:
    """Return why a row has no difference from the reference ``standard``; empty if it has one."""
    if row is standard:
        return IS_REFERENCE
    if not row.budget or not base.budget:
        return UNKNOWN_BUDGET
    if row.budget != base.budget:
        return OTHER_BUDGET
    if row.unit != base.unit:
        return OTHER_UNIT
    if standard is None:
        return ABSENT
    if not (row.value.seeds and standard.value.seeds):
        return NOT_BY_SEED
    return "" if np.isfinite(_pair(row, standard)).all(axis=0).any() else NO_COMMON_SEED


def _difference(row: AtlasRow, standard: AtlasRow, family: int) -> ProfileValue:
    own, other = _pair(row, standard)
    return ProfileValue.of(paired_estimate(own, other, family=family))


def _pair(row: AtlasRow, standard: AtlasRow) -> Floats:
    """Return the values of two rows [2, seeds] for the seeds that both were planned with."""
    both = zip(row.value.seeds, standard.value.seeds, strict=False)
    return np.array(list(both), dtype=np.float64).reshape(-1, 2).T


def _rule(label: str, folder: str, profile: Profile, rows: Sequence[AtlasRow]) -> AtlasRule:
    answer = profile.answer
    other = dict.fromkeys(
        row.source for row in rows if row.rule == label and row.note == OTHER_BUDGET
    )
    return AtlasRule(
        label,
        profile.rule,
        profile.preset,
        profile.learner,
        folder,
        None if answer is None else answer.verdict,
        "" if answer is None else answer.sentence,
        {} if answer is None else axis_worths(answer.comparisons),
        tuple(other),
        profile.world,
        profile.references,
    )
