"""The specification of one run, from the names of its learner, rule and world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from rulescope import run_spec
from rulescope.assays.subject import DISCO103, apply_agent, apply_variant, find_subject
from rulescope.core.entry_points import list_names
from rulescope.core.errors import SpecError, nearest
from rulescope.envs.world_config import Boundary, Change, EnvironmentSpec
from rulescope.envs.world_names import find_world
from rulescope.learners.baseline_config import RandomPolicy
from rulescope.learners.disco_config import AGENTS, INTERFACES, Disco
from rulescope.learners.further_config import Dpo, Lpg, Lpo
from rulescope.learners.further_options import with_options
from rulescope.learners.learner_config import VARIANTS, LearnerSpec, Plugin, adapt_to_world
from rulescope.learners.open_config import Open
from rulescope.learners.plugin_rule import pin_rule
from rulescope.run_spec import Evaluation, Intervention, RunSpec

T = TypeVar("T")


def make_spec(
    learner: str = "disco",
    env: str = "catch",
    *,
    rule: str | None = None,
    agent: str | None = None,
    interface: str | None = None,
    options: Mapping[str, Any] | None = None,
    learning_rate: float | None = None,
    boundary: Boundary = Boundary(),  # noqa: B008  # immutable
    change: Change | None = None,
    scale: float = 1.0,
    interventions: tuple[Intervention, ...] = (),
    iterations: int | None = None,
    log_every: int | None = None,
    lanes: int | None = None,
    steps: int | None = None,
    seed: int = 0,
    evaluation: Evaluation | None = None,
    weights: Path | None = None,
) -> RunSpec:
    """Return the spec of one run, checked.

    ``learner`` and ``env`` are names of this package or of plug-ins; ``env`` may also be any
    Gymnasium world, see :mod:`rulescope.envs.world_names`. ``rule`` is a rule for a Disco, OPEN,
    LPO or LPG learner, instead of its own: anything that :func:`find_subject` knows; ``weights`` is
    where its weights are, if not in the usual places. ``agent`` (conventions) and ``interface`` (of
    values) are names that a Disco learner can have. ``options`` are those of a rule that has some,
    by name. The length and the size of an iteration are the learner's usual ones if None. A name
    that is unknown, or does not apply to the learner, is a :class:`SpecError` that names the
    option.
    """
    world = find_world(env)
    chosen = _make_learner(learner, world, rule, agent, interface, weights, options)
    if learning_rate is not None:
        if isinstance(chosen, RandomPolicy | Open):
            raise _not_applicable("learning_rate", learner)
        chosen = replace(chosen, learning_rate=learning_rate)
    usual = chosen.usual_shape
    return run_spec.checked(
        RunSpec(
            learner=chosen,
            environment=world,
            boundary=boundary,
            change=change,
            scale=scale,
            interventions=interventions,
            iterations=usual.iterations if iterations is None else iterations,
            log_every=usual.log_every if log_every is None else log_every,
            lanes=usual.lanes if lanes is None else lanes,
            steps=usual.steps if steps is None else steps,
            seed=seed,
            evaluation=evaluation,
        ),
        "options",
    )


def _make_learner(
    name: str,
    world: EnvironmentSpec,
    rule: str | None,
    agent: str | None,
    interface: str | None,
    weights: Path | None,
    options: Mapping[str, Any] | None,
) -> LearnerSpec:
    """Return the learner called ``name``, for ``world``, under ``rule``."""
    # Adapted to the world first: the default rule of OPEN there must not replace the given one.
    chosen = adapt_to_world(
        pick_any(
            "learner", name, VARIANTS, list_names("rule"), lambda found: pin_rule(found, options)
        ),
        world,
    )
    if options and isinstance(chosen, Dpo | Lpo | Lpg):
        chosen = with_options(chosen, options)
    elif options and not isinstance(chosen, Plugin):
        raise _not_applicable("option", name)
    if not isinstance(chosen, Disco):
        for option, value in (("agent", agent), ("interface", interface)):
            if value is not None:
                raise _not_applicable(option, name)
    if isinstance(chosen, Open):
        if rule is None:
            return chosen
        return replace(chosen, rule=find_subject(rule, weights)[0].rule)
    if isinstance(chosen, Lpo | Lpg):
        return chosen if rule is None else _with_rule(chosen, rule, weights)
    if not isinstance(chosen, Disco):
        if rule is not None:
            raise _not_applicable("rule", name)
        return chosen
    pick("agent", agent or "published", AGENTS)
    pick("interface", interface or "default", INTERFACES)
    subject = DISCO103 if rule is None else find_subject(rule, weights)[0]
    if subject.chosen:
        raise SpecError(f"--rule: {rule!r} names a history, for audits; use --pin CARRIER")
    if not isinstance(subject.learner, Disco):
        raise SpecError(f"--rule: {rule!r} is not a Disco rule, such as disco103 or sprout")
    if subject.has_agents:
        agent = agent or "published"
    elif agent is not None:
        raise SpecError(f"--agent: does not apply to {rule!r}, which has a learner of its own")
    own = apply_agent(subject.learner, agent or "", interface or "default")
    return adapt_to_world(apply_variant(own, name), world)


def _with_rule(learner: Lpo | Lpg, rule: str, weights: Path | None) -> Lpo | Lpg:
    """Return ``learner`` with the weights that ``rule`` names; they must be of its kind.

    A temporally-aware rule of LPG is read from its weights; its form is that of ``learner``.
    """
    found = find_subject(rule, weights)[0].learner
    if isinstance(learner, Lpo) and isinstance(found, Lpo):
        return replace(learner, rule=found.rule)
    if isinstance(learner, Lpg) and isinstance(found, Lpg):
        aware = found.lifetime_inputs != "none"
        keeps = aware == (learner.lifetime_inputs != "none")
        form = learner.lifetime_inputs if keeps else found.lifetime_inputs
        return replace(learner, rule=found.rule, lifetime_inputs=form)
    kind = learner.kind
    raise SpecError(f"--rule: {rule!r} is not a rule of {kind.upper()}, such as {kind}-random:0")


def pick(option: str, name: str, choices: Mapping[str, T]) -> T:
    """Return the choice called ``name``, or raise an error that names ``option``."""
    if name not in choices:
        raise SpecError(f"--{option}: no {name!r}{nearest(name, choices)}")
    return choices[name]


def pick_any(
    option: str,
    name: str,
    choices: Mapping[str, T],
    plugin_names: list[str],
    pin: Callable[[str], T],
) -> T:
    """Return the choice or the plug-in called ``name``."""
    if name in choices and name in plugin_names:
        # Either could be meant, and the results of the wrong one would look right.
        raise SpecError(f"--{option}: {name!r} is also the name of a plug-in, which must change it")
    if name in plugin_names:
        return pin(name)
    if name not in choices:
        raise SpecError(f"--{option}: no {name!r}{nearest(name, [*choices, *plugin_names])}")
    return choices[name]


def _not_applicable(option: str, learner: str) -> SpecError:
    return SpecError(f"--{option.replace('_', '-')}: does not apply to the learner {learner!r}")
