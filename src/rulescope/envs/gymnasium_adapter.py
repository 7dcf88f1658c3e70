"""Adapter of Gymnasium environments with discrete actions."""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rulescope.core import plugin_source, seeds
from rulescope.core.errors import (
    RecordError,
    RulescopeError,
    SpecError,
    WorldError,
    nearest,
    refusing_exit,
)
from rulescope.envs.environment import (
    Actions,
    Array,
    References,
    SeededWorld,
    State,
    Step,
    merge_final,
)
from rulescope.envs.plugin_world import checked_flag, checked_reward, checked_step
from rulescope.envs.world_config import Argument, Gymnasium, WorldWrapper


class GymnasiumEnv(SeededWorld):
    """``lanes`` environments of one Gymnasium id.

    Observations from a box keep their shape, all others become a vector as
    ``gymnasium.spaces.flatten`` returns it (one-hot for a discrete space); numbers become float32
    and are not scaled. For a dictionary, ``config.observation`` names the observed part.
    Termination and truncation both end the episode, and are reported as terminal; ``truncated`` of
    a step tells them apart.

    Every episode starts with a reset to a seed of its own, drawn from the stream of the lane.
    Gymnasium cannot save an environment, so a saved state is that seed and the actions since, and
    loading it replays them. That is exact for an environment whose episodes depend on the seed
    alone; others are refused when a replay differs. Loading takes longer in longer episodes.
    A wrapper may change rewards by what it saw in earlier episodes, so with wrappers the payoffs
    are saved too, and must be the same in the replay.
    """

    def __init__(self, config: Gymnasium, lanes: int) -> None:
        super().__init__(lanes)
        self.config = config
        self._spaces = _package().spaces
        self._envs = [_make(config) for _ in range(lanes)]
        require_source(config)
        actions = self._envs[0].action_space
        if not isinstance(actions, self._spaces.Discrete):
            raise SpecError(
                f"environment.id: {config.id!r} has no discrete actions, but {actions} (the "
                "wrapper DiscretizeAction makes them discrete)"
            )
        self.actions = int(actions.n)
        self._first_action = int(actions.start)
        self._seen = self._observed()
        boxed = isinstance(self._seen, self._spaces.Box) and len(self._seen.shape) > 0
        self._whole = boxed and not config.flat
        size = self._seen.shape if self._whole else self._spaces.flatdim(self._seen)
        self.observation_shape = tuple(int(n) for n in np.atleast_1d(size))
        self.references = _references(config)
        self._current = np.zeros((lanes, *self.observation_shape), np.float32)
        self._seeds = [0] * lanes
        self._actions: list[list[int]] = [[] for _ in range(lanes)]
        self._payoffs: list[list[float]] = [[] for _ in range(lanes)]

    def _observed(self) -> Any:
        """Return the space of the observed part, which must be numeric."""
        space, part, name = self._envs[0].observation_space, self.config.observation, self.config.id
        parts = dict(space.spaces) if isinstance(space, self._spaces.Dict) else {}
        if part is not None and not parts:
            raise SpecError(f"environment.observation: {name!r} shows no dictionary but {space}")
        if part is not None and part not in parts:
            raise SpecError(
                f"environment.observation: no {part!r} in {name!r}{nearest(part, parts)}"
            )
        space = space if part is None else parts[part]
        if _flattenable(space):
            return space
        fit = [key for key, each in parts.items() if _flattenable(each)]
        hint = ""
        if fit:
            boxed = [key for key in fit if isinstance(parts[key], self._spaces.Box)]
            hint = (
                f"; environment.observation may be {' or '.join(map(repr, fit))} (in --env and "
                f"--tasks: #{(boxed or fit)[0]} at the end of the name)"
            )
        shown = ", ".join(f"{key} ({type(each).__name__})" for key, each in parts.items())
        what = f"a dictionary of {shown}" if parts and part is None else type(space).__name__
        raise SpecError(f"environment.id: {name!r} shows {what}, not a fixed array{hint}")

    def reset(self, seed: int) -> Array:
        """Start every lane anew from ``seed`` and return the first observation [N, *shape]."""
        self._seed(seed)
        for lane in range(self.lanes):
            self._start_episode(lane)
        return self._current.copy()

    def step(self, actions: Actions) -> Step:
        """Take an action [N] of 0 .. ``actions`` - 1; Gymnasium may count from another number."""
        payoff = np.zeros(self.lanes)
        ended, truncated = np.zeros(self.lanes, np.bool_), np.zeros(self.lanes, np.bool_)
        for lane, action in enumerate(self._checked(actions)):
            payoff[lane], ended[lane], truncated[lane] = self._act(lane, action)
        before = self._current.copy() if truncated.any() else None
        for lane in np.flatnonzero(ended).tolist():
            self._start_episode(lane)
        shown, reward = self._current.copy(), payoff.astype(np.float32)
        final = merge_final(shown, before, truncated)
        return Step(shown, reward, ended.copy(), payoff, ended, None, truncated, final)

    def save(self) -> State:
        """Return the seeds and actions of the running episodes, and their observations.

        ``seeds`` [N], the ``lengths`` [N] so far, ``actions`` [N, longest] filled up with -1, the
        packed ``streams`` [N, 6] and the ``observation`` [N, *shape] to check a replay by. With
        wrappers also the ``payoffs`` [N, longest].
        """
        streams = self._packed()
        lengths = [len(actions) for actions in self._actions]
        played = np.full((self.lanes, max(lengths)), -1, np.int64)
        for row, actions in zip(played, self._actions, strict=True):
            row[: len(actions)] = actions
        paid = {"payoffs": self._padded_payoffs()} if self.config.wrappers else {}
        return paid | {
            "streams": streams,
            "seeds": np.array(self._seeds),
            "lengths": np.array(lengths),
            "actions": played,
            "observation": self._current.copy(),
        }

    def load(self, state: State) -> None:
        """Replay the saved episodes up to their last step."""
        lanes = (self.lanes,)
        longest = state["actions"].shape[1:] if "actions" in state else ()
        arrays = self._verified(
            state,
            {
                "streams": (self.lanes, 6),
                "seeds": lanes,
                "lengths": lanes,
                "actions": lanes + longest,
                "observation": (self.lanes, *self.observation_shape),
                **({"payoffs": lanes + longest} if self.config.wrappers else {}),
            },
        )
        self._streams = [seeds.unpack(words) for words in arrays["streams"]]
        for lane in range(self.lanes):
            self._begin(lane, int(arrays["seeds"][lane]))
            for action in arrays["actions"][lane, : int(arrays["lengths"][lane])].tolist():
                self._act(lane, action)
        seen = np.asarray(arrays["observation"], np.float32).tobytes()
        paid = np.asarray(arrays.get("payoffs", self._padded_payoffs()), np.float64)
        if self._current.tobytes() != seen or (paid != self._padded_payoffs()).any():
            raise RecordError(
                f"{self.config.id!r} cannot be resumed: replayed from the same seed, an episode "
                "differs"
            )

    def _start_episode(self, lane: int) -> None:
        self._begin(lane, int(self._streams[lane].integers(2**31)))

    def _begin(self, lane: int, seed: int) -> None:
        self._seeds[lane], self._actions[lane], self._payoffs[lane] = seed, [], []
        with refusing_exit(f"the world {self.config.id!r}"):
            observation, _ = self._envs[lane].reset(seed=seed)
        self._current[lane] = self._array(observation)

    def _padded_payoffs(self) -> NDArray[np.float64]:
        """Return the payoffs of the running episodes [N, longest], filled up with 0."""
        payoffs = np.zeros((self.lanes, max(map(len, self._payoffs))))
        for row, paid in zip(payoffs, self._payoffs, strict=True):
            row[: len(paid)] = paid
        return payoffs

    def _act(self, lane: int, action: int) -> tuple[float, bool, bool]:
        """Step one lane; return its payoff, whether the episode ended, and whether it was cut off.

        A limit that is reached in the very step that ends the episode cuts nothing off.
        """
        self._actions[lane].append(action)
        name = self.config.id
        observation, reward, terminated, truncated, _ = checked_step(
            name, self._envs[lane].step(action + self._first_action)
        )
        self._current[lane] = self._array(observation)
        over = checked_flag(name, "terminated", terminated)
        cut = checked_flag(name, "truncated", truncated) and not over
        payoff = checked_reward(name, reward)
        self._payoffs[lane].append(payoff)
        return payoff, over or cut, cut

    def _array(self, observation: Any) -> NDArray[Any]:
        part = self.config.observation
        try:
            seen = observation if part is None else observation[part]
            flat = seen if self._whole else self._spaces.flatten(self._seen, seen)
            array = np.asarray(flat, np.float32).reshape(self.observation_shape)
        except (TypeError, ValueError, LookupError) as fault:
            raise WorldError(
                f"the world {self.config.id!r}: an observation is not of {self._seen}: {fault}"
            ) from None
        if not np.isfinite(array).all():
            raise WorldError(
                f"the world {self.config.id!r}: an observation holds "
                f"{array[~np.isfinite(array)].flat[0]}; all numbers must be finite"
            )
        return array


