"""The learner contract as a test that anyone can run on a learner of their own.

    check_learner(lambda: MyLearner(seed=0), observation_shape=(8, 8), actions=3)

The learner lives a short life on made-up rollouts. Each clause is one function below. A violation
raises ``AssertionError`` with a message that starts with the name of the clause in brackets.
``assert`` itself is not used, so that the test means the same under ``python -O``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.learners.learner import Choice, Learner, Rollout

Make = Callable[[], Learner]
Content = dict[str, NDArray[Any]]

_NUMERIC = "biufc"
_DISTINCT = 12
"""Observations in the made-up world: few, so that they repeat as they do in small worlds."""
_TERMINAL = 0.15
"""Probability that a made-up interaction ends an episode."""


class Setting(NamedTuple):
    """The made-up world: what the learner is shown, whatever it does."""

    shape: tuple[int, ...]
    actions: int
    lanes: int
    steps: int
    rollouts: int
    seed: int


class Life(NamedTuple):
    """Everything that can be seen of a learner from outside, one entry a rollout."""

    choices: list[list[Choice]]
    states: list[Content]
    """What ``save`` returned after each rollout."""


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
    """Raise ``AssertionError``, naming the clause, if a learner breaks the contract.

    ``make`` is called many times and must return a new learner, in the same fresh state, each time.
    The learner is given rollouts of ``steps`` interactions of ``lanes`` lanes; ``rollouts`` should
    be enough for learning to start and go on for a while. The test makes some ten lives of them.
    """
    world = Setting(observation_shape, actions, lanes, steps, rollouts, seed)
    check_attributes(make())
    check_actions(make(), world)
    life = _live(make(), world)
    check_determinism(make, world, life)
    check_metrics(make, world, life)
    check_purity(make, world)
    check_carriers(make, world, life)
    check_pin(make(), world)
    check_checkpoint(make, world, life)
    check_rule(make, world)


def check_attributes(learner: Learner) -> None:
    """[attributes] Carriers, streams and metrics are there, under names that can be saved."""
    clause = "attributes"
    _require(len(learner.carriers) > 0, clause, "there are no carriers")
    for name in [*learner.carriers, *learner.streams]:
        _require("/" not in name and name != "", clause, f"{name!r} is not a name without '/'")
    _require("stream" not in learner.carriers, clause, "no carrier may be called 'stream'")
    for name, stream in learner.streams.items():
        _require(
            isinstance(stream, Generator),
            clause,
            f"stream {name!r} is {type(stream)}, no Generator",
        )
    repeated = len(set(learner.metrics)) < len(learner.metrics)
    _require(not repeated, clause, f"a metric is named twice in {learner.metrics}")


def check_actions(learner: Learner, world: Setting) -> None:
    """[actions] Choices are int64 [N] in range; the remembered behaviour is float32 [N, ...]."""
    clause = "actions"
    for rollout in _rollouts(world):
        for observation in rollout.observations[:-1]:
            choice = learner.act(observation.copy())
            _require(isinstance(choice, Choice), clause, f"act returned {type(choice)}")
            chosen = choice.actions
            _require(
                _is_array(chosen, np.int64) and chosen.shape == (world.lanes,),
                clause,
                f"actions must be an array [{world.lanes}] of int64, are {_describe(chosen)}",
            )
            inside = bool(((chosen >= 0) & (chosen < world.actions)).all())
            _require(inside, clause, f"{chosen.tolist()} is not within 0 .. {world.actions - 1}")
            for name, array in choice.behaviour.items():
                _require(
                    _is_array(array, np.float32) and array.shape[:1] == (world.lanes,),
                    clause,
                    f"behaviour {name!r} must be an array [{world.lanes}, ...] of float32, is "
                    f"{_describe(array)}",
                )


def check_determinism(make: Make, world: Setting, life: Life) -> None:
    """[determinism] A second learner from the same ``make`` lives the same life to the bit."""
    _same_life(life, _live(make(), world), "determinism", "a second learner")


def check_metrics(make: Make, world: Setting, life: Life) -> None:
    """[measure] Measuring changes nothing, and reports only what ``metrics`` names."""
    clause, learner = "measure", make()
    reported: list[dict[str, float]] = []
    measured = _live(learner, world, measure=True, reported=reported)
    _same_life(life, measured, clause, "a learner that is measured")
    for metrics in reported:
        unknown = sorted(set(metrics) - set(learner.metrics))
        _require(not unknown, clause, f"learn reported {unknown}, which `metrics` does not name")
        for name, value in metrics.items():
            _require(
                isinstance(value, float), clause, f"metric {name!r} is {type(value)}, not a float"
            )


def check_purity(make: Make, world: Setting) -> None:
    """[purity] Acting leaves every carrier alone; nobody writes to observations and rollouts."""
    clause, learner = "purity", make()
    for rollout in _rollouts(world):
        before = _carriers(learner)
        choices = []
        for observation in rollout.observations[:-1]:
            given = observation.copy()
            choices.append(_own(learner.act(given)))
            _require(_equal(given, observation), clause, "act changed the observation")
        _same_content(before, _carriers(learner), clause, "act changed carrier array")
        told = _told(rollout, choices)
        kept = _copies(told)
        learner.learn(told, measure=False)
        _same_content(kept, _copies(told), clause, "learn changed the rollout's")


def check_carriers(make: Make, world: Setting, life: Life) -> None:
    """[carriers] What is read is a copy, and writing back what was read changes nothing."""
    clause, learner = "carriers", make()
    held: list[tuple[int, Content, Content]] = []

    def examine(turn: int) -> None:
        for name, carrier in learner.carriers.items():
            read = carrier.get()
            for key, array in read.items():
                plain = isinstance(array, np.ndarray) and array.dtype.kind in _NUMERIC
                what = f"{name}/{key} must be a numeric array, is {_describe(array)}"
                _require(plain, clause, what)
            kept = _copied(read)
            _scribble(read)
            what = f"{name}: overwriting what get returned changed"
            _same_content(kept, carrier.get(), clause, what)
            given = _copied(kept)
            carrier.set(given)
            what = f"{name}: setting what get returned changed"
            _same_content(kept, carrier.get(), clause, what)
            _scribble(given)
            what = f"{name}: overwriting what was given to set changed"
            _same_content(kept, carrier.get(), clause, what)
            held.append((turn, carrier.get(), kept))

    treated = _live(learner, world, after=examine)
    for turn, read, kept in held:
        what = f"what get returned after rollout {turn} was changed later:"
        _same_content(kept, read, clause, what)
    _same_life(life, treated, clause, "a learner whose carriers were read and written back")


def check_pin(learner: Learner, world: Setting) -> None:
    """[pin] A carrier set to zeros is zero when it is read again."""
    clause = "pin"
    _live(learner, world)
    for name, carrier in learner.carriers.items():
        read = carrier.get()
        carrier.set({key: np.zeros_like(array) for key, array in read.items()})
        after = carrier.get()
        _require(list(after) == list(read), clause, f"{name}: set changed the names of the arrays")
        for key, array in after.items():
            _require(not array.any(), clause, f"{name}/{key} is not zero after it was set to zero")


def check_checkpoint(make: Make, world: Setting, life: Life) -> None:
    """[checkpoint] ``save`` and ``load`` into a fresh learner go on to the bit."""
    clause, learner = "checkpoint", make()
    saved = {0: learner.save()}
    kept = {0: _copied(saved[0])}

    def save(turn: int) -> None:
        saved[turn + 1] = learner.save()
        kept[turn + 1] = _copied(saved[turn + 1])

    onward = _live(learner, world, after=save)
    _same_life(life, onward, clause, "a learner that is saved")
    for stop, checkpoint in saved.items():
        _same_content(kept[stop], checkpoint, clause, "later learning changed the saved")
    for stop in sorted({0, 1, world.rollouts // 2, world.rollouts - 1}):
        fresh = make()
        try:
            fresh.load(saved[stop])
        except Exception as fault:
            raise AssertionError(f"[{clause}] a fresh learner cannot load: {fault!r}") from fault
        who = f"a fresh learner, loaded after {stop} rollouts,"
        rest = Life(life.choices[stop:], life.states[stop:])
        _same_life(rest, _live(fresh, world, start=stop), clause, who, start=stop)
        _same_content(
            kept[stop], saved[stop], clause, "loading and later learning changed the saved"
        )


def check_rule(make: Make, world: Setting) -> None:
    """[rule] Learning leaves the rule's weights as they were; without a rule there is no digest."""
    clause, learner = "rule", make()
    if learner.rule is None:
        digest = learner.rule_digest()
        _require(digest is None, clause, f"there is no rule, but rule_digest is {digest!r}")
        return
    content = learner.rule.content
    _require(learner.rule_digest() == content, clause, "a fresh rule_digest is not rule.content")
    _live(learner, world)
    _require(learner.rule_digest() == content, clause, "learning changed the rule's weights")


