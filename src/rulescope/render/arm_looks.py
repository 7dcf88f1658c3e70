"""Arms as figures and pages show them: printed name, colour, marker and line, in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple
from zlib import crc32

from rulescope.learners.disco_config import VARIANTS
from rulescope.render import palette
from rulescope.render.display_names import UNKNOWN, canonical_arm, rate_label

Line = str | tuple[float, tuple[float, ...]]
"""A line style of matplotlib."""
DASHED: Line = (0.0, (4.0, 1.6))
DOTTED: Line = (0.0, (1.2, 1.4))
MIXED: Line = (0.0, (5.0, 1.4, 1.2, 1.4))


class Look(NamedTuple):
    """Name, colour, marker and line of an arm, the same in all figures."""

    name: str
    """As printed beside its line; braces stand for the rule under audit."""
    colour: str
    marker: str
    line: Line = "-"
    filled: bool = True
    """Natural transfers are hollow, clamped ones filled."""

    @property
    def face(self) -> str:
        """The colour inside of its marker."""
        return self.colour if self.filled else palette.WHITE

    @property
    def ink(self) -> str:
        """Its colour for text."""
        return palette.readable(self.colour)


ARMS: Mapping[str, Look] = {
    # what is done to the state of the rule under audit
    "live": Look("live", palette.BLUE, "o"),
    "pin": Look("pin", palette.VERMILION, "s", DASHED),
    "hold": Look("hold", palette.ORANGE, "^", MIXED),
    "both": Look("both", palette.PURPLE, "D", DOTTED),
    "freeze": Look("freeze", palette.STONE, "P"),
    "match-natural": Look("match", palette.GREEN, "v", DASHED, filled=False),
    "match-clamp": Look("match", palette.GREEN, "v"),
    "cross-natural": Look("cross", palette.BLACK, "X", DASHED, filled=False),
    "cross-clamp": Look("cross", palette.BLACK, "X"),
    "random-natural": Look("random", palette.SKY, "h", DASHED, filled=False),
    "random-clamp": Look("random", palette.SKY, "h"),
    "permute-natural": Look("permute", palette.MUSTARD, "p", DOTTED, filled=False),
    "permute-clamp": Look("permute", palette.MUSTARD, "p", MIXED),
    "placebo": Look("placebo", palette.ASH, "x", DOTTED),
    "null": Look("null", palette.SILVER, "+", MIXED),
    "without-principal": Look("without principal", palette.VERMILION, "s"),
    "without-random": Look("without random", palette.STONE, "D", filled=False),
    "only-principal": Look("only principal", palette.GREEN, "^"),
    # what is done to the carry of OPEN
    "zero": Look("zero", palette.VERMILION, "s", DASHED),
    "zero-update": Look("zero (u)", palette.ORANGE, "D", filled=False),
    "reset": Look("reset once", palette.GREEN, "^"),
    "adam": Look("Adam", palette.BLACK, "X"),
    "initial": Look("initial policy", palette.STONE, "P"),
    # value interfaces
    "default": Look("default", palette.BLUE, "o"),
    "support30": Look("support 30", palette.GREEN, "s"),
    "linear": Look("linear", palette.STONE, "D"),
    # learners
    "rule": Look("{}", palette.BLUE, "o"),
    "rule-pin": Look("{}, pinned", palette.VERMILION, "s", DASHED),
    "rule-null": Look("null rule", palette.SILVER, "+", MIXED),
    "rule-hold": Look("{}, held", palette.ORANGE, "^", MIXED),
    "rule-freeze": Look("{}, frozen", palette.STONE, "P", DASHED),
    "rule-freeze-40": Look("{}, frozen at 40", palette.STONE, "P", DOTTED, filled=False),
    "rule-no-aux": Look("{}, no aux", palette.SKY, "h", MIXED),
    "rule-entropy": Look("{}, entropy", palette.SKY, "h", DASHED),
    "rule-lr3e4": Look(
        f"{{}}, lr {rate_label(VARIANTS['disco-lr3e4'].learning_rate)}", palette.SKY, "h", DOTTED
    ),
    "rule-legacy": Look("{}, legacy", palette.BLUE, "o", DASHED, filled=False),
    "a2c": Look("A2C", palette.GREEN, "v"),
    "a2c-popart": Look("A2C-PopArt", palette.MUSTARD, "p", DASHED),
    "ppo": Look("PPO", palette.PURPLE, "D"),
    "dqn": Look("DQN", palette.BLACK, "X"),
    "dqn-28672": Look("DQN 28,672", palette.BROWN, "<", DASHED),
    "dqn-cleared": Look("DQN cleared", palette.OLIVE, ">", DOTTED, filled=False),
    "dqn-cleared-interactions": Look("DQN cleared, no restart", palette.OLIVE, "*", MIXED),
    "open": Look("OPEN", palette.WINE, "s"),
    "open-adam": Look("PPO, Adam", palette.PURPLE, "D", DASHED),
    "rule-minatar": Look("{} (M1)", palette.BLUE, "o", DOTTED, filled=False),
    "random": Look("random policy", palette.ASH, "x", DOTTED),
}
"""Arms that have a look of their own, in the order of all figures; no two arms of one assay have
the same. Every other arm gets one by :func:`automatic_looks`."""

PINNED = "-pin"
SPARE_MARKERS = ("<", ">", "*", "d")
"""As many as share no divisor with the spare colours, so that all pairs of both occur."""


def automatic_looks(arms: Iterable[str]) -> dict[str, Look]:
    """Return looks for ``arms`` that have none of their own, under their own names.

    An arm has the same look in all figures, unless another one there has it already. As long as
    there are spare colours, no two have the same colour.
    """
    pairs = [
        (palette.SPARE[turn % len(palette.SPARE)], SPARE_MARKERS[turn % len(SPARE_MARKERS)])
        for turn in range(len(palette.SPARE) * len(SPARE_MARKERS))
    ]
    looks: dict[str, Look] = {}
    for arm in sorted(set(arms)):
        first = crc32(arm.encode()) % len(pairs)
        turned = pairs[first:] + pairs[:first]
        taken = {(look.colour, look.marker) for look in looks.values()}
        colours = Counter(look.colour for look in looks.values())
        free = [pair for pair in turned if pair not in taken] or turned
        colour, marker = min(free, key=lambda pair: colours[pair[0]])
        looks[arm] = Look(arm, colour, marker, MIXED)
    return looks


_subject: ContextVar[str] = ContextVar("subject", default=UNKNOWN)
_automatic: ContextVar[Mapping[str, Look] | None] = ContextVar("automatic", default=None)


def subject() -> str:
    """Return the name of the rule under audit in what is being drawn."""
    return _subject.get()


@contextmanager
def naming(name: str, arms: Collection[str] = ()) -> Iterator[None]:
    """Name arms after the rule under audit, which is printed as ``name``.

    Those of ``arms`` without a look of their own get different ones.
    """
    unknown = [arm for arm in map(canonical_arm, arms) if _known_look(arm) is None]
    tokens = _subject.set(name), _automatic.set(automatic_looks(unknown))
    try:
        yield
    finally:
        _subject.reset(tokens[0])
        _automatic.reset(tokens[1])


def arm_name(arm: str, subject: str) -> str:
    """Return the printed name of an arm under the rule that is printed as ``subject``.

    >>> arm_name("rule-pin", "Sprout"), arm_name("a2c", "Sprout"), arm_name("mine", "Sprout")
    ('Sprout, pinned', 'A2C', 'mine')
    """
    return ARMS[arm].name.format(subject) if arm in ARMS else arm


def look(arm: str) -> Look:
    """Return the look of ``arm``, named after the rule under audit (see :func:`naming`).

    An arm that is not in the table, but whose unpinned twin is, looks like its twin with dashes.
    """
    arm = canonical_arm(arm)
    found = _known_look(arm) or (_automatic.get() or {}).get(arm) or automatic_looks([arm])[arm]
    return found._replace(name=arm_name(arm, subject()))


def _known_look(arm: str) -> Look | None:
    """Return the look of ``arm`` from the table, or that of its unpinned twin with dashes."""
    twin = ARMS.get(arm.removesuffix(PINNED))
    return ARMS.get(arm) or (twin and twin._replace(line=DASHED))


def in_order(arms: Iterable[str]) -> list[str]:
    """Return ``arms``, each once, in the order of all figures."""
    known = list(ARMS)
    return sorted(
        set(arms), key=lambda arm: (known.index(arm) if arm in known else len(known), arm)
    )
