"""The profile of a rule that is an optimiser: OPEN, in the games it was made for.

Three axes can be asked for. The others need worlds in which nobody has said how such a rule is to
be used: it was trained for one length of life, in games with episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rulescope.audit import verdicts
from rulescope.audit.profile import RULE, WITHOUT, Axis
from rulescope.audit.reading import Found, Line, axis_of, effect, labels

ARMS = {"live": RULE, "zero": WITHOUT, "adam": "Adam", "initial": "untrained", "random": "random"}
ID = "OPEN"
NOT_ASKED = "Does not apply: the rule is an optimiser for episodic games of one length."


def axes_of(found: Found) -> tuple[Axis, ...]:
    """Return the axes of a profile; those that do not apply say so."""
    places = [
        (game, at, f"{game.partition('-')[2].capitalize()}, scale {at}")
        for game in labels(found, ID, "task")
        for at in labels(found, ID, "scale")
    ]
    unit = [(game, at, name) for game, at, name in places if at == "1"]
    reward = [
        Line(f"rate/{game}", f"{name}: reward", ID, f"rate/{game}/{{}}/{at}", "rate", ARMS, 4)
        for game, at, name in unit
    ]
    learned = [
        effect(
            f"learned/{game}",
            f"{name}: live − untrained",
            ID,
            f"live-minus-initial/{game}/{at}",
            "rate",
        )
        for game, at, name in unit
    ]
    scales = [
        effect(
            f"interaction/{game}/{at}",
            f"{name}: history × scale",
            ID,
            f"interaction/{game}/{at}",
            "rate",
        )
        for game, at, name in places
        if at != "1"
    ]
    history = [
        effect(f"{kind}/{game}/{at}", f"{name}: {words}", ID, f"{kind}/{game}/{at}", "rate")
        for game, at, name in places
        for kind, words in (
            ("live-minus-zero", "live − without history"),
            ("reset-minus-live", "reset at half − live"),
        )
    ]
    asked = (
        axis_of(
            "Competence and pace",
            "What does a policy earn that was trained with it?",
            found,
            [*reward, *learned],
            _effects_of(learned),
        ),
        axis_of(
            "Reward scale",
            "Does its history matter more at another reward scale?",
            found,
            scales,
            _effects_of(scales),
        ),
        axis_of(
            "Inheritance",
            "Does it need what it remembers of each parameter?",
            found,
            history,
            _effects_of(history),
        ),
    )
    others = ("Streams and boundaries", "Change and replay", "Exploration")
    return (*asked, *(Axis(name, "", (), NOT_ASKED) for name in others))


def _effects_of(lines: Sequence[Line]) -> Callable[[verdicts.Measures], str]:
    """Return the verdict on the differences that ``lines`` are."""
    return partial(verdicts.effects, titles={line.key: line.title for line in lines})
