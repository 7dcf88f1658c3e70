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

from rulescope.assays.estimates import Estimates, Place, place
from rulescope.assays.frame import Floats
from rulescope.assays.open import open_gate
from rulescope.assays.open.open_carry import CONTRASTS, GAMES
from rulescope.assays.results import Results
from rulescope.audit import axis_sentences, history_answer
from rulescope.audit.evidence import Found, labels
from rulescope.audit.profile import PINNED, RULE, Axis, Comparison, ProfileValue, with_seeds
from rulescope.audit.profile_axes import MeasureSource, axis_of, between, effect
from rulescope.stats import interaction_differences, widen_to_student

ARMS = {"live": RULE, "zero": PINNED, "adam": "Adam", "initial": "untrained", "random": "random"}
ID = "OPEN"
NOT_ASKED = "Does not apply: the rule is an optimiser for episodic games of one length."
MARGIN = 0.1
"""Of the gain over the untrained policy: a smaller difference is no effect."""
UNIT = 1.0
"""The scale that others are compared with."""


def axes_of(found: Found) -> tuple[Axis, ...]:
    """Return the axes of a profile; those that do not apply say so."""
    places = [(game, at, f"{GAMES[game]}, scale {at:g}") for game, at in _places(found)]
    gate = [
        MeasureSource(
            f"gate/{game}/{at:g}",
            f"{name}: live above untrained and random",
            ID,
            place("gate", task=game, scale=at),
            "share",
            None,
        )
        for game, at, name in places
    ]
    unit = [(game, at, name) for game, at, name in places if at == UNIT]
    reward = [
        MeasureSource(
            f"rate/{game}",
            f"{name}: reward",
            ID,
            place("rate", task=game, scale=at),
            "rate",
            ARMS,
            4,
        )
        for game, at, name in unit
    ]
    learned = [
        _contrast(f"learned/{game}", f"{name}: live − untrained", "live-minus-initial", game, at)
        for game, at, name in unit
    ]
    scales = [
        effect(
            f"interaction/{game}/{at:g}",
            f"{name}: history × scale",
            ID,
            place("interaction", task=game, scale=at),
            "rate",
            _interaction(game, at),
        )
        for game, at, name in places
        if at != UNIT
    ]
    kept = [
        _contrast(f"{kind}/{game}/{at:g}", f"{name}: {words}", kind, game, at)
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


def _contrast(key: str, title: str, kind: str, game: str, at: float) -> MeasureSource:
    """Return the line of a planned contrast between two arms, with its values by seed."""
    first, second = (_rate(game, arm, at) for arm in CONTRASTS[kind])
    where = place(kind, task=game, scale=at)
    return effect(key, title, ID, where, "rate", between(first, second))


def _interaction(game: str, at: float) -> Callable[[Results], Floats | None]:
    """Return a function that reads live − pinned at a scale minus the same at the unit scale."""
    cells = [_rate(game, arm, scale) for scale in (at, UNIT) for arm in ("live", "zero")]

    def each(results: Results) -> Floats | None:
        values = [cell.seeds(results.estimates) for cell in cells]
        known = [one for one in values if one is not None]
        return interaction_differences(*known) if len(known) == len(cells) else None

    return each


def _rate(game: str, arm: str, at: float) -> Place:
    """Return where the reward rate of an arm stands."""
    return place("rate", task=game, arm=arm, scale=at)


def _after_gate(
    found: Found, lines: Sequence[MeasureSource], *, contrasts: bool = True
) -> Callable[[axis_sentences.Measures], str]:
    """Return the verdict on the differences that ``lines`` are; the capability gate comes first.

    ``contrasts`` of a cell that failed the gate are left out: its learner did not learn. Only live
    − pinned is read if the pinned arm passes: then the history may be a burden.
    """
    estimates = found[ID].estimates if ID in found else Estimates()
    places = _places(found)
    gate = open_gate.summary(estimates, places, GAMES)
    failed = {
        (game, at)
        for game, at in places
        if (share := estimates.lookup("gate", task=game, scale=at)) and not open_gate.passed(share)
    }
    only_pinned = {cell for cell in failed if _capable(found[ID], *cell, "zero")}
    read = [line for line in lines if not (contrasts and _unread(line, failed, only_pinned))]
    titles = {line.key: line.title for line in read}

    by_pinned = contrasts and any(_cells(line) & only_pinned for line in read)

    def verdict(measures: axis_sentences.Measures) -> str:
        left_out = len(read) < len(lines)
        sentences = [f"{gate[:1].upper()}{gate[1:]}."] if gate else []
        if by_pinned:
            sentences.append(
                "Of the differences there, only live − pinned is read, where pinned passes."
            )
        elif left_out:
            sentences.append("The differences there are not read.")
        sentences += [] if left_out and not read else [axis_sentences.effects(measures, titles)]
        return " ".join(sentences)

    return verdict


def _unread(
    line: MeasureSource, failed: set[open_gate.Place], only_pinned: set[open_gate.Place]
) -> bool:
    """Tell whether a difference rests on a cell without an arm that could show it."""
    dead = failed - only_pinned if line.place.quantity == "live-minus-zero" else failed
    return bool(_cells(line) & dead)


def _cells(line: MeasureSource) -> set[open_gate.Place]:
    """Return the games and scales that a difference rests on."""
    game, at = str(line.place.labels["task"]), float(line.place.labels["scale"])
    return {(game, at), (game, UNIT)} if line.place.quantity == "interaction" else {(game, at)}


def _places(found: Found) -> list[open_gate.Place]:
    games, scales = labels(found, ID, "task"), labels(found, ID, "scale")
    return [(str(game), float(at)) for game in games for at in scales]


def _capable(results: Results, game: str, at: float, arm: str) -> bool:
    """Tell whether an arm passes the capability gate in a cell."""
    arms = (arm, *open_gate.REFERENCES)
    rates = [_rate(game, name, at).seeds(results.estimates) for name in arms]
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


def _compared(results: Results, game: str, at: float) -> Comparison | None:
    cells = {arm: _rate(game, arm, at) for arm in ("live", "zero", "initial")}
    each = between(cells["live"], cells["zero"])(results)
    planned = results.estimates.lookup("live-minus-zero", task=game, scale=at)
    rows = {arm: cell.row(results.estimates) for arm, cell in cells.items()}
    if each is None or planned is None or not planned.n or rows["initial"] is None:
        return None
    levels = {arm: row.estimate for arm, row in rows.items() if row is not None}
    gain = max(levels["live"].value, levels["zero"].value) - levels["initial"].value
    margin = MARGIN * max(gain, 0.0)
    arms = [
        with_seeds(ProfileValue.of(levels[arm]), cells[arm].seeds(results.estimates))
        for arm in ("live", "zero")
    ]
    difference = with_seeds(ProfileValue.of(widen_to_student(planned, each)), each)
    live, pinned = (_capable(results, game, at, arm) for arm in ("live", "zero"))
    result, reason = history_answer.judge(
        live, pinned, difference, margin, history_answer.GATE_FAILED
    )
    return Comparison(
        game.partition("-")[2].capitalize(),
        f"at scale {at:g}",
        PINNED,
        arms[0],
        arms[1],
        difference,
        margin,
        result,
        reason,
        digits=4,
        measure=f"rate/{game}" if at == UNIT else "",
        unit="rate",
        source=ID,
    )
