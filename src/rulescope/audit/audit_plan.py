"""The assays that make up an audit, and how much of each is run at each preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rulescope.assays import Assay, Budget, find, narrowed
from rulescope.assays.subject import Subject
from rulescope.audit.history_answer import LEAST_SEEDS
from rulescope.core.errors import SpecError, nearest
from rulescope.learners.learner_base import HISTORY
from rulescope.learners.open_config import Open

Chosen = Mapping[str, Any]
"""Keywords of :func:`rulescope.assays.narrowed`."""

AGENT = "published"
"""Conventions of the learner in an audit of a released rule, unless another agent is named."""
_LEARNERS = ("rule", "rule-pin", "rule-null", "a2c")
_CROSSED = ("live", "match-clamp", "match-natural", "cross-clamp", "cross-natural")
_ON_HISTORY = ("pin", "rule-pin", "rule-freeze")
"""Arms that intervene on the history; a rule without one has only the others."""
_FEW_REPLAYS = ("rule", "rule-freeze", "dqn", "dqn-cleared")
_REPLAYS = ("rule", "rule-freeze", "dqn", "dqn-28672", "dqn-cleared")
_WIDE: dict[str, Chosen] = {
    "exposure": {"arms": _LEARNERS},
    "E1": {"arms": ("live", "pin"), "tasks": ("catch",)},
    "E2": {"arms": _CROSSED},
    "E-A3c": {"arms": ("rule", "rule-pin", "rule-null", "a2c")},
    "E3": {"arms": _REPLAYS, "tasks": ("catch",), "conditions": ("action-flip", "reward-move")},
    "E-A5": {"arms": ("rule", "a2c", "dqn")},
}
"""What a profile reads, of the budgets that an assay has itself."""
_HORIZON: dict[str, Chosen] = {"F2": {"arms": ("rule", "rule-pin", "a2c", "dqn")}}

DISCO: dict[str, dict[str, Chosen]] = {
    "smoke": {
        "exposure": {"arms": _LEARNERS},
        "E1": {"arms": ("live", "pin")},
        "E2": {"arms": _CROSSED, "scales": (10.0,)},
        "E-A3c": {"arms": ("rule", "rule-pin", "a2c")},
        "E3": {"arms": _FEW_REPLAYS},
        "E-A5": {"arms": ("rule", "a2c")},
    },
    "quick": {
        "exposure": {"seeds": LEAST_SEEDS, "iterations": 600, "arms": _LEARNERS},
        "E1": {
            "seeds": LEAST_SEEDS,
            "iterations": 600,
            "arms": ("live", "pin"),
            "scales": (1e-1, 1.0, 1e1, 1e2),
        },
        "E2": {"seeds": LEAST_SEEDS, "iterations": 600, "arms": _CROSSED, "scales": (10.0,)},
        "E-A3c": {
            "seeds": LEAST_SEEDS,
            "iterations": 600,
            "arms": ("rule", "rule-pin", "a2c"),
        },
        "E3": {"seeds": LEAST_SEEDS, "iterations": 1000, "arms": _FEW_REPLAYS},
        "E-A5": {
            "seeds": LEAST_SEEDS,
            "episodes": 4000,
            "arms": ("rule", "a2c", "dqn"),
            "tasks": ("deep-sea-8",),
        },
    },
    "standard": {"F2": {**_HORIZON["F2"], "seeds": LEAST_SEEDS}} | _WIDE,
    "paper": _HORIZON | _WIDE,
}
"""For rules that set a learner's targets, and for plug-ins: by preset and assay."""

FIGURES: dict[str, tuple[str, ...]] = {
    "exposure": ("v5:fig:app-streams",),
    "E1": ("scale-audit", "fig:detail-scale"),
    "E2": ("fig:detail-inheritance",),
    "E-A3c": ("v5:fig:app-streams",),
    "E3": ("change-streams",),
    "E-A5": ("v5:fig:app-exploration",),
    "F2": ("fig:behavior",),
}
"""What is drawn of each assay in an audit: what needs no other assay beside it."""

OPEN: dict[str, dict[str, Chosen]] = {
    "smoke": {"OPEN": {}},
    "quick": {"OPEN": {"seeds": LEAST_SEEDS}},
    "standard": {"OPEN": {"seeds": LEAST_SEEDS}},
    "paper": {"OPEN": {}},
}
"""For rules that are optimisers. Their history is asked for in the games they were made for."""


def budgets(
    rule: str,
    subject: Subject | None,
    preset: str,
    *,
    seeds: int | None = None,
    only: Sequence[str] = (),
    agent: str | None = None,
) -> list[tuple[Assay, Budget]]:
    """Return the assays of an audit, each with its budget.

    ``subject`` is None for ``rule`` that is an optimiser. ``seeds`` overrides the preset's;
    ``only`` names the assays to be run, all if empty. All assays of one audit have one ``agent``,
    whatever the cohorts of their published counterparts.
    """
    if agent is not None and (subject is None or not subject.has_agents):
        raise SpecError(f"--agent: {rule!r} has a learner of its own, so no agents")
    planned = _possible((OPEN if subject is None else DISCO)[preset], subject)
    more: Chosen = {} if seeds is None else {"seeds": seeds}
    if subject is not None and subject.has_agents:
        more = {**more, "agent": agent or AGENT}
    wanted = [find(name).id for name in only]
    for name in wanted:
        if name not in planned:
            raise SpecError(f"--only: {name!r} is not in this audit{nearest(name, planned)}")
    return [
        (find(name), _budget(find(name), rule, subject, preset, {**chosen, **more}))
        for name, chosen in planned.items()
        if not wanted or name in wanted
    ]


def has_history(subject: Subject | None) -> bool:
    """Tell whether a rule carries a state through a lifetime that an audit can act on."""
    return subject is None or HISTORY in subject.learner.CARRIERS


def _possible(planned: Mapping[str, Chosen], subject: Subject | None) -> dict[str, Chosen]:
    """Return what can be asked: of a rule without history, nothing is transplanted."""
    return {name: c for name, c in planned.items() if has_history(subject) or name != "E2"}


def _budget(
    assay: Assay, rule: str, subject: Subject | None, preset: str, chosen: Chosen
) -> Budget:
    """Return the part of an assay that is ``chosen``, for one rule."""
    budget = assay.budget(preset)
    if subject is None:
        own = None if rule == budget.rule else rule
        # The usual rule is taken for each game's own, so it can be asked about its game alone.
        games = (f"gymnax-{rule.removeprefix('open-')}",) if rule == Open().rule else ()
        return narrowed(assay, budget, rule=own, tasks=games, **chosen)
    # Without weights there is no null rule.
    arms = [arm for arm in chosen["arms"] if arm != "rule-null" or subject.null is not None]
    if not has_history(subject):
        arms = [arm for arm in arms if arm not in _ON_HISTORY]
    return narrowed(assay, budget, subject=subject, **{**chosen, "arms": arms})
