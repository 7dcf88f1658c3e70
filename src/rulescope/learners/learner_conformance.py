"""Conformance test of the learner contract, to be run on any learner.

    check_learner(lambda: MyLearner(seed=0), observation_shape=(8, 8), actions=3)

The learner learns from a few synthetic rollouts. Each clause is one function below. A violation
raises ``AssertionError`` with a message that starts with the name of the clause in brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.envs.environment_conformance import bits_equal, describe, overwrite, require
from rulescope.learners.learner import Choice, Learner, Rollout

Make = Callable[[], Learner]
Content = dict[str, NDArray[Any]]

_NUMERIC = "biufc"
_DISTINCT = 12
"""Distinct synthetic observations: few, so that they repeat as they do in small worlds."""
_TERMINAL = 0.15
"""Probability that a synthetic interaction ends an episode."""


class Setting(NamedTuple):
    """Sizes and seed of the synthetic rollouts, which do not depend on the learner's actions."""

    shape: tuple[int, ...]
    actions: int
    lanes: int
    steps: int
    rollouts: int
    seed: int


class Behaviour(NamedTuple):
    """Everything observable of a learner, one entry per rollout."""

    choices: list[list[Choice]]
    states: list[Content]
    """The result of ``save`` after each rollout."""


def check_learner(
    make: Make,
    observation_shape: tuple[int, ...],
    actions: int,
    *,
    lanes: int = 2,
    steps: int = 29,
    rollouts: int = 6,
    seed: int = 0,
) -> None:
    """Raise ``AssertionError``, naming the clause, if a learner violates it.

    ``make`` is called many times and must return a new learner in the same initial state each time.
    The rollouts have ``steps`` interactions of ``lanes`` lanes; ``rollouts`` should be enough for
    learning to start and continue for a while. The test runs about ten learners through them.
    """
    world = Setting(observation_shape, actions, lanes, steps, rollouts, seed)
    check_attributes(make())
    check_actions(make(), world)
    expected = _run(make(), world)
    check_determinism(make, world, expected)
    check_metrics(make, world, expected)
    check_purity(make, world)
    check_carriers(make, world, expected)
    check_pin(make(), world)
    check_checkpoint(make, world, expected)
    check_steps(make, world, expected)
    check_rule(make, world)


def check_attributes(learner: Learner) -> None:
    """[attributes] There are carriers, and all names can be saved."""
    clause = "attributes"
    require(len(learner.carriers) > 0, clause, "there are no carriers")
    for name in [*learner.carriers, *learner.streams]:
        require("/" not in name and name != "", clause, f"{name!r} is not a name without '/'")
    require("stream" not in learner.carriers, clause, "no carrier may be called 'stream'")
    for name, stream in learner.streams.items():
        require(
            isinstance(stream, Generator),
            clause,
            f"stream {name!r} is {type(stream)}, no Generator",
        )
    repeated = len(set(learner.metrics)) < len(learner.metrics)
    require(not repeated, clause, f"a metric is named twice in {learner.metrics}")


def check_actions(learner: Learner, world: Setting) -> None:
    """[actions] Actions are int64 [N] in range; the stored behaviour is float32 [N, ...]."""
    clause = "actions"
    for rollout in _rollouts(world):
        for observation in rollout.observations[:-1]:
            choice = learner.act(observation.copy())
            require(isinstance(choice, Choice), clause, f"act returned {type(choice)}")
            chosen = choice.actions
            require(
                _is_array(chosen, np.int64) and chosen.shape == (world.lanes,),
                clause,
                f"actions must be an array [{world.lanes}] of int64, are {describe(chosen)}",
            )
            inside = bool(((chosen >= 0) & (chosen < world.actions)).all())
            require(inside, clause, f"{chosen.tolist()} is not within 0 .. {world.actions - 1}")
            for name, array in choice.behaviour.items():
                require(
                    _is_array(array, np.float32) and array.shape[:1] == (world.lanes,),
                    clause,
                    f"behaviour {name!r} must be an array [{world.lanes}, ...] of float32, is "
                    f"{describe(array)}",
                )


def check_determinism(make: Make, world: Setting, expected: Behaviour) -> None:
    """[determinism] A second learner from the same ``make`` is bit-identical."""
    _require_same_run(expected, _run(make(), world), "determinism", "a second learner")


def check_metrics(make: Make, world: Setting, expected: Behaviour) -> None:
    """[measure] Measuring changes nothing, and reports only the names in ``metrics``."""
    clause, learner = "measure", make()
    reported: list[dict[str, float]] = []
    measured = _run(learner, world, measure=True, reported=reported)
    _require_same_run(expected, measured, clause, "a learner that is measured")
    for metrics in reported:
        unknown = sorted(set(metrics) - set(learner.metrics))
        require(not unknown, clause, f"learn reported {unknown}, which `metrics` does not name")
        for name, value in metrics.items():
            require(
                isinstance(value, float), clause, f"metric {name!r} is {type(value)}, not a float"
            )


