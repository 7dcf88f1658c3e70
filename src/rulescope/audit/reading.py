"""From the results of the assays to the axes of a profile: which numbers stand in which line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rulescope.assays.results import Results
from rulescope.audit import verdicts
from rulescope.audit.profile import NULL, RULE, WITHOUT, Axis, Figure, Measure
from rulescope.stats import Estimate

Found = Mapping[str, Results]
"""Results by assay id."""

LEARNERS = {
    "disco": RULE,
    "disco-pin": WITHOUT,
    "disco-freeze": WITHOUT,
    "disco-null": NULL,
    "a2c": "A2C",
    "dqn": "DQN",
    "dqn-28672": "DQN, small replay",
    "dqn-cleared": "DQN, replay cleared",
}
"""Columns of arms that are learners; the arm ``disco`` is whoever is audited."""
HISTORY = {"live": RULE, "pin": WITHOUT}
THOUSAND = 1000.0
DIGITS = {"rate": 4}
"""Decimals of differences in units that need more than two."""


class Line(NamedTuple):
    """Where the numbers of one measure are."""

    key: str
    title: str
    assay: str
    place: str
    """Key of an estimate, with ``{}`` in place of the arm if there is one for each."""
    unit: str = "score"
    arms: Mapping[str, str] = LEARNERS
    digits: int = 2
    size: float = 1.0
    """What the estimate is divided by."""
    difference: bool = False


def competence(found: Found) -> Axis:
    """How good does a learner become, and how soon?"""
    lines = [
        Line("score", "Final score, Catch 8×8", "exposure", "score/episodic/{}"),
        Line("reach", "Lifetimes that reach 0.8", "exposure", "fraction/episodic/{}", "share"),
        Line(
            "pace",
            "Thousand interactions until 0.8, of those that reach it",
            "exposure",
            "steps/episodic/{}",
            "thousands",
            digits=1,
            size=THOUSAND,
        ),
        Line("long", "Final score, Catch 24×24", "F2", "endpoint/{}"),
        Line(
            "mastery",
            "Thousand interactions to within 10 % of its final score, 24×24",
            "F2",
            "mastery/{}",
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
        verdicts.competence,
    )


def scale(found: Found) -> Axis:
    """In which range of reward scales does it learn, and does its history widen it?"""
    scales = [float(label) for label in labels(found, "E1", "scale")]
    most = f"{math.log10(max(scales) / min(scales)):.2g}" if scales else "no"
    lines = [
        # What is estimated is half of it: the threshold of the criterion below.
        Line(
            "best", "Best score at any scale", "E1", "threshold/catch/{}", "score", HISTORY, 2, 0.5
        )
    ]
    lines += [
        Line(
            criterion,
            f"Decades of reward scale, of {most}, with {words}",
            "E1",
            f"width/catch/{{}}/{criterion}",
            "decades",
            HISTORY,
        )
        for criterion, words in (("0.8", "score ≥ 0.8"), ("half-best", "half of its best score"))
    ]
    lines.append(
        effect(
            "contrast",
            "Decades: with − without history (half of its best score)",
            "E1",
            "contrast/catch/half-best",
            "decades",
        )
    )
    return axis_of(
        "Reward scale",
        "In what range of reward scales does it learn, with and without its history?",
        found,
        lines,
        verdicts.scale,
    )


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
    for at in labels(found, "E2", "scale"):
        lines += [
            Line(f"{arm}/{at}", f"Score at scale {at}: {words}", "E2", f"score/{at}/{arm}")
            for arm, words in sources.items()
        ]
        title = f"Harm of the reciprocal donor at scale {at}: held − not held"
        lines.append(effect(f"interaction/{at}", title, "E2", f"interaction/{at}"))
    return axis_of(
        "Inheritance",
        "Does it matter from whose lifetime the state comes, and can the learner revise it?",
        found,
        lines,
        verdicts.inheritance,
    )


def boundaries(found: Found) -> Axis:
    """Does it need episodes, and to be told of their ends?"""
    lines = [
        Line("told", "Score when told of episode ends", "exposure", "score/episodic/{}"),
        Line("masked", "Score when never told", "exposure", "score/masked/{}"),
        Line("natural", "Score in Tracking, which has no ends", "exposure", "score/natural/{}"),
        Line("stream", "Score in a Catch that never resets", "E-A3c", "score/{}"),
    ]
    return axis_of(
        "Streams and boundaries",
        "Does it need episodes, and to be told of their ends?",
        found,
        lines,
        verdicts.boundaries,
    )


def change(found: Found) -> Axis:
    """How does it adapt when the world changes, and does it need replay for that?"""
    lines = []
    for condition in labels(found, "E3", "condition"):
        where, said = f"{condition}/catch", condition.replace("-", " ")
        lines += [
            Line(f"pre/{condition}", f"Score before the {said}", "E3", f"pre/{where}/{{}}"),
            Line(f"auc/{condition}", f"Mean score after the {said}", "E3", f"auc/{where}/{{}}"),
            Line(
                f"final/{condition}",
                f"Final score after the {said}",
                "E3",
                f"final/{where}/{{}}",
            ),
            Line(
                f"attained/{condition}",
                f"Lifetimes at 0.8 again after the {said}",
                "E3",
                f"attained/{where}/{{}}/0.8",
                "share",
            ),
            Line(
                f"time/{condition}",
                # A restricted mean: whoever never gets there counts with all that was left.
                f"Thousand interactions to 0.8 after the {said}, or the end",
                "E3",
                f"time/{where}/{{}}/0.8",
                "thousands",
                digits=1,
            ),
        ]
        lines += [
            effect(
                f"{replay}/{condition}",
                f"Mean score after the {said}, rule − {words}",
                "E3",
                f"contrast/{condition}/{replay}",
            )
            for replay, words in (
                ("100k", "DQN"),
                ("28672", "DQN of small replay"),
                ("cleared", "DQN, replay cleared"),
            )
        ]
    return axis_of(
        "Change and replay",
        "How does it adapt when the world changes, and does keeping old experience matter?",
        found,
        lines,
        verdicts.change,
    )


def exploration(found: Found) -> Axis:
    """How deep does a reward have to lie until it is no longer found, and kept?"""
    lines = []
    for task in labels(found, "E-A5", "task"):
        depth = task.rpartition("-")[2]
        sea = f"DeepSea {depth}"
        lines += [
            Line(
                f"found/{depth}", f"{sea}: found the goal", "E-A5", f"found/{{}}/{depth}", "share"
            ),
            Line(f"solved/{depth}", f"{sea}: solved", "E-A5", f"solved/{{}}/{depth}", "share"),
            Line(
                f"return/{depth}", f"{sea}: final return", "E-A5", f"return/{{}}/{depth}", "return"
            ),
        ]
    return axis_of(
        "Exploration",
        "Is a rare reward found (discovery), and is what was found kept (consolidation)?",
        found,
        lines,
        verdicts.exploration,
    )


AXES: tuple[Callable[[Found], Axis], ...] = (
    competence,
    scale,
    inheritance,
    boundaries,
    change,
    exploration,
)
"""In the order in which a profile tells them."""


def axes_of(found: Found) -> tuple[Axis, ...]:
    """Return every axis of a profile; what was not run has no measures."""
    return tuple(axis(found) for axis in AXES)


def effect(key: str, title: str, assay: str, place: str, unit: str = "score") -> Line:
    """Return the line of a difference, which is the rule's alone."""
    return Line(key, title, assay, place, unit, digits=DIGITS.get(unit, 2), difference=True)