def _require(condition: bool, clause: str, problem: str) -> None:
    if not condition:
        raise AssertionError(f"[{clause}] {problem}")


def _rollouts(world: Setting) -> Iterator[Rollout]:
    """Yield rollouts without actions; what happens in them does not depend on the learner."""
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


def _told(rollout: Rollout, choices: list[Choice]) -> Rollout:
    """Return the rollout with what the learner chose in it."""
    return rollout._replace(
        actions=np.stack([choice.actions for choice in choices]),
        behaviour={
            name: np.stack([choice.behaviour[name] for choice in choices])
            for name in choices[0].behaviour
        },
    )


def _live(
    learner: Learner,
    world: Setting,
    *,
    start: int = 0,
    measure: bool = False,
    reported: list[dict[str, float]] | None = None,
    after: Callable[[int], None] | None = None,
) -> Life:
    """Let ``learner`` live through the rollouts from ``start`` on; return all that was seen."""
    life = Life([], [])
    for turn, rollout in enumerate(_rollouts(world)):
        if turn < start:
            continue
        choices = [_own(learner.act(each.copy())) for each in rollout.observations[:-1]]
        metrics = learner.learn(_told(rollout, choices), measure=measure)
        if reported is not None:
            reported.append(metrics)
        if after is not None:
            after(turn)
        life.choices.append(choices)
        life.states.append(_copied(learner.save()))
    return life


