"""Rules that other packages provide, see :mod:`rulescope.core.entry_points`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import NamedTuple, cast

from rulescope.core import entry_points
from rulescope.core.entry_points import plugin_error
from rulescope.core.errors import SpecError, refusing_exit
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner import Learner
from rulescope.learners.learner_config import LEARNING_RATE, Plugin
from rulescope.rules.rule_weights import RuleWeights

_EXPECTED = "a class derived from rulescope.learners.learner.Learner"


class Setup(NamedTuple):
    """The one argument of a rule's constructor. Fields may be added, never moved."""

    observation_shape: tuple[int, ...]
    actions: int
    steps: int = 29
    """Interactions of each lane in one rollout."""
    seed: int = 0
    """Seed of every random stream of the learner (see :mod:`rulescope.core.seeds`)."""
    learning_rate: float = LEARNING_RATE
    agent: NetworkSizes = NetworkSizes()
    iterations: int | None = None
    """Length of the lifetime, if it is known."""
    device: str = "cpu"
    """Device name as in torch."""


def pin_rule(name: str) -> Plugin:
    """Return the learner of the installed rule ``name`` with the hash of its source."""
    point = entry_points.find_entry_point("rule", name)
    source, rule = entry_points.hash_source(point), _load_class(point)
    rate = getattr(rule, "LEARNING_RATE", LEARNING_RATE)
    return Plugin(rule=name, source=source, carriers=_carriers(point, rule), learning_rate=rate)


def make_plugin_learner(config: Plugin, setup: Setup) -> Learner:
    """Build the learner that ``config`` names.

    A rule without weights is identified by the hash of its source.
    """
    point = entry_points.require_source("rule", config.rule, config.source)
    rule = _load_class(point)
    declared = _carriers(point, rule)
    if set(declared) != set(config.carriers):
        raise SpecError(
            f"learner.carriers: the rule {config.rule!r} has {', '.join(declared)}, not "
            f"{', '.join(config.carriers)}"
        )
    with refusing_exit(f"the rule {config.rule!r}"):
        made = cast("Callable[[Setup], Learner]", rule)(setup)
    if set(made.carriers) != set(declared):
        raise plugin_error(
            point,
            f"CARRIERS promises {', '.join(declared)}, but carriers are {', '.join(made.carriers)}",
        )
    weights = made.rule or RuleWeights(config.rule, {}, config.source, config.source)
    made.rule = replace(weights, name=config.rule, sha256=config.source)
    if made.rule_digest() != weights.content:  # detected only at the end, it would cost a lifetime
        raise plugin_error(point, "rule_digest() of a new learner is not rule.content")
    return made


def _load_class(point: EntryPoint) -> type[Learner]:
    """Import the class of a rule and check it."""
    found = entry_points.load_object(point, _EXPECTED)
    if not isinstance(found, type) or not issubclass(found, Learner):
        raise plugin_error(point, f"it must be {_EXPECTED}, not {found!r}")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(found.__abstractmethods__))
        raise plugin_error(point, f"the class {found.__name__} does not define {missing}")
    rate = getattr(found, "LEARNING_RATE", LEARNING_RATE)
    if not isinstance(rate, int | float) or not 0.0 < rate <= 100.0 or math.isnan(rate):
        raise plugin_error(
            point, f"LEARNING_RATE must be a number above 0, at most 100, not {rate!r}"
        )
    return found


def _carriers(point: EntryPoint, rule: type[Learner]) -> tuple[str, ...]:
    """Return the names of the carriers that a rule's class declares."""
    names = getattr(rule, "CARRIERS", None)
    listed = names if isinstance(names, tuple) else ()
    valid = all(isinstance(each, str) and each and "/" not in each for each in listed)
    if not listed or not valid or len(set(listed)) < len(listed):
        raise plugin_error(
            point,
            f"the class {rule.__name__} must name its carriers, such as "
            f"CARRIERS = ('recurrent', 'params'), not {names!r}",
        )
    return listed
