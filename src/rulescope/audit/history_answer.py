"""Is the learning history an asset or a burden? The one answer of an audit, and its rules.

At each place where the rule runs with its history and without (pinned, or frozen before a change),
the difference is taken within seeds. The rules:

* **Seeds.** A place decides from :data:`LEAST_SEEDS` seeds on.
* **Competence before attribution.** It is an *asset* only where the rule with its history is
  competent, and a *burden* only where the rule without it is: what neither arm can do says nothing
  about the history. (An arm without history that is competent where the rule is not is a burden.)
* **Effect.** Asset and burden need an interval that leaves out zero and an estimate of at least the
  margin; *no effect* needs an interval inside the margin, with either arm competent.
* **Error.** All intervals of one answer share one error rate of 5 %.

The answer is *both* if some places are assets and others burdens, and *neither* only if every place
with a competent arm shows no effect; anything else is *undecided*.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rulescope.audit.profile import (
    PINNED,
    Answer,
    Comparison,
    Groups,
    ProfileValue,
    Result,
    Verdict,
)
from rulescope.stats import COMPETENT

LEAST_SEEDS = 4
"""Seeds from which a difference is judged. Where a rule learns in half of its lifetimes, with its
history or without, three seeds agree by chance at every thirtieth place, and four at every
hundred-and-thirtieth."""
MARGIN = 0.1
"""Score: a difference within plus or minus this is no effect."""
NEAR_ZERO = 0.2
"""Mean score below which a group of lifetimes is reported to have stayed near 0."""

TOO_FEW = "too few seeds"
INCOMPETENT = "neither arm is competent"
GATE_FAILED = "neither arm passes the capability gate"
"""The same of an optimiser, whose rewards have no scale from random to optimal."""
WORSE_COMPETENT = "the better arm is not competent"
TOO_WIDE = "the interval is too wide"
NO_BEST = "the world has no upper reference, so no score is competent; --reference-best states one"
DEAD = (INCOMPETENT, GATE_FAILED)
"""Reasons of places that are no evidence: no arm can do there what is asked."""
REASONS = (TOO_WIDE, WORSE_COMPETENT, TOO_FEW, *DEAD, NO_BEST)
"""From the one that comes nearest to a decision on."""


def judge(
    live: bool,
    other: bool,
    difference: ProfileValue,
    margin: float = MARGIN,
    incompetent: str = INCOMPETENT,
) -> tuple[Result, str]:
    """Return what a ``difference`` says, and why if it is undecided.

    ``live`` and ``other`` tell whether the rule is competent with and without its history.
    """
    value, low, high = difference.value, difference.low, difference.high
    if difference.n < LEAST_SEEDS or value is None or low is None or high is None:
        return "undecided", TOO_FEW
    if not (live or other):
        return "undecided", incompetent
    if -margin < low and high < margin:
        return "no effect", ""
    if low > 0 and value >= margin:
        return ("asset", "") if live else ("undecided", WORSE_COMPETENT)
    if high < 0 and value <= -margin:
        return ("burden", "") if other else ("undecided", WORSE_COMPETENT)
    return "undecided", TOO_WIDE


def competent(score: ProfileValue) -> bool:
    """Tell whether ``score``, a mean over seeds, is that of a competent arm."""
    return score.value is not None and score.value >= COMPETENT


def answer(comparisons: Sequence[Comparison], *, has_history: bool = True) -> Answer:
    """Return the answer that all places together give."""
    made = tuple(comparisons)
    if not has_history:
        return Answer("no history", "History: none. No carrier of the learner counts as history.")
    verdict = combine(made)
    sentences = {
        "asset": f"asset (decided by {_listed(made, 'asset')}).",
        "burden": f"burden (decided by {_listed(made, 'burden')}).",
        "both": f"both: an asset (decided by {_listed(made, 'asset')}) and a burden (decided by "
        f"{_listed(made, 'burden')}).",
        "neither": "neither (no effect at every place with a competent arm: "
        f"{_listed(made, 'no effect')}{_without_arm(made)}).",
        "undecided": f"undecided: {_why(made)}.",
    }
    return Answer(verdict, f"History: {sentences[verdict]}", made)


def combine(made: Sequence[Comparison]) -> Verdict:
    """Return what some places say together."""
    results = {one.result for one in made}
    if {"asset", "burden"} <= results:
        return "both"
    if "asset" in results:
        return "asset"
    if "burden" in results:
        return "burden"
    # What no arm can do is no evidence; what could not be decided stands in the way of "neither".
    open_ = any(one.result == "undecided" and one.reason not in DEAD for one in made)
    return "neither" if "no effect" in results and not open_ else "undecided"


def _listed(made: Sequence[Comparison], result: Result) -> str:
    """Return the places with ``result``, axis by axis; of several, the one that shows it most."""
    parts = []
    for _, group in groupby([one for one in made if one.result == result], _axis):
        places = list(group)
        most = max(places, key=lambda one: abs(one.difference.value or 0.0))
        more = f", and {len(places) - 1} more" if len(places) > 1 else ""
        parts.append(f"{_where(most)}: {shown(most)}{more}")
    return "; ".join(parts)


def _without_arm(made: Sequence[Comparison]) -> str:
    """Return how many places have no competent arm; empty if all have one."""
    count = sum(one.reason in DEAD for one in made)
    if not count:
        return ""
    return f"; {count} other place{' has' if count == 1 else 's have'} no competent arm"


def _why(made: Sequence[Comparison]) -> str:
    """Return why nothing was decided."""
    if not made:
        return "no axis was run with the history and without"
    reasons = {one.reason for one in made}
    if reasons == {NO_BEST}:
        return NO_BEST
    if reasons == {TOO_FEW}:
        most = max(made, key=lambda one: one.difference.n)
        return (
            f"{TOO_FEW} ({_where(most)}: {most.difference.n}; at least {LEAST_SEEDS} are needed: "
            f"--seeds {LEAST_SEEDS})"
        )
    if reasons == {INCOMPETENT}:
        scores = [f.value for one in made for f in (one.live, one.other) if f.value is not None]
        best = f"best score {max(scores):.2f}, " if scores else ""
        return (
            f"the rule is competent nowhere, with its history or without ({best}{COMPETENT:g} is "
            "competent)"
        )
    places = _undecided(made)
    # Places without a competent arm are no evidence; they are named if there is nothing else.
    alive = [one for one in places if one.reason not in DEAD] or places
    return "; ".join(_open(list(group)) for _, group in groupby(alive, _axis))


def _undecided(made: Sequence[Comparison]) -> list[Comparison]:
    return [one for one in made if one.result == "undecided"]


def _axis(one: Comparison) -> str:
    return one.axis


def _open(places: Sequence[Comparison]) -> str:
    """Return why an axis is undecided, by the place that comes nearest to a decision."""
    nearest = nearest_to_decision(places)
    numbers = ""
    if nearest.reason == TOO_FEW:
        numbers = f" ({nearest.difference.n}, {LEAST_SEEDS} are needed)"
    elif nearest.reason not in DEAD:
        numbers = f" ({'; '.join([shown(nearest), *_groups(nearest)])})"
    return f"{_where(nearest)}: {nearest.reason}{numbers}"


def nearest_to_decision(places: Sequence[Comparison]) -> Comparison:
    """Return the undecided place that comes nearest to a decision."""
    open_ = [one for one in places if one.result == "undecided"]
    return min(open_, key=lambda one: REASONS.index(one.reason))


def _where(one: Comparison) -> str:
    return " ".join(filter(None, (one.axis, one.place)))


def _groups(one: Comparison) -> list[str]:
    """Return the two groups of lifetimes of either arm, where it has them: they widen intervals."""
    arms = {"live": one.live, one.against: one.other}
    return [
        f"{name}: {describe_groups(arm.groups)}"
        for name, arm in arms.items()
        if arm.groups is not None
    ]


def describe_groups(found: Groups, digits: int = 2) -> str:
    """Return two groups of lifetimes in words.

    >>> describe_groups(Groups(5, 3, 0.02, 0.97))
    '3 of 8 lifetimes learned (mean 0.97); 5 stayed near 0'
    """
    verb = "learned (mean {})" if found.high >= COMPETENT else "reached {}"
    rest = "near 0" if abs(found.low) < NEAR_ZERO else f"at {found.low:.{digits}f}"
    upper = verb.format(f"{found.high:.{digits}f}")
    total = found.below + found.above
    return f"{found.above} of {total} lifetimes {upper}; {found.below} stayed {rest}"


def shown(one: Comparison) -> str:
    """Return the difference of a comparison in words and numbers."""
    against = one.against if one.against == PINNED else f"({one.against})"
    return f"live − {against} {with_interval(one.difference, one.digits)}"


def with_interval(one: ProfileValue, digits: int = 2) -> str:
    """Return a figure with its interval, if it has one that is more than a range of seeds."""
    if one.low is None or one.high is None or one.method == "range":
        return number(one.value, digits)
    return f"{number(one.value, digits)} [{number(one.low, digits)}, {number(one.high, digits)}]"


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with a true minus sign and no negative zero.

    >>> number(-0.001), number(-0.5), number(None)
    ('0.00', '−0.50', 'unknown')
    """
    if value is None:
        return "unknown"
    return f"{round(value, digits) + 0.0:.{digits}f}".replace("-", "−")
