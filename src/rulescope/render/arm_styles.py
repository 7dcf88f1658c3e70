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


class ArmStyle(NamedTuple):
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


ARMS: Mapping[str, ArmStyle] = {
    # what is done to the state of the rule under audit
    "live": ArmStyle("live", palette.BLUE, "o"),
    "pin": ArmStyle("pin", palette.VERMILION, "s", DASHED),
    "hold": ArmStyle("hold", palette.ORANGE, "^", MIXED),
    "both": ArmStyle("both", palette.PURPLE, "D", DOTTED),
    "freeze": ArmStyle("freeze", palette.STONE, "P"),
    "match-natural": ArmStyle("match", palette.GREEN, "v", DASHED, filled=False),
    "match-clamp": ArmStyle("match", palette.GREEN, "v"),
    "cross-natural": ArmStyle("cross", palette.BLACK, "X", DASHED, filled=False),
    "cross-clamp": ArmStyle("cross", palette.BLACK, "X"),
    "random-natural": ArmStyle("random", palette.SKY, "h", DASHED, filled=False),
    "random-clamp": ArmStyle("random", palette.SKY, "h"),
    "permute-natural": ArmStyle("permute", palette.MUSTARD, "p", DOTTED, filled=False),
    "permute-clamp": ArmStyle("permute", palette.MUSTARD, "p", MIXED),
    "placebo": ArmStyle("placebo", palette.ASH, "x", DOTTED),
    "null": ArmStyle("null", palette.SILVER, "+", MIXED),
    "without-principal": ArmStyle("without principal", palette.VERMILION, "s"),
    "without-random": ArmStyle("without random", palette.STONE, "D", filled=False),
    "only-principal": ArmStyle("only principal", palette.GREEN, "^"),
    # what is done to the carry of OPEN
    "zero": ArmStyle("zero", palette.VERMILION, "s", DASHED),
    "zero-update": ArmStyle("zero (u)", palette.ORANGE, "D", filled=False),
    "reset": ArmStyle("reset once", palette.GREEN, "^"),
    "adam": ArmStyle("Adam", palette.BLACK, "X"),
    "initial": ArmStyle("initial policy", palette.STONE, "P"),
    # value interfaces
    "default": ArmStyle("default", palette.BLUE, "o"),
    "support30": ArmStyle("support 30", palette.GREEN, "s"),
    "linear": ArmStyle("linear", palette.STONE, "D"),
    # learners
    "rule": ArmStyle("{}", palette.BLUE, "o"),
    "rule-pin": ArmStyle("{}, pinned", palette.VERMILION, "s", DASHED),
    "rule-null": ArmStyle("null rule", palette.SILVER, "+", MIXED),
    "rule-hold": ArmStyle("{}, held", palette.ORANGE, "^", MIXED),
    "rule-freeze": ArmStyle("{}, frozen", palette.STONE, "P", DASHED),
    "rule-freeze-40": ArmStyle("{}, frozen at 40", palette.STONE, "P", DOTTED, filled=False),
    "rule-no-aux": ArmStyle("{}, no aux", palette.SKY, "h", MIXED),
    "rule-entropy": ArmStyle("{}, entropy", palette.SKY, "h", DASHED),
    "rule-lr3e4": ArmStyle(
        f"{{}}, lr {rate_label(VARIANTS['disco-lr3e4'].learning_rate)}", palette.SKY, "h", DOTTED
    ),
    "rule-legacy": ArmStyle("{}, legacy", palette.BLUE, "o", DASHED, filled=False),
    "a2c": ArmStyle("A2C", palette.GREEN, "v"),
    "a2c-popart": ArmStyle("A2C-PopArt", palette.MUSTARD, "p", DASHED),
    "ppo": ArmStyle("PPO", palette.PURPLE, "D"),
    "dqn": ArmStyle("DQN", palette.BLACK, "X"),
    "dqn-28672": ArmStyle("DQN 28,672", palette.BROWN, "<", DASHED),
    "dqn-cleared": ArmStyle("DQN cleared", palette.OLIVE, ">", DOTTED, filled=False),
    "dqn-cleared-interactions": ArmStyle("DQN cleared, no restart", palette.OLIVE, "*", MIXED),
    "dpo": ArmStyle("DPO", palette.PURPLE, ">", MIXED, filled=False),
    "lpo": ArmStyle("LPO", palette.BROWN, "d", DOTTED, filled=False),
    "lpg": ArmStyle("LPG", palette.WINE, "<", DASHED, filled=False),
    "ta-lpg": ArmStyle("TA-LPG", palette.WINE, "^", DOTTED),
    "a2c-cbp": ArmStyle("A2C, CBP", palette.GREEN, "v", DOTTED, filled=False),
    "ppo-cbp": ArmStyle("PPO, CBP", palette.PURPLE, "D", DOTTED, filled=False),
    "dqn-cbp": ArmStyle("DQN, CBP", palette.BLACK, "X", DOTTED, filled=False),
    "open": ArmStyle("OPEN", palette.WINE, "s"),
    "open-adam": ArmStyle("PPO, Adam", palette.PURPLE, "D", DASHED),
    "rule-minatar": ArmStyle("{} (M1)", palette.BLUE, "o", DOTTED, filled=False),
    "random": ArmStyle("random policy", palette.ASH, "x", DOTTED),
}
"""Arms that have a style of their own, in the order of all figures; no two arms of one assay have
the same. Every other arm gets one by :func:`automatic_styles`."""