def check_purity(make: Make, world: Setting) -> None:
    """[purity] Acting changes no carrier; observations and rollouts are never written to."""
    clause, learner = "purity", make()
    for rollout in _rollouts(world):
        before = _kept_by_acting(learner)
        choices = []
        for observation, ended in zip(rollout.observations[:-1], rollout.terminals, strict=True):
            given, began = observation.copy(), ended.copy()
            choices.append(_copy_choice(learner.act(given)))
            learner.begin_episodes(began)
            same = bits_equal(given, observation) and bits_equal(began, ended)
            require(same, clause, "act or begin_episodes changed what it was given")
        _require_same(before, _kept_by_acting(learner), clause, "act changed carrier array")
        given_rollout = _with_choices(rollout, choices)
        kept = _copy_rollout(given_rollout)
        learner.learn(given_rollout, measure=False)
        _require_same(kept, _copy_rollout(given_rollout), clause, "learn changed the rollout's")


def check_carriers(make: Make, world: Setting, expected: Behaviour) -> None:
    """[carriers] ``get`` returns copies, and writing back a value just read changes nothing."""
    clause, learner = "carriers", make()
    held: list[tuple[int, Content, Content]] = []

    def examine(turn: int) -> None:
        for name, carrier in learner.carriers.items():
            read = carrier.get()
            for key, array in read.items():
                plain = isinstance(array, np.ndarray) and array.dtype.kind in _NUMERIC
                what = f"{name}/{key} must be a numeric array, is {describe(array)}"
                require(plain, clause, what)
            kept = _copy_arrays(read)
            _overwrite_all(read)
            what = f"{name}: overwriting the arrays from get changed"
            _require_same(kept, carrier.get(), clause, what)
            given = _copy_arrays(kept)
            carrier.set(given)
            what = f"{name}: setting the arrays from get changed"
            _require_same(kept, carrier.get(), clause, what)
            _overwrite_all(given)
            what = f"{name}: overwriting the arrays given to set changed"
            _require_same(kept, carrier.get(), clause, what)
            held.append((turn, carrier.get(), kept))

    treated = _run(learner, world, after=examine)
    for turn, read, kept in held:
        what = f"the arrays from get after rollout {turn} were changed later:"
        _require_same(kept, read, clause, what)
    _require_same_run(
        expected, treated, clause, "a learner whose carriers were read and written back"
    )


def check_pin(learner: Learner, world: Setting) -> None:
    """[pin] A carrier set to zeros is zero when it is read again."""
    clause = "pin"
    _run(learner, world)
    for name, carrier in learner.carriers.items():
        read = carrier.get()
        carrier.set({key: np.zeros_like(array) for key, array in read.items()})
        after = carrier.get()
        require(list(after) == list(read), clause, f"{name}: set changed the names of the arrays")
        for key, array in after.items():
            require(not array.any(), clause, f"{name}/{key} is not zero after it was set to zero")


