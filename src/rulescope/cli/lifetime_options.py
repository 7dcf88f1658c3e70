"""The options by which a person describes one lifetime: who lives, and what is done to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import typer

from rulescope.assays.subject import Subject, apply_agent, apply_variant, named
from rulescope.audit import subjects
from rulescope.core.entry_points import list_names
from rulescope.core.errors import SpecError, nearest
from rulescope.learners.plugin_rule import pin_rule
from rulescope.spec.disco_config import AGENTS, INTERFACES, Disco
from rulescope.spec.learner_config import VARIANTS, LearnerSpec, adapt_to_world
from rulescope.spec.open_config import Open
from rulescope.spec.run_spec import Pin, PinSteps
from rulescope.spec.world_config import CHANGES, Boundary, Change, EnvironmentSpec

T = TypeVar("T")

DISCO_OPTIONS = ("agent", "interface")
RUN_OPTIONS = (
    *DISCO_OPTIONS,
    "rule",
    "learner",
    "env",
    "scale",
    "terminals",
    "change",
    "pin",
    "iterations",
    "lanes",
    "steps",
    "log_every",
    "evaluate",
    "seed",
    "learning_rate",
)


def refuse(context: typer.Context, names: tuple[str, ...], why: str) -> None:
    """Refuse options that were given but would be ignored or contradict another."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise SpecError(f"--{name.replace('_', '-')}: {why}")


def chosen_learner(
    context: typer.Context,
    learner: str,
    rule: str | None,
    agent: str,
    interface: str,
    weights: Path | None,
    world: EnvironmentSpec,
) -> tuple[LearnerSpec, Path | None]:
    """Return the learner that the options describe, and where the weights of its rule are."""
    # Suited to the world first: what OPEN gets there by default must not stand in for --rule.
    who = adapt_to_world(
        pick_any("learner", learner, VARIANTS, list_names("rule"), pin_rule), world
    )
    if not isinstance(who, Disco):
        refuse(context, DISCO_OPTIONS, nothing(learner))
    if not isinstance(who, Disco | Open):
        refuse(context, ("rule",), nothing(learner))
        return who, weights
    _pick("agent", agent, AGENTS)
    _pick("interface", interface, INTERFACES)
    subject: Subject | None = named(Disco().rule)
    if rule is not None:
        audited, weights = subjects.find(rule, weights)
        subject = audited.subject
        if isinstance(who, Open):
            who = msgspec.structs.replace(who, rule=audited.rule)
    if isinstance(who, Open):
        return who, weights
    if subject is None or not isinstance(subject.learner, Disco):
        raise SpecError(f"--rule: {rule!r} is not a Disco rule, such as disco103 or sprout")
    if not subject.has_agents:
        refuse(context, ("agent",), f"means nothing to {rule!r}, which has a learner of its own")
        agent = ""
    said = apply_agent(subject.learner, agent, interface)
    return adapt_to_world(apply_variant(said, learner), world), weights


def nothing(learner: str) -> str:
    """Return why an option is refused that the learner called so has no use for."""
    return f"means nothing to the learner {learner!r}"


def _pick(option: str, name: str, choices: dict[str, T]) -> T:
    if name not in choices:
        raise SpecError(f"--{option}: no {name!r}{nearest(name, choices)}")
    return choices[name]


def pick_any(
    option: str, name: str, known: dict[str, T], offered: list[str], pinned: Callable[[str], T]
) -> T:
    """Return what is known by ``name`` here, or what another package offers under it."""
    if name in known and name in offered:
        # Either could be meant, and the results of the wrong one would look right.
        raise SpecError(f"--{option}: {name!r} is also the name of a plug-in, which must change it")
    if name in offered:
        return pinned(name)
    if name not in known:
        raise SpecError(f"--{option}: no {name!r}{nearest(name, [*known, *offered])}")
    return known[name]


def pinned(text: str) -> Pin:
    """Return what ``--pin`` asks for."""
    carrier, _, every = text.partition(":")
    if every not in ("", "iteration", "step"):
        raise SpecError(f"--pin: no {every!r}{nearest(every, ('iteration', 'step'))}")
    return (PinSteps if every == "step" else Pin)(carrier=carrier)


def boundary_of(terminals: str) -> Boundary:
    """Return what ``--terminals`` asks for."""
    if terminals.isdecimal():
        return Boundary(terminals="synthetic", interval=int(terminals))
    if terminals == "episodic":
        return Boundary()
    if terminals == "masked":
        return Boundary(terminals="masked")
    choices = ("episodic", "masked", "29")
    raise SpecError(f"--terminals: no {terminals!r}{nearest(terminals, choices)}")


def change_of(text: str | None) -> Change | None:
    """Return what ``--change`` asks for, such as ``action-flip@1500``."""
    if text is None:
        return None
    kind, _, at = text.partition("@")
    make = _pick("change", kind, CHANGES)
    if not at.isdecimal():
        raise SpecError(f"--change: {text!r} does not say after which iteration; try {kind}@1500")
    return make(at=int(at))