PINNED = "-pin"
SPARE_MARKERS = ("<", ">", "*", "d")
"""As many as share no divisor with the spare colours, so that all pairs of both occur."""


def automatic_styles(arms: Iterable[str]) -> dict[str, ArmStyle]:
    """Return styles for ``arms`` that have none of their own, under their own names.

    An arm has the same style in all figures, unless another one there has it already. As long as
    there are spare colours, no two have the same colour.
    """
    pairs = [
        (palette.SPARE[turn % len(palette.SPARE)], SPARE_MARKERS[turn % len(SPARE_MARKERS)])
        for turn in range(len(palette.SPARE) * len(SPARE_MARKERS))
    ]
    styles: dict[str, ArmStyle] = {}
    for arm in sorted(set(arms)):
        first = crc32(arm.encode()) % len(pairs)
        turned = pairs[first:] + pairs[:first]
        taken = {(style.colour, style.marker) for style in styles.values()}
        colours = Counter(style.colour for style in styles.values())
        free = [pair for pair in turned if pair not in taken] or turned
        colour, marker = min(free, key=lambda pair: colours[pair[0]])
        styles[arm] = ArmStyle(arm, colour, marker, MIXED)
    return styles


_subject: ContextVar[str] = ContextVar("subject", default=UNKNOWN)
_automatic: ContextVar[Mapping[str, ArmStyle] | None] = ContextVar("automatic", default=None)


def subject() -> str:
    """Return the name of the rule under audit in what is being drawn."""
    return _subject.get()


@contextmanager
def naming(name: str, arms: Collection[str] = ()) -> Iterator[None]:
    """Name arms after the rule under audit, which is printed as ``name``.

    Those of ``arms`` without a style of their own get different ones.
    """
    unknown = [arm for arm in map(canonical_arm, arms) if _known_style(arm) is None]
    tokens = _subject.set(name), _automatic.set(automatic_styles(unknown))
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


def arm_style(arm: str) -> ArmStyle:
    """Return the style of ``arm``, named after the rule under audit (see :func:`naming`).

    An arm that is not in the table, but whose unpinned twin is, has its twin's style with dashes.
    """
    arm = canonical_arm(arm)
    found = _known_style(arm) or (_automatic.get() or {}).get(arm) or automatic_styles([arm])[arm]
    return found._replace(name=arm_name(arm, subject()))


def _known_style(arm: str) -> ArmStyle | None:
    """Return the style of ``arm`` from the table, or that of its unpinned twin with dashes."""
    twin = ARMS.get(arm.removesuffix(PINNED))
    return ARMS.get(arm) or (twin and twin._replace(line=DASHED))


def in_order(arms: Iterable[str]) -> list[str]:
    """Return ``arms``, each once, in the order of all figures."""
    known = list(ARMS)
    return sorted(
        set(arms), key=lambda arm: (known.index(arm) if arm in known else len(known), arm)
    )
