"""The assays that make up an audit, and how much of each is run at each preset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rulescope.assays import Assay, Budget, Selection, find, narrowed
from rulescope.assays.subject import Subject
from rulescope.audit.history import LEAST_SEEDS
from rulescope.core.errors import SpecError, nearest
from rulescope.learners.learner_base import HISTORY
from rulescope.learners.open_config import Open

AGENT = "published"
"""Conventions of the learner in an audit of a released rule, unless another agent is named."""
_LEARNERS = ("rule", "rule-pin", "rule-null", "a2c")
_CROSSED = ("live", "match-clamp", "match-natural", "cross-clamp", "cross-natural")
_ON_HISTORY = ("pin", "rule-pin", "rule-freeze")
"""Arms that intervene on the history; a rule without one has only the others."""
_FEW_REPLAYS = ("rule", "rule-freeze", "dqn", "dqn-cleared")
_REPLAYS = ("rule", "rule-freeze", "dqn", "dqn-28672", "dqn-cleared")
_WIDE: dict[str, Selection] = {
    "exposure": Selection(arms=_LEARNERS),
    "E1": Selection(arms=("live", "pin"), tasks=("catch",)),
    "E2": Selection(arms=_CROSSED),
    "E-A3c": Selection(arms=("rule", "rule-pin", "rule-null", "a2c")),
    "E3": Selection(arms=_REPLAYS, tasks=("catch",), conditions=("action-flip", "reward-move")),
    "E-A5": Selection(arms=("rule", "a2c", "dqn")),
}
"""What a profile reads, of the budgets that an assay has itself."""
_HORIZON: dict[str, Selection] = {"F2": Selection(arms=("rule", "rule-pin", "a2c", "dqn"))}

DISCO: dict[str, dict[str, Selection]] = {
    "smoke": {
        "exposure": Selection(arms=_LEARNERS),
        "E1": Selection(arms=("live", "pin")),
        "E2": Selection(arms=_CROSSED, scales=(10.0,)),
        "E-A3c": Selection(arms=("rule", "rule-pin", "a2c")),
        "E3": Selection(arms=_FEW_REPLAYS),
        "E-A5": Selection(arms=("rule", "a2c")),
    },
    "quick": {
        "exposure": Selection(seeds=LEAST_SEEDS, iterations=600, arms=_LEARNERS),
        "E1": Selection(
            seeds=LEAST_SEEDS,
            iterations=600,
            arms=("live", "pin"),
            scales=(1e-1, 1.0, 1e1, 1e2),
        ),
        "E2": Selection(seeds=LEAST_SEEDS, iterations=600, arms=_CROSSED, scales=(10.0,)),
        "E-A3c": Selection(
            seeds=LEAST_SEEDS,
            iterations=600,
            arms=("rule", "rule-pin", "a2c"),
        ),
        "E3": Selection(seeds=LEAST_SEEDS, iterations=1000, arms=_FEW_REPLAYS),
        "E-A5": Selection(
            seeds=LEAST_SEEDS,
            episodes=4000,
            arms=("rule", "a2c", "dqn"),
            tasks=("deep-sea-8",),
        ),
    },
    "standard": {"F2": replace(_HORIZON["F2"], seeds=LEAST_SEEDS)} | _WIDE,
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

OPEN: dict[str, dict[str, Selection]] = {
    "smoke": {"OPEN": Selection()},
    "quick": {"OPEN": Selection(seeds=LEAST_SEEDS)},
    "standard": {"OPEN": Selection(seeds=LEAST_SEEDS)},
    "paper": {"OPEN": Selection()},
}
"""For rules that are optimisers. Their history is asked for in the games they were made for."""


def budgets(
    subject: Subject,
    preset: str,
    *,
    seeds: int | None = None,
    only: Sequence[str] = (),
    agent: str | None = None,
) -> list[tuple[Assay, Budget]]:
    """Return the assays of an audit, each with its budget.

    ``seeds`` overrides the preset's; ``only`` names the assays to be run, all if empty. All assays
    of one audit have one ``agent``, whatever the cohorts of their published counterparts.
    """
    if agent is not None:
        subject.require_agents()
    planned = _possible((OPEN if subject.family == "open" else DISCO)[preset], subject)
    wanted = [find(name).id for name in only]
    for name in wanted:
        if name not in planned:
            raise SpecError(f"--only: {name!r} is not in this audit{nearest(name, planned)}")
    found = []
    for name, chosen in planned.items():
        if not wanted or name in wanted:
            selection = replace(
                _for_subject(chosen, subject),
                seeds=chosen.seeds if seeds is None else seeds,
                agent=(agent or AGENT) if subject.has_agents else None,
            )
            found.append((find(name), narrowed(find(name), find(name).budget(preset), selection)))
    return found


def has_history(subject: Subject) -> bool:
    """Return whether a rule carries a state through a lifetime that an audit can act on."""
    return HISTORY in subject.learner.CARRIERS


def _possible(planned: Mapping[str, Selection], subject: Subject) -> dict[str, Selection]:
    """Return the assays that are possible: a rule without history has nothing to transplant."""
    return {name: part for name, part in planned.items() if has_history(subject) or name != "E2"}


def _for_subject(chosen: Selection, subject: Subject) -> Selection:
    """Return ``chosen`` for one rule, with the arms and tasks that are possible for it."""
    if subject.family == "open":
        # The usual rule is taken for each game's own, so its own game is the only possible one.
        usual = subject.rule == Open().rule
        games = (f"gymnax-{subject.rule.removeprefix('open-')}",) if usual else ()
        return replace(chosen, subject=subject, tasks=games)
    # Without weights there is no null rule.
    arms = [arm for arm in chosen.arms if arm != "rule-null" or subject.null is not None]
    if not has_history(subject):
        arms = [arm for arm in arms if arm not in _ON_HISTORY]
    return replace(chosen, subject=subject, arms=arms)
