"""Who is audited: a rule, the learner that it drives, and a twin of the rule that knows nothing."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import asdict, replace

from rulescope.core.errors import SpecError
from rulescope.spec.disco_config import AGENTS, INTERFACES, VARIANTS, Disco, driven_by
from rulescope.spec.plugin_config import Plugin

NULL_RULE, SMALL_NULL_RULE = "random:0", "sprout-random:0"
"""Twins of Disco103 and of Sprout: the same architecture without the knowledge."""


@dataclass(frozen=True)
class Subject:
    """A rule, and who learns under it."""

    learner: Disco | Plugin
    """With the rule's name in it."""
    null: str | None
    """Rule of the ``null`` arm; None if the rule has no weights that could be drawn anew."""

    @property
    def has_agents(self) -> bool:
        """Whether its learner is the one that implementations differ about."""
        return self.learner == replace(Disco(), rule=self.learner.rule)

    def require_agents(self, option: str = "--agent") -> None:
        """Raise an error that names ``option`` unless the learner comes as several agents."""
        if not self.has_agents:
            rule = self.learner.rule
            raise SpecError(f"{option}: {rule!r} has a learner of its own, so no agents")

    def twin(self) -> Disco:
        """Return the learner of the ``null`` arm."""
        if self.null is None or isinstance(self.learner, Plugin):
            raise SpecError(f"--arms: {self.learner.rule!r} has no weights, so no 'null' arm")
        return replace(self.learner, rule=self.null)


def named(rule: str) -> Subject:
    """Return the subject that a rule's name stands for."""
    own = Subject(driven_by(rule), NULL_RULE)
    return own if own.has_agents else Subject(own.learner, SMALL_NULL_RULE)


def spoken(learner: Disco, agent: str, interface: str) -> Disco:
    """Return ``learner`` with the conventions of ``agent``, its own if that is empty.

    And with the value interface called so, its own if that is ``default``.
    """
    if agent:
        learner = replace(learner, conventions=AGENTS[agent])
    if interface != "default":
        learner = replace(learner, interface=INTERFACES[interface])
    return learner


def varied(learner: Disco | Plugin, variant: str) -> Disco | Plugin:
    """Return ``learner`` with what sets the variant called so apart from the default learner."""
    if variant == "disco":
        return learner
    if isinstance(learner, Plugin):
        raise SpecError(f"--arms: {variant!r} is a variant of Disco; {learner.rule!r} has none")
    usual, other = asdict(Disco()), asdict(VARIANTS[variant])
    return replace(learner, **{key: other[key] for key in other if other[key] != usual[key]})
