"""Families of planned comparisons, whose intervals share one error rate.

A family is fixed before anything runs. It keeps its size when a grid is narrowed, when lifetimes
are missing, or when some of its members belong to assays that were not run: otherwise leaving out
what failed would make the rest look surer.
"""

from __future__ import annotations

from rulescope.stats import Family

HALF_BEST = tuple(f"contrast/{task}/half-best" for task in ("catch", "catch-dense", "catch-long"))
"""E1: live minus pinned window width."""
INHERITANCE = tuple(f"interaction/{scale}" for scale in ("0.001", "1000"))
"""E2: what the donor's scale matters more under a clamp than in a natural transplant."""
REPLAY = tuple(
    f"contrast/{change}/{replay}"
    for change in ("action-flip", "reward-move")
    for replay in ("100k", "28672", "cleared")
)
"""E3: post-switch area, the rule minus DQN with each replay memory."""

PRIMARY = Family(
    "primary",
    (
        *(f"E1:{key}" for key in HALF_BEST),
        *(f"E2:{key}" for key in INHERITANCE),
        *(f"E3:{key}" for key in REPLAY),
    ),
)
"""The eleven primary comparisons of the audit."""

STATE_EFFECTS = tuple(
    f"effect/{interface}/{scale}"
    for interface in ("default", "support30", "linear")
    for scale in ("0.001", "1", "1000")
)
STATE_INTERACTIONS = tuple(
    f"interaction/{interface}/{scale}"
    for interface in ("support30", "linear")
    for scale in ("0.001", "1", "1000")
)
INTERFACE_STATE = Family(
    "interface-state", tuple(f"P1:{key}" for key in (*STATE_EFFECTS, *STATE_INTERACTIONS))
)
"""The fifteen comparisons of P1, a family of their own."""

OPEN_GAMES = ("gymnax-breakout", "gymnax-freeway")
OPEN_SCALES = ("0.1", "1", "10")
CARRY_CONTRASTS = (
    "live-minus-zero",
    "interaction",
    "reset-minus-live",
    "early-reset",
    "live-minus-initial",
    "live-minus-random",
)
OPEN_CARRY = Family(
    "open-carry",
    tuple(
        f"OPEN:{contrast}/{game}/{scale}"
        for contrast in CARRY_CONTRASTS
        for game in OPEN_GAMES
        for scale in OPEN_SCALES
        if (contrast, scale) != ("interaction", "1")
    ),
)
"""The 34 contrasts of the audit of OPEN's carry. Six of them compare learners soon after the reset,
when no policy is evaluated: they cannot be estimated, and stay in the family."""

CONTEXT_PAIRS = (("open", "open-adam"), ("rule", "open"), ("rule", "open-adam"))
MINATAR_CONTEXT = Family(
    "minatar-context",
    tuple(
        f"minatar-context:{first}-minus-{second}/{game}/{scale}"
        for first, second in CONTEXT_PAIRS
        for game in OPEN_GAMES
        for scale in ("0.01", *OPEN_SCALES, "100")
    ),
)
"""The thirty differences between learners in MinAtar at one number of interactions."""