def labels(found: Found, assay: str, axis: str) -> list[str]:
    """Return the labels along an axis of an assay as they stand in keys."""
    labels = found[assay].axes[axis] if assay in found else ()
    return [f"{label:g}" if isinstance(label, float) else label for label in labels]


def axis_of(
    name: str,
    question: str,
    found: Found,
    lines: Sequence[Line],
    verdict: Callable[[verdicts.Measures], str],
) -> Axis:
    """Return the axis with those ``lines`` that ``found`` can fill."""
    measures = tuple(measure for line in lines if (measure := _measured(found, line)) is not None)
    said = verdict({m.key: {name: f.estimate() for name, f in m.figures.items()} for m in measures})
    return Axis(name, question, measures, said)


def _measured(found: Found, line: Line) -> Measure | None:
    """Return what ``line`` asks for, if it could be estimated for the rule."""
    if line.assay not in found:
        return None
    estimates = found[line.assay].estimates
    arms = line.arms if "{}" in line.place else {"": RULE}
    figures = {
        column: Figure.of(_divided(estimates[line.place.format(arm)], line.size))
        for arm, column in arms.items()
        if line.place.format(arm) in estimates
    }
    if RULE not in figures or figures[RULE].n == 0:
        return None
    return Measure(
        line.key, line.title, line.unit, figures, line.assay, line.digits, line.difference
    )


def _divided(one: Estimate, by: float) -> Estimate:
    return Estimate(
        one.value / by, one.low / by, one.high / by, one.n, one.draws, one.family, one.method
    )