def _own(choice: Choice) -> Choice:
    """Return a copy: a learner may use the memory again."""
    return Choice(np.array(choice.actions), _copied(choice.behaviour))


def _copied(content: Mapping[str, NDArray[Any]]) -> Content:
    return {name: np.array(array) for name, array in content.items()}


def _copies(rollout: Rollout) -> Content:
    """Return copies of every array of a rollout, by name."""
    behaviour = {f"behaviour {name!r}": array for name, array in rollout.behaviour.items()}
    arrays = {name: getattr(rollout, name) for name in Rollout._fields if name != "behaviour"}
    return _copied(arrays | behaviour)


def _carriers(learner: Learner) -> Content:
    """Return every array of every carrier."""
    return {
        f"{name}/{key}": np.array(array)
        for name, carrier in learner.carriers.items()
        for key, array in carrier.get().items()
    }


def _scribble(content: Content) -> None:
    """Overwrite what a caller may overwrite; read-only arrays cannot do harm."""
    for array in content.values():
        if array.flags.writeable:
            array[...] = 77


def _is_array(value: object, dtype: type) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"an array {list(value.shape)} of {value.dtype}"
    return repr(type(value))


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Equal to the bit."""
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and one.tobytes() == other.tobytes()


def _same_content(expected: Content, found: Content, clause: str, what: str) -> None:
    """Require the same names and bits; ``what`` is followed by the name that differs."""
    for name in {**expected, **found}:
        alike = name in expected and name in found and _equal(expected[name], found[name])
        _require(alike, clause, f"{what} {name}")


def _same_life(expected: Life, found: Life, clause: str, who: str, start: int = 0) -> None:
    """Require the same choices and states; ``who`` is the subject of the message."""
    turns = zip(expected.choices, found.choices, expected.states, found.states, strict=True)
    for turn, (ours, theirs, state, other) in enumerate(turns, start):
        for k, (one, two) in enumerate(zip(ours, theirs, strict=True)):
            where = f"at step {k} of rollout {turn}"
            alike = _equal(one.actions, two.actions)
            _require(alike, clause, f"{who} chooses other actions {where}")
            what = f"{who} remembers other behaviour {where}:"
            _same_content(dict(one.behaviour), dict(two.behaviour), clause, what)
        _same_content(state, other, clause, f"{who} differs after rollout {turn} in")
