"""Rules that other packages provide, see :mod:`rulescope.core.entry_points`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple, cast

import numpy as np

from rulescope.core import entry_points
from rulescope.core.arrays import digest
from rulescope.core.entry_points import plugin_error
from rulescope.core.errors import SpecError, nearest, refusing_exit
from rulescope.learners import plugin_options
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner import Learner
from rulescope.learners.learner_base import HISTORY
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
    options: Any = None
    """An instance of the class's ``Options``, or None without any. For a learner of this package:
    its configuration."""
    lanes: int = 2
    """Copies of the world stepped together."""
    rule: RuleWeights | None = None
    """Weights in place of the rule's own: random ones (see ``null``), or those that the
    configuration of a learner of this package names."""


def pin_rule(name: str, options: Mapping[str, Any] | None = None) -> Plugin:
    """Return the learner of the installed rule ``name`` with the hash of its source.

    ``options`` are values of its class's ``Options`` by name; text, as typed, is converted.
    """
    point = entry_points.find_entry_point("rule", name)
    source, rule = entry_points.hash_source(point), _load_class(point)
    made = plugin_options.make_options(name, _options_class(rule), options or {})
    return Plugin(
        rule=name,
        source=source,
        carriers=_carriers(point, rule),
        learning_rate=getattr(rule, "LEARNING_RATE", LEARNING_RATE),
        options=plugin_options.list_arguments(name, made),
        history_carriers=_history(point, rule),
        stepwise=_stepwise(rule),
    )


def check_plugin(config: Plugin) -> None:
    """Raise :class:`SpecError` unless ``config`` is possible for the installed class of its rule.

    It imports the rule, and makes no learner.
    """
    _prepare(config)


def has_null(name: str) -> bool:
    """Return whether the installed rule ``name`` can have random weights: it defines ``null``."""
    return callable(getattr(_load_class(entry_points.find_entry_point("rule", name)), "null", None))


def make_plugin_learner(config: Plugin, setup: Setup) -> Learner:
    """Build the learner that ``config`` names.

    A rule without weights is identified by the hash of its source.
    """
    point, rule, options = _prepare(config)
    build = cast("Callable[[Setup], Learner]", rule)
    setup = setup._replace(options=options)
    with refusing_exit(f"the rule {config.rule!r}"):
        made = build(setup)
        if config.null_seed is not None:
            made = build(setup._replace(rule=_null_weights(point, made, config.null_seed)))
    if set(made.carriers) != set(config.carriers):
        raise plugin_error(
            point,
            f"CARRIERS promises {', '.join(config.carriers)}, but carriers are "
            f"{', '.join(made.carriers)}{_hint(rule, made)}",
        )
    weights = made.rule or RuleWeights(config.rule, {}, config.source, config.source)
    made.rule = replace(weights, name=config.rule, sha256=config.source)
    if made.rule_digest() != weights.content:  # detected only at the end, it would cost a lifetime
        raise plugin_error(point, "rule_digest() of a new learner is not rule.content")
    return made


def _prepare(config: Plugin) -> tuple[EntryPoint, type[Learner], Any]:
    """Return the entry point, the class and the options of the rule that ``config`` names."""
    point = entry_points.require_source("rule", config.rule, config.source)
    rule = _load_class(point)
    declared = _carriers(point, rule)
    if set(declared) != set(config.carriers):
        raise SpecError(
            f"learner.carriers: the rule {config.rule!r} has {', '.join(declared)}, not "
            f"{', '.join(config.carriers)}"
        )
    for key, value in (
        ("history_carriers", _history(point, rule)),
        ("stepwise", _stepwise(rule)),
    ):
        if getattr(config, key) != value:
            raise SpecError(
                f"learner.{key}: that of the rule {config.rule!r} is {value!r}, not "
                f"{getattr(config, key)!r}"
            )
    if config.null_seed is not None and not callable(getattr(rule, "null", None)):
        raise SpecError(f"learner.null_seed: the rule {config.rule!r} does not define null(seed)")
    given = {each.name: each.value for each in config.options}
    return point, rule, plugin_options.make_options(config.rule, _options_class(rule), given)


def _null_weights(point: EntryPoint, made: Learner, seed: int) -> RuleWeights:
    """Return the random weights of the rule of ``made``, which must have the shapes of its own."""
    drawn = cast("Any", made).null(seed)
    own = {} if made.rule is None else made.rule.arrays
    if not own:
        raise plugin_error(point, "it defines null(seed), but its weights() are empty")
    arrays = {name: np.array(each, np.float32) for name, each in drawn.items()}
    found = {name: list(each.shape) for name, each in arrays.items()}
    expected = {name: list(each.shape) for name, each in own.items()}
    if found != expected:
        raise plugin_error(point, f"null({seed}) must have the shapes {expected}, not {found}")
    content = digest(arrays)
    return RuleWeights(f"{point.name}-null:{seed}", arrays, content, content)


def _hint(rule: type[Learner], made: Learner) -> str:
    """Return what to do about a rule that overrides ``start`` and has no state after all."""
    silent = hasattr(rule, "start") and HISTORY not in made.carriers
    return ": start() returned no state, so leave it out, or declare CARRIERS" if silent else ""


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
    problem = plugin_options.check_class(getattr(found, "Options", None))
    if problem is not None:
        raise plugin_error(point, problem)
    return found


def _options_class(rule: type[Learner]) -> Any:
    return getattr(rule, "Options", None)


def _stepwise(rule: type[Learner]) -> bool:
    return bool(getattr(rule, "STEPWISE", False))


def _history(point: EntryPoint, rule: type[Learner]) -> tuple[str, ...] | None:
    """Return the carriers that a class declares as its history, if it declares any."""
    names = getattr(rule, "HISTORY", None)
    if names is None:
        return None
    if not isinstance(names, tuple) or len(set(names)) < len(names):
        raise plugin_error(
            point, f"HISTORY must name carriers, such as HISTORY = ('replay',), not {names!r}"
        )
    carriers = _carriers(point, rule)
    for name in names:
        if name not in carriers:
            raise plugin_error(point, f"HISTORY: no carrier {name!r}{nearest(name, carriers)}")
    usual = tuple(name for name in carriers if name == HISTORY)
    return None if names == usual else names


def _carriers(point: EntryPoint, rule: type[Learner]) -> tuple[str, ...]:
    """Return the names of the carriers that a rule's class declares.

    An ``UpdateRule`` need not: ``declared_carriers`` finds them.
    """
    find = getattr(rule, "declared_carriers", None)
    names = getattr(rule, "CARRIERS", None) if find is None else find()
    listed = names if isinstance(names, tuple) else ()
    valid = all(isinstance(each, str) and each and "/" not in each for each in listed)
    if not listed or not valid or len(set(listed)) < len(listed):
        raise plugin_error(
            point,
            f"the class {rule.__name__} must name its carriers, such as "
            f"CARRIERS = ('recurrent', 'params'), not {names!r}",
        )
    return listed
