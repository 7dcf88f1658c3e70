"""The rules that a store has lifetimes of, as assays can be asked about them.

Most are known by name. Who learns under a plug-in, or under the rule of a file, no name tells: the
learners in the store do. Nothing is imported or loaded for it, so that it does not matter whether a
plug-in is installed here, or where a file of weights is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import msgspec

from rulescope.assays import ASSAYS, narrowed
from rulescope.assays.subject import SMALL_NULL_RULE, Subject
from rulescope.core.errors import RulescopeError
from rulescope.rules.loading import CONTENT, FRESH
from rulescope.spec.disco_config import AGENTS, SPROUT, Disco
from rulescope.spec.plugin_config import Plugin
from rulescope.spec.run_spec import RunSpec


@dataclass(frozen=True)
class Variant:
    """A rule, perhaps with conventions, under which assays are tried."""

    options: tuple[tuple[str, str], ...] = ()
    """What asks for it by name: ``(("rule", "random:0"),)``; none for the published one."""
    subject: Subject | None = None
    """Who is audited, if no name tells."""
    tag: str = ""
    """What tells it from another rule of the same name: the beginning of its source's hash."""

    @property
    def asked(self) -> dict[str, Any]:
        """Keywords of :func:`rulescope.assays.narrowed`."""
        return dict(self.options) if self.subject is None else {"subject": self.subject}

    def arms(self, assay: str) -> tuple[str, ...]:
        """Return the arms of an assay that its learner can have."""
        return ASSAYS[assay].arms if self.subject is None else _possible(assay, self.subject)


PUBLISHED = Variant()


def variants(specs: Iterable[RunSpec]) -> list[Variant]:
    """Return the rules and agents that learners of ``specs`` have, the published ones first."""
    learners = Counter(spec.learner for spec in specs)
    ruled = [who for who in learners if hasattr(who, "rule")]
    plugins = Counter({who: n for who, n in learners.items() if isinstance(who, Plugin)})
    small = [who for who in ruled if isinstance(who, Disco) and _in_small(who)]
    named = {_named(who) for who in ruled if not isinstance(who, Plugin) and who not in small}
    filed = any(who.rule.startswith(CONTENT) for who in ruled)
    order = sorted(named, key=lambda each: (filed and _is_twin(each), each.options))
    return [PUBLISHED, *order, *_of_plugins(plugins), *_of_small(small)]


def _named(learner: Any) -> Variant:
    """Return by which options a learner is asked for."""
    agents = [
        name
        for name, conventions in AGENTS.items()
        if isinstance(learner, Disco) and conventions == learner.conventions
    ]
    return Variant((*(("agent", name) for name in agents[:1]), ("rule", str(learner.rule))))


def _is_twin(each: Variant) -> bool:
    """Tell whether a rule knows nothing: where rules of files are audited, it is beside them."""
    return dict(each.options)["rule"].startswith("random:")


def _of_plugins(learners: Counter[Plugin]) -> list[Variant]:
    """Return a variant for each source of each plug-in, with the learner that most lifetimes have.

    (Some assays have arms of other learning rates, and MinAtar takes another torso.)
    """
    usual: dict[tuple[str, str], Counter[Plugin]] = {}
    for who, count in learners.items():
        agent = msgspec.structs.replace(who.agent, torso="grid")
        plain = msgspec.structs.replace(who, agent=agent)
        usual.setdefault((who.rule, who.source), Counter())[plain] += count
    names = Counter(rule for rule, _ in usual)
    return [
        Variant(
            subject=Subject(max(sorted(found, key=repr), key=found.__getitem__), None),
            tag=source[:8] if names[rule] > 1 else "",
        )
        for (rule, source), found in sorted(usual.items())
    ]


def _in_small(learner: Disco) -> bool:
    """Tell whether a learner is the one that drives rules of files if they are small."""
    nameless = learner.rule.startswith((CONTENT, FRESH))
    return nameless and learner == msgspec.structs.replace(SPROUT, rule=learner.rule)


def _of_small(learners: Collection[Disco]) -> list[Variant]:
    """Return a variant for each small rule of a file; those that know nothing come last."""
    rules = sorted({who.rule for who in learners}, key=lambda rule: (rule.startswith(FRESH), rule))
    twins = [rule for rule in rules if rule.startswith(FRESH)]
    null = twins[0] if twins else SMALL_NULL_RULE
    return [
        Variant(subject=Subject(msgspec.structs.replace(SPROUT, rule=rule), null)) for rule in rules
    ]


@cache
def _possible(assay: str, subject: Subject) -> tuple[str, ...]:
    """Return the arms of an assay that ``subject`` can have, found by asking for each."""
    asked = ASSAYS[assay]
    budget = replace(asked.budget("smoke"), seeds=1)

    def can(*arms: str) -> bool:
        try:
            return bool(asked.grid(narrowed(asked, budget, arms=arms, subject=subject)))
        except RulescopeError:
            return False

    return asked.arms if can(*asked.arms) else tuple(arm for arm in asked.arms if can(arm))
