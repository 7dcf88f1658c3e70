"""Builds a learner from its configuration; torch is imported only when one is built."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from rulescope.core.errors import SpecError
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner import Learner
from rulescope.learners.learner_config import LearnerSpec, Plugin
from rulescope.learners.open_config import Open, OpenAdam
from rulescope.learners.plugin_rule import Setup, make_plugin_learner
from rulescope.rules import disco_format
from rulescope.rules.rule_weights import OPEN_KEY, RuleWeights, load


def make(
    config: LearnerSpec,
    observation_shape: tuple[int, ...],
    actions: int,
    steps: int,
    seed: int,
    *,
    device: str = "cpu",
    weights: Path | None = None,
    interactions: int | None = None,
    iterations: int | None = None,
    lanes: int = 2,
) -> Learner:
    """Build a new learner for rollouts of ``steps`` interactions of each of ``lanes`` lanes.

    ``weights`` is the file or folder of its rule, if not in the usual places. A learner with a
    schedule needs the length of the lifetime: in ``interactions`` over all lanes (baselines) or in
    ``iterations`` (OPEN and its Adam).
    """
    match config:
        case Disco():
            return _disco(config, observation_shape, actions, steps, seed, device, weights)
        case Open() | OpenAdam():
            from rulescope.learners.open_ppo import OpenLearner

            if iterations is None:
                raise ValueError("an OPEN learner needs the lifetime's iterations")
            rule = _open_rule(config, weights) if isinstance(config, Open) else None
            return OpenLearner(config, rule, observation_shape, actions, seed, iterations, device)
        case Plugin(learning_rate=rate, agent=agent):
            setup = Setup(
                observation_shape,
                actions,
                steps,
                seed,
                rate,
                agent,
                iterations,
                device,
                lanes=lanes,
            )
            return make_plugin_learner(config, setup)
        case _ if config.takes_setup:
            setup = Setup(
                observation_shape,
                actions,
                steps,
                seed,
                iterations=iterations,
                device=device,
                options=config,
                lanes=lanes,
            )
            return _from_setup(config, setup, weights)
        case _:
            return _baseline(config, observation_shape, actions, seed, device, interactions)


def _from_setup(config: LearnerSpec, setup: Setup, weights: Path | None) -> Learner:
    """Build the class that ``config`` names from ``setup``, with the rule that it names."""
    module, name = config.builds.split(":")
    build: Callable[[Setup], Learner] = getattr(import_module(f"rulescope.learners.{module}"), name)
    rule = getattr(config, "rule", None)
    return build(
        setup._replace(
            learning_rate=getattr(config, "learning_rate", setup.learning_rate),
            agent=getattr(config, "agent", setup.agent),
            rule=None if rule is None else load(rule, weights),
        )
    )


def _baseline(
    config: LearnerSpec,
    observation_shape: tuple[int, ...],
    actions: int,
    seed: int,
    device: str,
    interactions: int | None,
) -> Learner:
    """Build the class that ``config`` names; one with a schedule is given its length."""
    module, name = config.builds.split(":")
    build: Callable[..., Learner] = getattr(import_module(f"rulescope.learners.{module}"), name)
    if not config.scheduled:
        return build(config, observation_shape, actions, seed, device=device)
    if interactions is None:
        raise ValueError(f"the learner {config.kind!r} needs the lifetime's interactions")
    return build(config, observation_shape, actions, seed, interactions=interactions, device=device)


def _open_rule(config: Open, weights: Path | None) -> RuleWeights:
    rule = load(config.rule, weights)
    if set(rule.arrays) != {OPEN_KEY}:
        valid = "open-breakout, open-multi, ..., open-random:SEED, open-random-large:SEED"
        raise SpecError(f"learner.rule: {config.rule!r} is not an OPEN rule; valid: {valid}")
    return rule


def _disco(
    config: Disco,
    observation_shape: tuple[int, ...],
    actions: int,
    steps: int,
    seed: int,
    device: str,
    weights: Path | None,
) -> Learner:
    from rulescope.learners.disco.disco_learner import DiscoLearner

    rule = load(config.rule, weights)
    if set(rule.arrays) != set(disco_format.shapes()):
        raise SpecError(
            f"learner.rule: {config.rule!r} is not a Disco rule; valid: disco103, random:SEED"
        )
    return DiscoLearner(config, rule, observation_shape, actions, steps, seed, device)
