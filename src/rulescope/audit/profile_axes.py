"""From the results of the assays to the axes of a profile: which numbers stand in which line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from rulescope.assays.change.change import REPLAYS
from rulescope.assays.estimates import Label, Place, Row, label_text, place
from rulescope.assays.frame import Floats
from rulescope.assays.inheritance.inheritance import CROSSED
from rulescope.assays.results import Results
from rulescope.audit import axis_sentences
from rulescope.audit.evidence import (
    AT_SCALE,
    RAW_UNIT,
    Found,
    frozen_column,
    has_scale,
    labels,
    usual_exposure,
    with_groups,
    world_of,
)
from rulescope.audit.profile import (
    NULL,
    PINNED,
    REPORTED_ENDS,
    RULE,
    Axis,
    Measure,
    ProfileValue,
    Scales,
    divided,
    with_seeds,
)
from rulescope.render.arm_styles import arm_name
from rulescope.stats import (
    COMPETENT,
    interaction_differences,
    paired_differences,
    paired_estimate,
    widen_to_student,
)

LEARNERS = {
    "rule": RULE,
    "rule-pin": PINNED,
    "rule-null": NULL,
    **{arm: arm_name(arm, RULE) for arm in ("a2c", "dqn")},
    "dqn-28672": "DQN, small replay",
    "dqn-cleared": "DQN, replay cleared",
}
"""Columns of arms that are learners; the arm ``rule`` is the rule under audit."""
HISTORY = {"live": RULE, "pin": PINNED}
THOUSAND = 1000.0
DIGITS = {"rate": 4}
"""Decimals of differences in units that need more than two."""
GROUPED_UNITS = ("score", "return")
"""Units in which two groups of lifetimes are looked for: their rule is one of scores."""


class MeasureSource(NamedTuple):
    """Where the numbers of one measure are."""

    key: str
    title: str
    assay: str
    place: Place
    """Where its estimates stand, without the arm."""
    unit: str = "score"
    arms: Mapping[str, str] | None = LEARNERS
    """Columns of arms; None if the estimate is not about single arms."""
    digits: int = 2
    size: float = 1.0
    """What the estimate is divided by."""
    difference: bool = False
    each: Callable[[Results], Floats | None] | None = None
    """Returns the per-seed values [seeds] of a difference; used to widen its interval to Student's
    t, or to estimate it if no row exists at ``place``."""


def competence(found: Found) -> Axis:
    """How good does a learner become, and how soon?"""
    world, usual = world_of(found), usual_exposure(found)
    lines = [
        MeasureSource(
            "score",
            f"Final score, {world or 'Catch 8×8'}",
            "exposure",
            place("score", condition=usual),
        ),
        MeasureSource(
            "reach",
            "Lifetimes that reach 0.8",
            "exposure",
            place("fraction", condition=usual),
            "share",
        ),
        MeasureSource(
            "pace",
            "Thousand interactions until 0.8, of those that reach it",
            "exposure",
            place("steps", condition=usual),
            "thousands",
            digits=1,
            size=THOUSAND,
        ),
        MeasureSource("long", "Final score, Catch 24×24", "F2", place("endpoint")),
        MeasureSource(
            "mastery",
            "Thousand interactions to within 10 % of its final score, 24×24",
            "F2",
            place("mastery"),
            "thousands",
            digits=1,
            size=THOUSAND,
        ),
    ]
    return axis_of(
        "Competence and pace",
        "How good does it become, and how soon?",
        found,
        lines,
        partial(axis_sentences.competence, small=world or "Catch 8×8"),
    )


def scale(found: Found) -> Axis:
    """In which range of reward scales does it learn, and does its history widen it?"""
    task = world_of(found) or "catch"
    scales = [float(label) for label in labels(found, "E1", "scale")]
    most = f"{math.log10(max(scales) / min(scales)):.2g}" if scales else "no"
    lines = [
        MeasureSource(
            "best", "Best score at any scale", "E1", place("best", task=task), "score", HISTORY
        )
    ]
    for criterion, words in (("0.8", "score ≥ 0.8"), ("half-best", "half of its best score")):
        width = MeasureSource(
            criterion,
            f"Decades of reward scale, of {most}, with {words}",
            "E1",
            place("width", task=task, criterion=criterion),
            "decades",
            HISTORY,
        )
        contrast = effect(
            f"contrast/{criterion}",
            f"Decades: live − pinned, with {words}",
            "E1",
            place("contrast", task=task, criterion=criterion),
            "decades",
        )
        # At one scale every width is 0, so a difference of widths says nothing.
        lines += [width, contrast] if len(scales) > 1 else [width]
    made = axis_of(
        "Reward scale",
        "In what range of reward scales does it learn, with and without its history?",
        found,
        lines,
        axis_sentences.scale,
    )
    single = _single_scales(scales, task)
    return replace(made, further=_in_raw_units(found, _measures(found, single)))


def _single_scales(scales: Sequence[float], task: str) -> list[MeasureSource]:
    """Return the scores at every reward scale."""
    return [
        MeasureSource(
            f"{AT_SCALE}{label_text(at)}",
            f"Score at reward scale {label_text(at)}",
            "E1",
            place("score", task=task, scale=at),
            arms=HISTORY,
        )
        for at in scales
    ]


def inheritance(found: Found) -> Axis:
    """Does it matter whose history a learner inherits?"""
    sources = {
        "live": "its own history",
        "match-natural": "starts from a donor of its scale",
        "cross-natural": "starts from a donor of the reciprocal scale",
        "match-clamp": "held at a donor of its scale",
        "cross-clamp": "held at a donor of the reciprocal scale",
    }
    lines = []
    for scale in labels(found, "E2", "scale"):
        at = label_text(scale)
        lines += [
            MeasureSource(
                f"{arm}/{at}",
                f"Score at scale {at}: {words}",
                "E2",
                place("score", scale=scale, arm=arm),
                arms=None,
            )
            for arm, words in sources.items()
        ]
        title = f"Harm of the reciprocal donor at scale {at}: held − not held"
        interaction = place("interaction", scale=scale)
        lines.append(
            effect(f"interaction/{at}", title, "E2", interaction, each=_interaction(scale))
        )
    return axis_of(
        "Inheritance",
        "Does it matter from whose lifetime the state comes, and can the learner revise it?",
        found,
        lines,
        axis_sentences.inheritance,
    )


def _interaction(scale: Label) -> Callable[[Results], Floats | None]:
    """Return a function that reads the interaction of each seed at a scale."""

    def each(results: Results) -> Floats | None:
        cells = [place("score", scale=scale, arm=arm) for arm in CROSSED]
        arms = [cell.seeds(results.estimates) for cell in cells]
        known = [values for values in arms if values is not None]
        return interaction_differences(*known) if len(known) == len(CROSSED) else None

    return each


def between(first: Place, second: Place) -> Callable[[Results], Floats | None]:
    """Return a function that reads one readout minus another within each seed."""

    def each(results: Results) -> Floats | None:
        one, other = first.seeds(results.estimates), second.seeds(results.estimates)
        return None if one is None or other is None else paired_differences(one, other)

    return each


def boundaries(found: Found) -> Axis:
    """Does it need episodes, and reports of their ends?"""
    natural = MeasureSource(
        "natural",
        "Score in Tracking, which has no ends",
        "exposure",
        place("score", condition="natural"),
    )
    ends = [place("score", condition=condition, arm="rule") for condition in ("episodic", "masked")]
    lines = [
        MeasureSource(
            REPORTED_ENDS,
            "Score with reported episode ends",
            "exposure",
            place("score", condition="episodic"),
        ),
        MeasureSource(
            "masked", "Score without reports", "exposure", place("score", condition="masked")
        ),
        effect(
            "ends",
            "Score: with − without reported ends",
            "exposure",
            place("ends"),
            each=between(*ends),
        ),
        *([] if world_of(found) else [natural]),
        MeasureSource("stream", "Score in a Catch that never resets", "E-A3c", place("score")),
    ]
    return axis_of(
        "Streams and boundaries",
        "Does it need episodes, and reports of their ends?",
        found,
        lines,
        axis_sentences.boundaries,
    )


def change(found: Found) -> Axis:
    """How does it adapt when the world changes, and does it need replay for that?"""
    lines, task = [], world_of(found) or "catch"
    learners = {**LEARNERS, "rule-freeze": frozen_column(found)}
    for condition in map(str, labels(found, "E3", "condition")):
        where: dict[str, Label] = {"condition": condition, "task": task}
        event = condition.replace("-", " ")
        lines += [
            MeasureSource(
                f"pre/{condition}", f"Score before the {event}", "E3", place("pre", **where)
            ),
            MeasureSource(
                f"auc/{condition}", f"Mean score after the {event}", "E3", place("auc", **where)
            ),
            MeasureSource(
                f"final/{condition}",
                f"Final score after the {event}",
                "E3",
                place("final", **where),
            ),
            MeasureSource(
                f"attained/{condition}",
                f"Lifetimes at 0.8 again after the {event}",
                "E3",
                place("attained", **where, threshold=COMPETENT),
                "share",
            ),
            MeasureSource(
                f"time/{condition}",
                # A restricted mean: a lifetime that never gets there counts with the whole rest.
                f"Thousand interactions to 0.8 after the {event}, or the end",
                "E3",
                place("time", **where, threshold=COMPETENT),
                "thousands",
                digits=1,
            ),
        ]
        lines += [
            effect(
                f"{replay}/{condition}",
                f"Mean score after the {event}, rule − {words}",
                "E3",
                place("contrast", condition=condition, replay=replay),
                each=between(
                    place("auc", **where, arm="rule"), place("auc", **where, arm=REPLAYS[replay])
                ),
            )
            for replay, words in (
                ("100k", "DQN"),
                ("28672", "DQN of small replay"),
                ("cleared", "DQN, replay cleared"),
            )
        ]
    lines = [line if line.difference else line._replace(arms=learners) for line in lines]
    return axis_of(
        "Change and replay",
        "How does it adapt when the world changes, and does keeping old experience matter?",
        found,
        lines,
        axis_sentences.change,
    )


def exploration(found: Found) -> Axis:
    """How deep does a reward have to lie until it is no longer found, and kept?"""
    lines = []
    for depth in (float(str(task).rpartition("-")[2]) for task in labels(found, "E-A5", "task")):
        sea = f"DeepSea {depth:g}"
        lines += [
            MeasureSource(
                f"found/{depth:g}",
                f"{sea}: goal in the log",
                "E-A5",
                place("goal-in-log", depth=depth),
                "share",
            ),
            MeasureSource(
                f"solved/{depth:g}", f"{sea}: solved", "E-A5", place("solved", depth=depth), "share"
            ),
            MeasureSource(
                f"return/{depth:g}",
                f"{sea}: final return",
                "E-A5",
                place("return", depth=depth),
                "return",
            ),
        ]
    return axis_of(
        "Exploration",
        "Is a rare reward found (discovery), and is what was found kept (consolidation)?",
        found,
        lines,
        axis_sentences.exploration,
    )


AXES: tuple[Callable[[Found], Axis], ...] = (
    competence,
    scale,
    inheritance,
    boundaries,
    change,
    exploration,
)
"""The sections of a profile, in its order: five axes, and the inheritance of states. The latter is
a part of the reward-scale axis, with a section of its own."""


def axes_of(found: Found) -> tuple[Axis, ...]:
    """Return every section of a profile; what was not run has no measures."""
    return tuple(axis(found) for axis in AXES)


def effect(
    key: str,
    title: str,
    assay: str,
    at: Place,
    unit: str = "score",
    each: Callable[[Results], Floats | None] | None = None,
) -> MeasureSource:
    """Return the line of a difference, which is the rule's alone."""
    digits = DIGITS.get(unit, 2)
    return MeasureSource(key, title, assay, at, unit, None, digits, difference=True, each=each)