def check_checkpoint(make: Make, world: Setting, expected: Behaviour) -> None:
    """[checkpoint] ``save`` and ``load`` into a new learner continue bit-identically."""
    clause, learner = "checkpoint", make()
    saved = {0: learner.save()}
    kept = {0: _copy_arrays(saved[0])}

    def save(turn: int) -> None:
        saved[turn + 1] = learner.save()
        kept[turn + 1] = _copy_arrays(saved[turn + 1])

    onward = _run(learner, world, after=save)
    _require_same_run(expected, onward, clause, "a learner that is saved")
    for stop, checkpoint in saved.items():
        _require_same(kept[stop], checkpoint, clause, "later learning changed the saved")
    for stop in sorted({0, 1, world.rollouts // 2, world.rollouts - 1}):
        fresh = make()
        try:
            fresh.load(saved[stop])
        except Exception as fault:
            raise AssertionError(f"[{clause}] a new learner cannot load: {fault!r}") from fault
        subject = f"a new learner, loaded after {stop} rollouts,"
        rest = Behaviour(expected.choices[stop:], expected.states[stop:])
        _require_same_run(rest, _run(fresh, world, start=stop), clause, subject, start=stop)
        _require_same(
            kept[stop], saved[stop], clause, "loading and later learning changed the saved"
        )


def check_steps(make: Make, world: Setting, expected: Behaviour) -> None:
    """[steps] What is in ``after_step`` is called, and may write back what it reads.

    This concerns learners with ``after_step``, on which an intervention can act after each step.
    """
    clause, learner = "steps", make()
    if not hasattr(learner, "after_step"):
        stepwise = getattr(learner, "STEPWISE", False)
        require(not stepwise, clause, "STEPWISE is set, but there is no list `after_step`")
        return
    calls = 0

    def write_back() -> None:
        nonlocal calls
        calls += 1
        for carrier in learner.carriers.values():
            carrier.set(carrier.get())

    learner.after_step.append(write_back)
    treated = _run(learner, world)
    require(calls >= world.rollouts, clause, f"after_step was called {calls} times")
    subject = "a learner whose carriers are read and written back after each step"
    _require_same_run(expected, treated, clause, subject)


def check_rule(make: Make, world: Setting) -> None:
    """[rule] Learning does not change the rule's weights; without a rule there is no digest."""
    clause, learner = "rule", make()
    if learner.rule is None:
        digest = learner.rule_digest()
        require(digest is None, clause, f"there is no rule, but rule_digest is {digest!r}")
        return
    content = learner.rule.content
    require(learner.rule_digest() == content, clause, "the initial rule_digest is not rule.content")
    _run(learner, world)
    require(learner.rule_digest() == content, clause, "learning changed the rule's weights")


def _rollouts(world: Setting) -> Iterator[Rollout]:
    """Yield rollouts without actions; they do not depend on the learner."""
    rng = seeds.stream(world.seed, "conformance")
    pool = rng.standard_normal((_DISTINCT, *world.shape)).astype(np.float32)
    shape = (world.steps, world.lanes)
    seen = rng.integers(_DISTINCT, size=world.lanes)
    began = np.zeros(world.lanes, np.bool_)
    for _ in range(world.rollouts):
        later = rng.integers(_DISTINCT, size=shape)
        index = np.concatenate([seen[None], later])
        terminals = rng.random(shape) < _TERMINAL
        yield Rollout(
            observations=pool[index],
            actions=np.zeros(shape, np.int64),
            rewards=rng.standard_normal(shape).astype(np.float32),
            terminals=terminals,
            began=began,
            behaviour={},
        )
        seen, began = later[-1], terminals[-1].copy()


def _with_choices(rollout: Rollout, choices: list[Choice]) -> Rollout:
    """Return the rollout with the learner's actions and behaviour."""
    return rollout._replace(
        actions=np.stack([choice.actions for choice in choices]),
        behaviour={
            name: np.stack([choice.behaviour[name] for choice in choices])
            for name in choices[0].behaviour
        },
    )


def _run(
    learner: Learner,
    world: Setting,
    *,
    start: int = 0,
    measure: bool = False,
    reported: list[dict[str, float]] | None = None,
    after: Callable[[int], None] | None = None,
) -> Behaviour:
    """Run ``learner`` through the rollouts from ``start`` on; return its behaviour."""
    expected = Behaviour([], [])
    for turn, rollout in enumerate(_rollouts(world)):
        if turn < start:
            continue
        choices = _act(learner, rollout)
        metrics = learner.learn(_with_choices(rollout, choices), measure=measure)
        if reported is not None:
            reported.append(metrics)
        if after is not None:
            after(turn)
        expected.choices.append(choices)
        expected.states.append(_copy_arrays(learner.save()))
    return expected


def _copy_choice(choice: Choice) -> Choice:
    """Return a copy: a learner may reuse the memory."""
    return Choice(np.array(choice.actions), _copy_arrays(choice.behaviour))


def _copy_arrays(content: Mapping[str, NDArray[Any]]) -> Content:
    return {name: np.array(array) for name, array in content.items()}


def _copy_rollout(rollout: Rollout) -> Content:
    """Return copies of every array of a rollout, by name."""
    behaviour = {f"behaviour {name!r}": array for name, array in rollout.behaviour.items()}
    arrays = {name: getattr(rollout, name) for name in Rollout._fields if name != "behaviour"}
    return _copy_arrays(arrays | behaviour)


def _act(learner: Learner, rollout: Rollout) -> list[Choice]:
    """Return the learner's choices on the observations of ``rollout``."""
    choices = []
    for observation, ended in zip(rollout.observations[:-1], rollout.terminals, strict=True):
        choices.append(_copy_choice(learner.act(observation.copy())))
        learner.begin_episodes(ended.copy())
    return choices


def _kept_by_acting(learner: Learner) -> Content:
    """Return every array of every carrier that acting must not change."""
    return {
        f"{name}/{key}": np.array(array)
        for name, carrier in learner.carriers.items()
        if name not in learner.acting_carriers
        for key, array in carrier.get().items()
    }


def _overwrite_all(content: Content) -> None:
    """Overwrite every writeable array."""
    for array in content.values():
        overwrite(array)


def _is_array(value: object, dtype: type) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype


def _require_same(expected: Content, found: Content, clause: str, what: str) -> None:
    """Require the same names and bits; ``what`` is followed by the name that differs."""
    for name in {**expected, **found}:
        alike = name in expected and name in found and bits_equal(expected[name], found[name])
        require(alike, clause, f"{what} {name}")


def _require_same_run(
    expected: Behaviour, found: Behaviour, clause: str, subject: str, start: int = 0
) -> None:
    """Require the same choices and states; ``subject`` starts the message."""
    turns = zip(expected.choices, found.choices, expected.states, found.states, strict=True)
    for turn, (ours, theirs, state, other) in enumerate(turns, start):
        for k, (one, two) in enumerate(zip(ours, theirs, strict=True)):
            where = f"at step {k} of rollout {turn}"
            alike = bits_equal(one.actions, two.actions)
            require(alike, clause, f"{subject} chooses other actions {where}")
            what = f"{subject} stores other behaviour {where}:"
            _require_same(dict(one.behaviour), dict(two.behaviour), clause, what)
        _require_same(state, other, clause, f"{subject} differs after rollout {turn} in")
