"""Conformance test of the environment contract, to be run on any environment.

    check_env(lambda: MyEnvironment(lanes=2))

Each clause is one function below. A violation raises ``AssertionError`` with a message that starts
with the name of the clause in brackets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.envs.environment import Actions, Array, Environment, State, Step

Make = Callable[[], Environment]
Trace = list[Step]

_DTYPES = {
    "observation": np.float32,
    "reward": np.float32,
    "terminal": np.bool_,
    "payoff": np.float64,
    "ended": np.bool_,
    "goal": np.bool_,
    "truncated": np.bool_,
    "final": np.float32,
}
_OBSERVATIONS = ("observation", "final")
_MORE_SEEDS = 16
_STARTS = 64


def check_env(make: Make, seed: int = 0, steps: int = 500) -> None:
    """Raise ``AssertionError``, naming the clause, if an environment violates it.

    ``make`` is called many times and must return a new environment, not yet reset, each time. The
    test takes about 25 times ``steps`` interactions of every lane; ``steps`` should be enough for a
    few episodes.
    """
    actions = _random_actions(make(), seed, steps)
    check_attributes(make())
    check_references(make())
    check_arrays(make(), seed, actions)
    trace = _play(make(), seed, actions)
    check_determinism(make, seed, actions, trace)
    check_restart(make(), seed, actions, trace)
    check_ownership(make, seed, actions, trace)
    check_auto_reset(make, seed, trace)
    check_truncation(trace)
    check_checkpoint(make, seed, actions, trace)
    check_refusal(make, seed, actions, trace)
    check_streams(make, seed, actions)


def check_attributes(env: Environment) -> None:
    """[attributes] ``lanes``, ``actions`` and ``observation_shape`` are sensible integers."""
    clause = "attributes"
    require(env.lanes >= 1, clause, f"lanes is {env.lanes}, must be at least 1")
    require(env.actions >= 2, clause, f"actions is {env.actions}, must be at least 2")
    sizes = all(isinstance(size, int) and size >= 1 for size in env.observation_shape)
    require(
        isinstance(env.observation_shape, tuple) and sizes,
        clause,
        f"observation_shape is {env.observation_shape!r}, must be a tuple of positive ints",
    )


def check_references(env: Environment) -> None:
    """[references] Returns or rates are finite, and an oracle earns more than a random policy.

    Or else nothing is known, and all four are NaN.
    """
    known = env.references
    if all(map(math.isnan, known)):
        return
    units = {
        "return": (known.random_return, known.oracle_return),
        "rate": (known.random_rate, known.oracle_rate),
    }
    finite = {unit: pair for unit, pair in units.items() if all(map(math.isfinite, pair))}
    require(len(finite) > 0, "references", f"neither return nor rate is finite: {known}")
    for unit, (random, oracle) in finite.items():
        require(
            oracle > random, "references", f"oracle {unit} {oracle} is not above random {random}"
        )


def check_arrays(env: Environment, seed: int, actions: Actions) -> None:
    """[arrays] Every returned array has the documented shape and dtype, and is finite."""
    _check_array("the first observation", env.reset(seed), env, np.float32, observation=True)
    for step in _steps(env, actions):
        require(isinstance(step, Step), "arrays", f"step returned {type(step)}, must be a Step")
        has_goal = step.goal is not None
        require(has_goal == env.goals, "arrays", f"goals is {env.goals}, but goal is {step.goal!r}")
        for name, array in _arrays(step).items():
            _check_array(name, array, env, _DTYPES[name], observation=name in _OBSERVATIONS)


def check_determinism(make: Make, seed: int, actions: Actions, trace: Trace) -> None:
    """[determinism] The same seed and actions give the same bits in another environment."""
    _same(trace, _play(make(), seed, actions), "determinism", "a second environment")


def check_restart(env: Environment, seed: int, actions: Actions, trace: Trace) -> None:
    """[restart] ``reset(seed)`` starts anew, whatever happened before."""
    _play(env, seed + 1, actions[: len(actions) // 2 + 1])
    _same(trace, _play(env, seed, actions), "restart", "a used environment after reset")


def check_ownership(make: Make, seed: int, actions: Actions, trace: Trace) -> None:
    """[ownership] Returned arrays belong to the caller, and actions are not modified."""
    env = make()
    kept = [_first(env.reset(seed)), *_steps(env, actions)]
    _same(trace, kept, "ownership", "an array was changed after it had been returned: it")

    env = make()
    overwrite(env.reset(seed))
    for index, row in enumerate(actions, start=1):
        given = row.copy()
        step = env.step(given)
        require(
            bits_equal(given, row), "ownership", f"step {index} changed the actions it was given"
        )
        subject = "an env whose returned arrays were overwritten"
        _same([trace[index]], [step], "ownership", subject, start=index)
        for array in _arrays(step).values():
            overwrite(array)


def check_auto_reset(make: Make, seed: int, trace: Trace) -> None:
    """[auto-reset] The step that ends an episode shows the first observation of the next one.

    No test can know every start of a world. But where resets return the same few starts again and
    again, some of the (ten or more) observations returned with an end must be among them.
    (That the world continues after an end is tested wherever it is stepped.)
    """
    env = make()
    first = [lane.tobytes() for more in range(_STARTS) for lane in env.reset(seed + more)]
    starts = set(first)
    shown = [step.observation[lane].tobytes() for step in trace[1:] for lane in _lanes(step.ended)]
    if len(starts) > len(first) // 2 or len(shown) < 10:
        return
    require(
        not starts.isdisjoint(shown),
        "auto-reset",
        f"none of {len(shown)} observations returned with ended=True is a first observation",
    )


def check_truncation(trace: Trace) -> None:
    """[truncation] A world reports in every step which lanes it cut off, or never does.

    A lane that is cut off has ended. ``final`` is given with ``truncated``, and equals the
    observation wherever no episode was cut off.
    """
    clause, given = "truncation", [step.truncated is not None for step in trace[1:]]
    require(all(given) or not any(given), clause, "some steps have truncated, others have None")
    for index, step in enumerate(trace[1:], start=1):
        together = (step.truncated is None) == (step.final is None)
        require(together, clause, f"step {index} has one of truncated and final without the other")
        if step.truncated is None or step.final is None:
            continue
        over = not (step.truncated & ~step.ended).any()
        require(over, clause, f"step {index} has truncated set where ended is not")
        others = ~step.truncated
        alike = bits_equal(step.final[others], step.observation[others])
        problem = f"final of step {index} differs from observation where no lane was cut off"
        require(alike, clause, problem)


def check_checkpoint(make: Make, seed: int, actions: Actions, trace: Trace) -> None:
    """[checkpoint] ``save`` and ``load`` continue bit-identically, also in an env never reset."""
    clause, half = "checkpoint", len(actions) // 2
    env = make()
    _play(env, seed, actions[:half])
    state = env.save()
    for name, array in state.items():
        plain = isinstance(array, np.ndarray) and array.dtype.kind in "biufc"
        require(plain, clause, f"state {name!r} must be a numeric array, is {type(array)}")
    before = {name: array.copy() for name, array in state.items()}
    rest = trace[half + 1 :]
    _same(rest, _continue(env, actions[half:]), clause, "after save, the environment")
    _same_state(before, state, "later steps")
    env.load(state)
    _same(rest, _continue(env, actions[half:]), clause, "after load, the environment")
    _same_state(before, state, "load and later steps")
    fresh = make()
    try:
        fresh.load(before)
    except Exception as fault:
        raise AssertionError(f"[checkpoint] a fresh environment cannot load: {fault!r}") from fault
    _same(rest, _continue(fresh, actions[half:]), clause, "a fresh environment after load")


def check_refusal(make: Make, seed: int, actions: Actions, trace: Trace) -> None:
    """[refusal] Invalid actions raise ``ValueError`` and change nothing."""
    env = make()
    env.reset(seed)
    lanes, count = env.lanes, env.actions
    first = np.zeros(lanes, np.int64)
    last_high, last_low = first.copy(), first.copy()
    last_high[-1], last_low[-1] = count, -1
    bad: dict[str, NDArray[np.generic]] = {
        f"an action of {count} (actions are 0 .. {count - 1})": last_high,
        "an action of -1": last_low,
        f"{lanes + 1} actions for {lanes} lanes": np.zeros(lanes + 1, np.int64),
        "a single action without axis": np.zeros((), np.int64),
        "actions that are not integers": np.zeros(lanes, np.float64),
    }
    for what, array in bad.items():
        try:
            env.step(array)  # type: ignore[arg-type]
        except ValueError:
            continue
        except Exception as fault:
            problem = f"{what} must raise ValueError, raised {fault!r}"
            raise AssertionError(f"[refusal] {problem}") from fault
        require(False, "refusal", f"{what} must raise ValueError, was accepted")
    _same(trace[1:], _continue(env, actions), "refusal", "after refused actions, the environment")


def check_streams(make: Make, seed: int, actions: Actions) -> None:
    """[streams] Randomness depends on the seed, and each lane has its own stream.

    All lanes get the same actions, under several seeds. In a deterministic world neither the seed
    nor the lane makes a difference, in a random one both do; if only one does, a stream is wrong.
    """
    env = make()
    if env.lanes == 1:
        return
    equal = np.repeat(actions[:, :1], env.lanes, axis=1)
    traces = [_play(env, seed + more, equal) for more in range(_MORE_SEEDS)]
    prints = [[_fingerprint(trace, lane) for lane in range(env.lanes)] for trace in traces]
    seeds_differ = any(one != other for one, other in pairwise(prints))
    lanes_differ = any(len(set(lanes)) > 1 for lanes in prints)
    require(seeds_differ or not lanes_differ, "streams", "lanes differ, but the seed is ignored")
    require(lanes_differ or not seeds_differ, "streams", "all lanes share one random stream")


def _random_actions(env: Environment, seed: int, steps: int) -> Actions:
    """Return actions [steps, N]."""
    generator = seeds.stream(seed, "conformance")
    return generator.integers(env.actions, size=(steps, env.lanes))


def _play(env: Environment, seed: int, actions: Actions) -> Trace:
    """Reset, act, and return copies of all steps; the first one holds only the observation."""
    return [_copy(_first(env.reset(seed))), *_continue(env, actions)]


def _continue(env: Environment, actions: Actions) -> Trace:
    """Act, and return copies of all steps."""
    return [_copy(step) for step in _steps(env, actions)]


def _steps(env: Environment, actions: Actions) -> Iterator[Step]:
    """Act, and yield each step as it was returned."""
    after_end = False
    for row in actions:
        try:
            step = env.step(row.copy())
        except Exception as fault:
            require(not after_end, "auto-reset", f"the step after an ended one raised {fault!r}")
            raise
        yield step
        after_end = bool(step.ended.any())


def _first(observation: Array) -> Step:
    """Return a step that holds the first observation and nothing else."""
    lanes = len(observation)
    none, nothing = np.zeros(lanes, np.bool_), np.zeros(lanes)
    return Step(observation, nothing.astype(np.float32), none, nothing, none)


def _copy(step: Step) -> Step:
    copies: dict[str, Any] = {name: array.copy() for name, array in _arrays(step).items()}
    return step._replace(**copies)


def _lanes(flags: NDArray[np.bool_]) -> list[int]:
    lanes: list[int] = np.flatnonzero(flags).tolist()
    return lanes


def _fingerprint(trace: Trace, lane: int) -> bytes:
    """Return the bytes of everything that one lane returned."""
    arrays = (array for step in trace for array in _arrays(step).values())
    return b"".join(array[lane].tobytes() for array in arrays)


def _check_array(
    name: str, array: NDArray[np.generic], env: Environment, dtype: type, observation: bool
) -> None:
    shape = (env.lanes, *env.observation_shape) if observation else (env.lanes,)
    require(
        isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == shape,
        "arrays",
        f"{name} must be an array {list(shape)} of {np.dtype(dtype)}, is {describe(array)}",
    )
    require(bool(np.isfinite(array).all()), "arrays", f"{name} is not finite")


def _arrays(step: Step) -> dict[str, NDArray[np.generic]]:
    """Return the arrays of ``step`` by name; ``goal`` may be missing."""
    return {name: array for name, array in step._asdict().items() if array is not None}


def _same(expected: Trace, found: Trace, clause: str, subject: str, start: int = 0) -> None:
    for index, (one, other) in enumerate(zip(expected, found, strict=True), start):
        expected_arrays, found_arrays = _arrays(one), _arrays(other)
        for name, array in expected_arrays.items():
            alike = name in found_arrays and bits_equal(array, found_arrays[name])
            require(alike, clause, f"{subject} differs in {name} at step {index}")


def _same_state(before: State, after: State, cause: str) -> None:
    for name, array in before.items():
        problem = f"the saved {name!r} was changed by {cause}"
        require(bits_equal(array, after[name]), "checkpoint", problem)


def require(condition: bool, clause: str, problem: str) -> None:
    """Raise ``AssertionError`` that starts with the clause unless ``condition`` holds.

    (``assert`` is not used, so the tests also work under ``python -O``.)
    """
    if not condition:
        raise AssertionError(f"[{clause}] {problem}")


def describe(value: object) -> str:
    """Return shape and type of an array, or the type of anything else."""
    if isinstance(value, np.ndarray):
        return f"an array {list(value.shape)} of {value.dtype}"
    return repr(type(value))


def overwrite(array: NDArray[Any]) -> None:
    """Overwrite an array, if it is writeable."""
    if array.flags.writeable:
        array[...] = 77


def bits_equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether two arrays have the same shape, type and bits."""
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and one.tobytes() == other.tobytes()