def axis_of(
    name: str,
    question: str,
    found: Found,
    lines: Sequence[MeasureSource],
    verdict: Callable[[axis_sentences.Measures], str],
) -> Axis:
    """Return the axis with those ``lines`` that ``found`` can fill."""
    measures = _in_raw_units(found, _measures(found, lines))
    if measures and not has_scale(found):
        return Axis(name, question, measures, axis_sentences.RAW)
    return Axis(name, question, measures, verdict({measure.key: measure for measure in measures}))


def _in_raw_units(found: Found, measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """Return ``measures``; scores of a world without an upper reference are no shares of one."""
    if has_scale(found):
        return tuple(measures)
    return tuple(replace(one, unit=RAW_UNIT) if one.unit == "score" else one for one in measures)


def _measures(found: Found, lines: Sequence[MeasureSource]) -> tuple[Measure, ...]:
    """Return the measures of those ``lines`` that ``found`` can fill."""
    return tuple(measure for line in lines if (measure := _measured(found, line)) is not None)


def _measured(found: Found, line: MeasureSource) -> Measure | None:
    """Return what ``line`` asks for, if it could be estimated for the rule."""
    if line.assay not in found:
        return None
    results = found[line.assay]
    if line.difference:
        figures = _effect(results, line)
    else:
        figures = {
            column: divided(_figure(row, line.unit), line.size)
            for column, at in _places(line).items()
            if (row := at.row(results.estimates)) is not None
        }
    if RULE not in figures or figures[RULE].n == 0:
        return None
    return Measure(
        line.key,
        line.title,
        line.unit,
        figures,
        line.assay,
        line.digits,
        line.difference,
        {} if line.difference else _differences(results, line),
    )


def _places(line: MeasureSource) -> dict[str, Place]:
    """Return where the estimate of each column stands."""
    if line.arms is None:  # it is the rule's alone
        return {RULE: line.place}
    return {column: line.place.replaced(arm=arm) for arm, column in line.arms.items()}


def _effect(results: Results, line: MeasureSource) -> dict[str, ProfileValue]:
    """Return a difference as the rule's own figure, none if it was not planned."""
    row = line.place.row(results.estimates)
    each = None if line.each is None else line.each(results)
    if row is not None:
        planned = row.estimate
        made = planned if each is None else widen_to_student(planned, each)
        return {RULE: with_seeds(ProfileValue.of(made), each)}
    if each is None or not np.isfinite(each).any():
        return {}
    estimated = ProfileValue.of(paired_estimate(each, np.zeros_like(each)))
    return {RULE: with_seeds(estimated, each)}


def _figure(row: Row, unit: str) -> ProfileValue:
    """Return the estimate of ``row``, with what a mean or a width leaves out."""
    made = with_seeds(ProfileValue.of(row.estimate), row.seeds)
    if row.window is not None:
        made = replace(made, window=Scales.of(row.window))
    return with_groups(made, row.seeds) if row.seeds is not None and unit in GROUPED_UNITS else made


def _differences(results: Results, line: MeasureSource) -> dict[str, ProfileValue]:
    """Return the rule minus every other column, paired by seed, where seeds are known."""
    seeds = {column: at.seeds(results.estimates) for column, at in _places(line).items()}
    own = seeds.pop(RULE, None)
    return {
        column: divided(ProfileValue.of(paired_estimate(own, values)), line.size)
        for column, values in seeds.items()
        if own is not None and values is not None and np.isfinite(own - values).any()
    }
