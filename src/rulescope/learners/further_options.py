"""Fields of DPO, LPO and LPG as options that are typed: ``dpo:alpha=1``, ``--option alpha=1``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from rulescope.core.errors import SpecError
from rulescope.learners.further_config import Dpo, Further, Lpg
from rulescope.learners.plugin_options import list_arguments, make_options, name_options

NOT_OPTIONS = ("rule", "agent")
"""Fields with an option of their own, or none."""


def with_options(learner: Further, typed: Mapping[str, Any]) -> Further:
    """Return ``learner`` with the fields ``typed`` by name; text is converted."""
    for name in NOT_OPTIONS:
        if name in typed:
            raise SpecError(f"option {name!r}: {learner.kind!r} has no option of that name")
    made = make_options(learner.kind, type(learner), typed)
    return replace(learner, **{name: getattr(made, name) for name in typed})


def name_further(learner: Further) -> str:
    """Return the rule of ``learner`` as specifications name it, and its options.

    >>> name_further(Dpo(alpha=1.0)), name_further(Lpg(rule="lpg-random:3"))
    ('dpo:alpha=1.0', 'lpg-random:3')
    """
    name = learner.kind if isinstance(learner, Dpo) else learner.rule
    plain = replace(learner, agent=type(learner)().agent)
    if isinstance(plain, Lpg) and plain.lifetime_inputs == "raw":
        plain = replace(plain, lifetime_inputs="none")  # as its rule has it if nothing is typed
    given = [each for each in list_arguments(name, plain) if each.name != "rule"]
    return name_options(name, given)
