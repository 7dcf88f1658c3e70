"""The profile of a rule that is an optimiser: OPEN, in the games it was made for.

Three axes can be asked for. The others need worlds for which it is not known how such a rule is to
be used: it was trained for one length of life, in games with episodes.

Rewards in these games have no scale from random to optimal. An arm, live or pinned, is competent
where it passes the capability gate: every one of its lifetimes ends with a policy that earns more
than the untrained and the random one (:mod:`rulescope.assays.open.open_gate`), as the published
audit checks the live arm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rulescope.assays.frame import Floats
from rulescope.assays.open import open_gate
from rulescope.assays.open.open_carry import CONTRASTS, GAMES
from rulescope.assays.results import Results
from rulescope.audit import history, verdicts
from rulescope.audit.evidence import Found, labels
from rulescope.audit.profile import PINNED, RULE, Axis, Comparison, Figure
from rulescope.audit.profile_axes import Line, axis_of, between, effect
from rulescope.stats import interaction_differences, widen_to_student

ARMS = {"live": RULE, "zero": PINNED, "adam": "Adam", "initial": "untrained", "random": "random"}
ID = "OPEN"
NOT_ASKED = "Does not apply: the rule is an optimiser for episodic games of one length."
MARGIN = 0.1
"""Of the gain over the untrained policy: a smaller difference is no effect."""
UNIT = "1"
"""The scale that others are compared with."""


def axes_of(found: Found) -> tuple[Axis, ...]:
    """Return the axes of a profile; those that do not apply say so."""
    places = [
        (game, at, f"{GAMES[game]}, scale {at}")
        for game in labels(found, ID, "task")
        for at in labels(found, ID, "scale")
    ]
    gate = [
        Line(
            f"gate/{game}/{at}",
            f"{name}: live above untrained and random",
            ID,
            f"gate/{game}/{at}",
            "share",
        )
        for game, at, name in places
    ]
    unit = [(game, at, name) for game, at, name in places if at == UNIT]
    reward = [
        Line(f"rate/{game}", f"{name}: reward", ID, f"rate/{game}/{{}}/{at}", "rate", ARMS, 4)
        for game, at, name in unit
    ]
    learned = [
        _contrast(f"learned/{game}", f"{name}: live − untrained", "live-minus-initial", game, at)
        for game, at, name in unit
    ]
    scales = [
        effect(
            f"interaction/{game}/{at}",
            f"{name}: history × scale",
            ID,
            f"interaction/{game}/{at}",
            "rate",
            _interaction(game, at),
        )
        for game, at, name in places
        if at != UNIT
    ]
    kept = [
        _contrast(f"{kind}/{game}/{at}", f"{name}: {words}", kind, game, at)
        for game, at, name in places
        for kind, words in (
            ("live-minus-zero", "live − pinned"),
            ("reset-minus-live", "reset at half − live"),
        )
    ]
    asked = (
        axis_of(
            "Competence and pace",
            "What does a policy earn that was trained with it?",
            found,
            [*gate, *reward, *learned],
            _after_gate(found, learned, contrasts=False),
        ),
        axis_of(
            "Reward scale",
            "Does its history matter more at another reward scale?",
            found,
            scales,
            _after_gate(found, scales),
        ),
        axis_of(
            "Inheritance",
            "Does it need what it remembers of each parameter?",
            found,
            kept,
            _after_gate(found, kept),
        ),
    )
    others = ("Streams and boundaries", "Change and replay", "Exploration")
    return (*asked, *(Axis(name, "", (), NOT_ASKED) for name in others))


def _contrast(key: str, title: str, kind: str, game: str, at: str) -> Line:
    """Return the line of a planned contrast between two arms, with its values by seed."""
    arms = (_rate(game, arm, at) for arm in CONTRASTS[kind])
    return effect(key, title, ID, f"{kind}/{game}/{at}", "rate", between(*arms))


def _interaction(game: str, at: str) -> Callable[[Results], Floats | None]:
    """Return a function that reads live − pinned at a scale minus the same at the unit scale."""
    keys = [_rate(game, arm, scale) for scale in (at, UNIT) for arm in ("live", "zero")]

    def each(results: Results) -> Floats | None:
        values = [results.by_seed(key) for key in keys]
        known = [one for one in values if one is not None]
        return interaction_differences(*known) if len(known) == len(keys) else None

    return each


def _rate(game: str, arm: str, at: str) -> str:
    """Return the key of the reward rate of an arm."""
    return f"rate/{game}/{arm}/{at}"


def _after_gate(
    found: Found, lines: Sequence[Line], *, contrasts: bool = True
) -> Callable[[verdicts.Measures], str]:
    """Return the verdict on the differences that ``lines`` are; the capability gate comes first.

    ``contrasts`` of a cell that failed the gate are left out: its learner did not learn. Only live
    − pinned is read if the pinned arm passes: then the history may be a burden.
    """
    estimates = found[ID].estimates if ID in found else {}
    places = _places(found)
    gate = open_gate.summary(estimates, places, GAMES)
    failed = {
        place
        for place in places
        if (share := estimates.get(f"gate/{'/'.join(place)}")) and not open_gate.passed(share)
    }
    only_pinned = {place for place in failed if _capable(found[ID], *place, "zero")}
    read = [line for line in lines if not (contrasts and _unread(line, failed, only_pinned))]
    titles = {line.key: line.title for line in read}

    by_pinned = contrasts and any(_cells(line) & only_pinned for line in read)

    def verdict(measures: verdicts.Measures) -> str:
        left_out = len(read) < len(lines)
        said = [f"{gate[:1].upper()}{gate[1:]}."] if gate else []
        if by_pinned:
            said.append(
                "Of the differences there, only live − pinned is read, where pinned passes."
            )
        elif left_out:
            said.append("The differences there are not read.")
        said += [] if left_out and not read else [verdicts.effects(measures, titles)]
        return " ".join(said)

    return verdict


def _unread(line: Line, failed: set[open_gate.Place], only_pinned: set[open_gate.Place]) -> bool:
    """Tell whether a difference rests on a cell without an arm that could show it."""
    dead = failed - only_pinned if line.place.startswith("live-minus-zero/") else failed
    return bool(_cells(line) & dead)


def _cells(line: Line) -> set[open_gate.Place]:
    """Return the games and scales that a difference rests on."""
    kind, game, at = line.place.split("/")
    return {(game, at), (game, UNIT)} if kind == "interaction" else {(game, at)}


def _places(found: Found) -> list[tuple[str, str]]:
    return [(game, at) for game in labels(found, ID, "task") for at in labels(found, ID, "scale")]


def _capable(results: Results, game: str, at: str, arm: str) -> bool:
    """Tell whether an arm passes the capability gate in a cell."""
    arms = (arm, *open_gate.REFERENCES)
    rates = [results.by_seed(_rate(game, name, at)) for name in arms]
    known = [one for one in rates if one is not None]
    if len(known) < len(arms):
        return False
    share = open_gate.share_above(known[0], known[1:])
    return share is not None and open_gate.passed(share)


def comparisons(found: Found) -> tuple[Comparison, ...]:
    """Return the live rule beside the one without its carry, in every game and at every scale."""
    return tuple(
        one for game, at in _places(found) if (one := _compared(found[ID], game, at)) is not None
    )


def _compared(results: Results, game: str, at: str) -> Comparison | None:
    keys = {arm: _rate(game, arm, at) for arm in ("live", "zero", "initial")}
    each = between(keys["live"], keys["zero"])(results)
    planned = results.estimates.get(f"live-minus-zero/{game}/{at}")
    if each is None or planned is None or not planned.n or keys["initial"] not in results.estimates:
        return None
    levels = {arm: results.estimates[key] for arm, key in keys.items()}
    gain = max(levels["live"].value, levels["zero"].value) - levels["initial"].value
    margin = MARGIN * max(gain, 0.0)
    difference = Figure.of(widen_to_student(planned, each))
    live, pinned = (_capable(results, game, at, arm) for arm in ("live", "zero"))
    result, reason = history.judge(live, pinned, difference, margin, history.GATE_FAILED)
    return Comparison(
        game.partition("-")[2].capitalize(),
        f"at scale {at}",
        PINNED,
        Figure.of(levels["live"]),
        Figure.of(levels["zero"]),
        difference,
        margin,
        result,
        reason,
        digits=4,
    )
