"""Names as tables and figures print them: of the rule under audit, worlds, learning rates.

Printed names of arms stand with their colours in :mod:`rulescope.render.arm_styles`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

from rulescope.rules.rule_weights import short


@runtime_checkable
class OfRule(Protocol):
    """Results of lifetimes under a rule."""

    @property
    def rule(self) -> str:
        """The rule under audit."""
        ...

    @property
    def axes(self) -> Mapping[str, tuple[str | float, ...]]:
        """The labels that were run, by axis."""
        ...


SUBJECTS = {"disco103": "Disco103", "sprout": "Sprout", "open": "OPEN"} | {
    name: name.upper() for name in ("dpo", "lpo", "lpg", "ta-lpg")
}
"""Names of rules that are written otherwise than they are typed."""
CATCH_NAMES = {"catch": "Catch", "catch-dense": "CatchDense", "catch-long": "CatchLong"}
"""Printed names of the worlds of E1."""
UNKNOWN = "rule"
"""Name of the rule under audit where no results tell."""


def subject_name(rule: str) -> str:
    """Return the name of the rule under audit as it is printed.

    >>> subject_name("disco103"), subject_name("sprout"), subject_name("mine")
    ('Disco103', 'Sprout', 'mine')
    """
    return SUBJECTS.get(rule, short(rule))


def subject_of(results: Iterable[OfRule]) -> str:
    """Return the printed name of the rule under audit in ``results``.

    Baselines have no rule, and OPEN is audited by itself: where an arm is named after the rule
    under audit, its results tell.
    """
    known = list(results)
    telling = [
        found
        for found in known
        if any(str(arm).startswith("rule") for arm in found.axes.get("arm", ()))
    ]
    return next((subject_name(found.rule) for found in (*telling, *known)), UNKNOWN)


def canonical_arm(arm: str) -> str:
    """Return the name of an arm; arms of the rule under audit may also be typed as ``disco``.

    >>> canonical_arm("disco-pin"), canonical_arm("a2c")
    ('rule-pin', 'a2c')
    """
    first, dash, rest = arm.partition("-")
    return f"rule{dash}{rest}" if first == "disco" else arm


def variant_of(learner: str) -> str:
    """Return the learner that an arm runs, by its name on the command line.

    >>> variant_of("rule-no-aux"), variant_of("a2c")
    ('disco-no-aux', 'a2c')
    """
    first, dash, rest = learner.partition("-")
    return f"disco{dash}{rest}" if first == "rule" else learner


def in_printed_order(arms: Iterable[str]) -> list[str]:
    """Return ``arms`` in the order of the published tables: alphabetical, the rule as Disco.

    >>> in_printed_order(["rule", "dqn", "a2c"])
    ['a2c', 'rule', 'dqn']
    """
    return sorted(arms, key=variant_of)


def rate_label(rate: float) -> str:
    """Return a learning rate as it is printed.

    >>> rate_label(0.01), rate_label(0.00025)
    ('1e-2', '2.5e-4')
    """
    digits, _, exponent = f"{rate:e}".partition("e")
    return f"{float(digits):g}e{int(exponent)}"