def _make(config: Gymnasium) -> Any:
    """Make one environment with its wrappers, or raise :class:`SpecError` with the reason."""
    gymnasium = _package()
    arguments = _by_name(config.arguments, f"environment.arguments: of {config.id!r}")
    try:
        with refusing_exit(f"the world {config.id!r}"):
            env = gymnasium.make(config.id, **arguments)
    except gymnasium.error.UnregisteredEnv:
        raise SpecError(
            f"environment.id: {config.id!r} cannot be made: it is not registered"
            f"{_nearest_ids(config.id, gymnasium.registry)}"
        ) from None
    except RulescopeError:
        raise
    except Exception as fault:  # the code of a world may raise anything
        given = f" with {', '.join(sorted(arguments))}" if arguments else ""
        raise SpecError(
            f"environment.id: {config.id!r} cannot be made{given} ({_reason(fault)})"
        ) from None
    registered = gymnasium.spec(config.id).kwargs if _texts(arguments) else {}
    _require_flags(type(env.unwrapped), registered, arguments, f"environment.id: {config.id!r}")
    for place, wrapper in enumerate(config.wrappers):
        env = _wrap(env, wrapper, f"environment.wrappers[{place}]")
    return env


def _texts(arguments: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments that are text."""
    return [name for name, value in arguments.items() if isinstance(value, str)]


def _require_flags(
    kind: type, registered: Mapping[str, Any], arguments: Mapping[str, Any], where: str
) -> None:
    """Raise if text is given for what is true or false by default: any text would count as true.

    The defaults are those of the constructor of ``kind``, or those ``registered`` instead.
    """
    texts = _texts(arguments)
    if not texts:
        return
    try:
        parameters = inspect.signature(kind).parameters
    except (TypeError, ValueError):  # a constructor in C may have none
        parameters = MappingProxyType({})
    usual = {name: each.default for name, each in parameters.items()} | dict(registered)
    for name in texts:
        if isinstance(usual.get(name), bool):
            raise SpecError(f"{where}: {name}={arguments[name]} is neither true nor false")


def _reason(fault: Exception) -> str:
    """Return the text of ``fault``; that of a missing key is the key alone."""
    told = isinstance(fault, LookupError) or not str(fault)
    return f"{type(fault).__name__}: {fault}" if told else f"{fault}"


def _by_name(arguments: Sequence[Argument], where: str) -> dict[str, Any]:
    """Return keyword arguments by name; ``where`` begins the error about one given twice."""
    found = {each.name: each.value for each in arguments}
    if len(found) < len(arguments):
        raise SpecError(f"{where}, a name is given twice")
    return found


def _nearest_ids(name: str, registered: Iterable[str]) -> str:
    """Return a hint such as ``"; nearest: 'CartPole-v1'"``; there are too many to list them all."""
    close = difflib.get_close_matches(name, list(registered), n=1, cutoff=0.6)
    hint = f"; nearest: {close[0]!r}" if close else ""
    return f"{hint}; an id of another package begins with its module, as in 'minigrid:{name}'"


def _wrap(env: Any, wrapper: WorldWrapper, where: str) -> Any:
    """Return ``env`` inside one wrapper; ``where`` begins the error."""
    module, colon, name = wrapper.name.rpartition(":")
    try:
        with refusing_exit(f"the wrapper {wrapper.name!r}"):
            kinds = import_module(module if colon else "gymnasium.wrappers")
    except ImportError as fault:
        raise SpecError(f"{where}: {wrapper.name!r} cannot be imported ({fault})") from None
    known = [key for key in dir(kinds) if _is_wrapper(kinds, key)]
    if name not in known:
        raise SpecError(
            f"{where}: no wrapper {name!r} in {kinds.__name__}{nearest(name, known)}"
            + ("" if colon else "; one of another package is written module:Class")
        )
    arguments = _by_name(wrapper.arguments, f"{where}.arguments: of {wrapper.name!r}")
    _require_flags(getattr(kinds, name), {}, arguments, f"{where}: {wrapper.name!r}")
    try:
        with refusing_exit(f"the wrapper {wrapper.name!r}"):
            return getattr(kinds, name)(env, **arguments)
    except RulescopeError:
        raise
    except Exception as fault:
        given = f" with {', '.join(sorted(arguments))}" if arguments else ""
        raise SpecError(
            f"{where}: {wrapper.name!r} cannot be made{given} ({_reason(fault)})"
        ) from None


def _is_wrapper(module: Any, name: str) -> bool:
    try:
        kind = getattr(module, name, None)
    except Exception:  # one that needs a package that is not installed
        return False
    return isinstance(kind, type) and issubclass(kind, _package().Wrapper)


def _flattenable(space: Any) -> bool:
    """Return whether a space is a fixed number of numbers; custom spaces may not define it."""
    try:
        return bool(space.is_np_flattenable)
    except NotImplementedError:
        return False


# Identity of a world


class Origin(NamedTuple):
    """Origin of the code of a world."""

    source: str | None
    """Sha256 of the packages (or modules) that make the world, and of how it is registered; None if
    they are not files, as in an interactive session."""
    modules: tuple[str, ...]
    """The modules of its class, of its wrappers, and the one that registers it."""


def origin(config: Gymnasium) -> Origin:
    """Return the origin of the world that ``config`` names, whatever its ``source``."""
    return _origin(Gymnasium(id=config.id, arguments=config.arguments, wrappers=config.wrappers))


@cache
def _origin(config: Gymnasium) -> Origin:
    """Make the world, once per process, and find its origin."""
    _make(config).close()  # wrappers that cannot be made are reported here
    env = _make(replace(config, wrappers=()))
    env.close()
    registered = env.spec
    parts = [registered, *registered.additional_wrappers]
    modules = {_module(part.entry_point) for part in parts}
    named, colon, _ = config.id.partition(":")
    modules |= {named} if colon else set()
    modules |= {each.name.partition(":")[0] for each in config.wrappers if ":" in each.name}
    modules |= {"gymnasium"} if any(":" not in each.name for each in config.wrappers) else set()
    facts = [[_entry(part.entry_point), _plain(part.kwargs)] for part in parts] + [
        registered.max_episode_steps,
        registered.order_enforce,
    ]
    try:
        hashes = sorted({plugin_source.hash_whole_package(name) for name in modules})
    except (ImportError, OSError):
        return Origin(None, tuple(sorted(modules)))
    text = json.dumps([hashes, facts], sort_keys=True)
    return Origin(hashlib.sha256(text.encode()).hexdigest(), tuple(sorted(modules)))


def reward_threshold(config: Gymnasium) -> float | None:
    """Return the mean return at which the environment counts as solved, if one is registered."""
    env = _make(config)
    env.close()
    found = env.spec.reward_threshold
    return None if found is None else float(found)


def known_source(config: Gymnasium) -> str:
    """Return the source of the world; raise :class:`SpecError` if it is not in files."""
    source = origin(config).source
    if source is None:
        raise SpecError(
            f"environment.id: the code of {config.id!r} is not in files, so it cannot be hashed"
        )
    return source


def pin_source(config: Gymnasium) -> Gymnasium:
    """Return ``config`` with the hash of the installed world as its source."""
    return replace(config, source=known_source(config))


def pin_gymnasium(
    name: str, arguments: Mapping[str, Any] | None = None, **fields: Any
) -> Gymnasium:
    """Return the configuration of the Gymnasium world ``name`` with the hash of its source.

    ``arguments`` are those of ``gymnasium.make``, ``fields`` those of
    :class:`~rulescope.envs.world_config.Gymnasium`.
    """
    given = tuple(
        Argument(name=key, value=tuple(value) if isinstance(value, list) else value)
        for key, value in sorted((arguments or {}).items())
    )
    return pin_source(Gymnasium(id=name, arguments=given, **fields))


def require_source(config: Gymnasium) -> None:
    """Raise :class:`SpecError` if the source in ``config`` is not the installed one."""
    if config.source is None:
        return
    here = known_source(config)
    if here != config.source:
        raise SpecError(
            f"environment.source: the world {config.id!r} is {here[:12]} here, not "
            f"{config.source[:12]}: its package was edited, or is another version. Install the "
            "other one, or make the run anew with this one (it gets another id)"
        )


def _entry(point: Any) -> str:
    """Return an entry point of Gymnasium, a string or a callable, as a string."""
    return point if isinstance(point, str) else f"{point.__module__}:{point.__qualname__}"


def _module(point: Any) -> str:
    return _entry(point).partition(":")[0]


def _plain(arguments: dict[str, Any] | None) -> Any:
    """Return registered arguments as JSON data; other objects are represented by their type."""
    return json.loads(json.dumps(arguments or {}, default=lambda each: f"{type(each)}"))


def _references(config: Gymnasium) -> References:
    """Return the references in ``config``: pairs, the oracle above random."""
    units = {
        "return": (config.random_return, config.oracle_return),
        "rate": (config.random_rate, config.oracle_rate),
    }
    known: list[float] = []
    for unit, (random, oracle) in units.items():
        if (random is None) != (oracle is None):
            raise SpecError(f"environment.random_{unit}: needs environment.oracle_{unit} beside it")
        if random is None or oracle is None:
            known += [math.nan, math.nan]
        elif not random < oracle:
            raise SpecError(f"environment.oracle_{unit}: {oracle} is not above random ({random})")
        else:
            known += [random, oracle]
    return References(*known)


def _package() -> Any:
    try:
        return import_module("gymnasium")
    except ModuleNotFoundError as fault:
        if fault.name != "gymnasium":
            raise
        raise SpecError("Gymnasium worlds need its package: pip install gymnasium") from None
