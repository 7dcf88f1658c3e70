"""The specification of a run: frozen, strictly decoded, and identified by its own hash."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from rulescope.core.errors import SpecError
from rulescope.core.structs import Frozen, expanded, explain, parsed, without_defaults
from rulescope.envs.world_config import Boundary, Catch, Change, EnvironmentSpec, change_problem
from rulescope.learners.baseline_config import VARIANTS as BASELINES
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner_config import LearnerSpec, Plugin

Mode = Literal["natural", "clamp"]
"""``natural``: written once, then the learner continues from it. ``clamp``: restored after every
later iteration."""
Policy = Literal["terminal", "initial", "random"]
Iteration = Annotated[int, Meta(ge=0)]
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]
KEPT = ("averages", "recurrent")
"""Carriers that are kept by default."""


class _Operation(Frozen, frozen=True):
    """Base of the operations on one carrier, which follow."""

    carrier: str

    @property
    def first_effect(self) -> int:
        """The first iteration after which the learner may differ; 0 is before the first one.

        Operations without ``at`` act from the start. (Before ``at``, the others do nothing.)
        """
        return int(getattr(self, "at", 0))

    @property
    def operation(self) -> str:
        """The name of the operation, as in a specification."""
        return str(self.__struct_config__.tag)


class Pin(_Operation, frozen=True, tag="pin", tag_field="operation"):
    """Set every array to zero after every iteration.

    (For ``averages`` that is not the initial state, whose product of decays is one.)
    """


class PinSteps(Pin, frozen=True, tag="pin-steps", tag_field="operation"):
    """Set every array to zero after every step of the optimiser.

    Some learners make many steps per iteration; the carrier is zero at each of them.
    """


class Freeze(_Operation, frozen=True, tag="freeze", tag_field="operation"):
    """Restore the value that the carrier had after iteration ``at``, after every later one."""

    at: Iteration
    """0 is the initial learner, before its first iteration."""


class Hold(_Operation, frozen=True, tag="hold", tag_field="operation"):
    """Restore, after every later iteration, the value that the carrier had after the first update.

    The first update is the first iteration that changed the carrier: a learner may collect data
    for some iterations before it learns.
    """


class Reset(_Operation, frozen=True, tag="reset", tag_field="operation"):
    """Restore the initial value once, after iteration ``at``.

    Reset the carrier ``replay`` to clear it.
    """

    at: Annotated[int, Meta(ge=1)]


class Transplant(_Operation, frozen=True, tag="transplant", tag_field="operation"):
    """Start with the terminal value of the donor."""

    donor: RunSpec
    mode: Mode


class RandomState(_Operation, frozen=True, tag="random", tag_field="operation"):
    """Start with a random value that has the donors' terminal mean and deviation in each unit.

    Every unit is drawn independently from a normal distribution with the mean and the standard
    deviation (over N, not N - 1) of that unit over the donors. Arrays that are not of floating
    point stay the recipient's own.
    """

    donors: Annotated[tuple[RunSpec, ...], Meta(min_length=2)]
    mode: Mode


class Permute(_Operation, frozen=True, tag="permute", tag_field="operation"):
    """After iteration ``at``, permute the units of the carrier.

    One permutation of the last axis is used for all arrays of that width, so units stay whole (a
    hidden unit keeps its cell). What still works did not depend on the identity of units.
    """

    at: Iteration
    mode: Mode


class Ablate(_Operation, frozen=True, tag="ablate", tag_field="operation"):
    """After iteration ``at``, remove the part of the carrier along some directions.

    Directions are those along which the donors' terminal values vary. Along them the value becomes
    the donors' mean; across them it is unchanged. Clamped, the part is removed again after every
    later iteration, while the rest of the value evolves.

    All arrays of floating point form one vector, in the order of their names and in their own
    units; other arrays stay the recipient's own.
    """

    donors: Annotated[tuple[RunSpec, ...], Meta(min_length=2)]
    components: Annotated[int, Meta(ge=1)]
    """How many directions."""
    which: Literal["principal", "random", "complement"]
    """``principal``: those along which the donors vary most. ``random``: as many, uniform over the
    subspace in which the donors vary. ``complement``: all but the principal ones."""
    at: Iteration
    mode: Mode


class Placebo(_Operation, frozen=True, tag="placebo", tag_field="operation"):
    """Write back the value just read, which must leave the lifetime bit-identical."""


Intervention = (
    Pin | PinSteps | Freeze | Hold | Reset | Transplant | RandomState | Permute | Ablate | Placebo
)


class Fork(Frozen, frozen=True):
    """Start from the state of another run after iteration ``at``: learner, world, random streams.
    Iterations are counted on from there.

    The interventions of the other run do not carry over: a fork without interventions continues it
    bit-identically if it has none either.
    """

    run: RunSpec
    """It must have ``at`` among its ``marks``."""
    at: Annotated[int, Meta(ge=1)]


class Evaluation(Frozen, frozen=True):
    """Evaluation of fixed policies after the lifetime: they act, and nothing is learned.

    Worlds and action noise depend on the run's seed alone, so all runs of a seed are evaluated in
    the same worlds with the same noise. Rewards are in the world's own units.
    """

    lanes: Annotated[int, Meta(ge=1, le=4096)] = 32
    steps: Annotated[int, Meta(ge=1)] = 4096
    """Interactions of each lane."""
    policies: Annotated[tuple[Policy, ...], Meta(min_length=1)] = ("terminal", "initial", "random")
    """``terminal``: the learner at the end of the lifetime. ``initial``: before its first
    iteration. ``random``: uniformly random actions."""


def _donors(item: Intervention) -> dict[str, RunSpec]:
    """Return the runs whose terminal state ``item`` needs, by their key in ``item``."""
    match item:
        case Transplant(donor=donor):
            return {"donor": donor}
        case RandomState(donors=donors) | Ablate(donors=donors):
            return {f"donors[{place}]": donor for place, donor in enumerate(donors)}
        case _:
            return {}


class RunSpec(Frozen, frozen=True):
    """Everything that determines one lifetime, and nothing else."""

    learner: LearnerSpec = Disco()
    environment: EnvironmentSpec = Catch()
    boundary: Boundary = Boundary()
    change: Change | None = None
    """The change of the world within the lifetime, if any."""
    scale: Annotated[float, Meta(gt=0.0, le=1e12)] = 1.0
    """Reward multiplier that the learner observes; logs are in the world's own units."""
    interventions: tuple[Intervention, ...] = ()
    iterations: Annotated[int, Meta(ge=1)] = 2000
    log_every: Annotated[int, Meta(ge=1)] = 20
    lanes: Annotated[int, Meta(ge=1, le=4096)] = 2
    """Environments stepped together."""
    steps: Annotated[int, Meta(ge=2, le=65536)] = 29
    """Interactions of each lane in one iteration."""
    seed: Seed = 0
    world_seed: Seed | None = None
    """Seed of the world alone, if not ``seed``; the learner's streams use ``seed``."""
    keep: tuple[str, ...] = KEPT
    """Carriers whose terminal value is kept in the record; of the default, those that the learner
    has."""
    remainder: Annotated[int, Meta(ge=0, le=65536)] = 0
    """Steps of each lane after the last iteration, in which the learner acts without learning."""
    marks: tuple[Annotated[int, Meta(ge=1)], ...] = ()
    """Iterations after which the whole state is kept in the record, for forks to start from."""
    origin: Fork | None = None
    """The run and iteration to start from, if not a new learner."""
    evaluation: Evaluation | None = None
    """How policies are evaluated after the lifetime, if at all."""
    schema: Literal[1] = 1
    """Version of the specification schema; a change of meaning raises it."""

    @property
    def id(self) -> str:
        """The sha256 of the canonical form, as 64 hexadecimal digits."""
        return hashlib.sha256(canonical(self)).hexdigest()

    @property
    def interactions(self) -> int:
        """Steps of the run, all lanes together; those before a fork belong to the other run."""
        return ((self.iterations - self.start) * self.steps + self.remainder) * self.lanes

    @property
    def start(self) -> int:
        """The iteration after which the run starts: 0, or that of the fork."""
        return 0 if self.origin is None else self.origin.at

    @property
    def kept(self) -> tuple[str, ...]:
        """The carriers in the record."""
        return tuple(name for name in self.keep if name in self.learner.carrier_names)

    @property
    def donors(self) -> tuple[RunSpec, ...]:
        """The runs whose records this one needs, each once."""
        found = [donor for item in self.interventions for donor in _donors(item).values()]
        return tuple(dict.fromkeys(found if self.origin is None else [self.origin.run, *found]))


def with_donors(specs: Iterable[RunSpec]) -> dict[str, RunSpec]:
    """Return ``specs`` by id with all their donors, each before the runs that need it."""
    found: dict[str, RunSpec] = {}
    for item in specs:
        key = item.id
        if key not in found:
            found |= with_donors(item.donors)
            found[key] = item
    return found


def canonical(spec: RunSpec) -> bytes:
    """Return the canonical JSON of ``spec``: sorted keys, defaults left out, version always in."""
    fields = without_defaults(spec)
    return msgspec.json.encode({**fields, "schema": spec.schema}, order="sorted")


def decode(text: bytes | str, source: str = "spec") -> RunSpec:
    """Read a ``RunSpec`` from JSON; any fault is a :class:`SpecError` that names the key."""
    return convert(parsed(text, source), source)


def convert(data: Any, source: str = "spec") -> RunSpec:
    """Turn plain data (as from JSON) into a checked ``RunSpec``."""
    try:
        spec = msgspec.convert(data, RunSpec)
    except msgspec.ValidationError as fault:
        raise SpecError(f"{source}: {explain(fault, RunSpec, data)}") from None
    for problem in _problems(spec):
        raise SpecError(f"{source}: {problem}")
    return spec


def read(path: Path) -> RunSpec:
    """Read a spec file."""
    try:
        text = path.read_bytes()
    except OSError as fault:
        raise SpecError(f"{path}: cannot be read ({fault.strerror})") from None
    return decode(text, str(path))


def checked(spec: RunSpec, source: str = "spec") -> RunSpec:
    """Return ``spec`` as it would be read back, or raise :class:`SpecError` naming the key.

    A spec made in Python is unchecked: it may hold a list instead of a tuple, with another id.
    """
    try:
        return convert(msgspec.to_builtins(spec), source)
    except TypeError as fault:  # such as a NumPy scalar
        raise SpecError(f"{source}: {fault}") from None


def _problems(spec: RunSpec) -> list[str]:
    """Return the problems that no single field shows: invalid combinations."""
    boundary = spec.boundary
    found = [f"{key}: {value} is not finite" for key, value in _find_non_finite(expanded(spec))]
    if boundary.terminals == "synthetic" and boundary.interval is None:
        found.append("boundary.interval: synthetic terminals need an interval, such as 29")
    if boundary.terminals != "synthetic" and boundary.interval is not None:
        found.append(f"boundary.interval: has no meaning with terminals {boundary.terminals!r}")
    if boundary.truncation == "bootstrap":
        found += [f"boundary.truncation: {problem}" for problem in _bootstrap_problems(spec)]
    if spec.change is not None:
        found += [f"change.{problem}" for problem in _change_problems(spec.change, spec)]
    if spec.iterations // spec.log_every <= spec.start // spec.log_every:
        span = f"{spec.start} to {spec.iterations}" if spec.start else f"({spec.iterations})"
        found.append(
            f"log_every: {spec.log_every} is more than iterations {span}, so nothing would be "
            "logged"
        )
    found += [f"learner.{problem}" for problem in spec.learner.problems(spec.lanes, spec.steps)]
    if spec.keep != KEPT:
        missing = [name for name in spec.keep if name not in spec.learner.carrier_names]
        found += [f"keep: {spec.learner.missing_carrier(name)}" for name in missing]
    found += [f"keep: {name!r} is named twice" for name in spec.keep if spec.keep.count(name) > 1]
    for place, item in enumerate(spec.interventions):
        found += [
            f"interventions[{place}].{problem}" for problem in _intervention_problems(item, spec)
        ]
    found += [f"marks: {problem}" for problem in _mark_problems(spec)]
    if spec.origin is not None:
        found += [f"origin.{problem}" for problem in _fork_problems(spec.origin, spec)]
    if spec.evaluation is not None and spec.change is not None:
        found.append("evaluation: a run with a change has none (before or after the change?)")
    return found


def _bootstrap_problems(spec: RunSpec) -> Iterator[str]:
    if spec.boundary.terminals != "episodic":
        yield f"'bootstrap' has no meaning with terminals {spec.boundary.terminals!r}"
    if not spec.learner.bootstraps:
        yield cannot_bootstrap(spec.learner)


def cannot_bootstrap(learner: LearnerSpec) -> str:
    """Return the message for a learner that cannot estimate what follows a cut-off episode."""
    able = ", ".join(name for name, each in BASELINES.items() if each.bootstraps)
    name = learner.rule if isinstance(learner, Plugin) else learner.kind
    return f"the learner {name!r} takes every end for a terminal; learners that bootstrap: {able}"


def _mark_problems(spec: RunSpec) -> Iterator[str]:
    for mark in spec.marks:
        if not spec.start < mark < spec.iterations:
            yield f"{mark} is not between {spec.start} and the last iteration ({spec.iterations})"
        if spec.marks.count(mark) > 1:
            yield f"{mark} is named twice"


FORKED = ("interventions", "log_every", "keep", "remainder", "marks", "origin", "evaluation")
"""Fields in which a fork may differ from the run that it continues."""


def _fork_problems(fork: Fork, spec: RunSpec) -> Iterator[str]:
    """Yield what is wrong with the fork that ``spec`` starts from."""
    yield from (f"run.{problem}" for problem in _problems(fork.run))
    if fork.at not in fork.run.marks:
        yield f"run.marks: the run must keep {fork.at}, where the fork starts"
    for name in RunSpec.__struct_fields__:
        if name not in FORKED and getattr(fork.run, name) != getattr(spec, name):
            yield f"run.{name}: a fork must have the same {name} as the run that it continues"


def _change_problems(change: Change, spec: RunSpec) -> Iterator[str]:
    if change.at >= spec.iterations:
        last = f"the last iteration ({spec.iterations})"
        yield f"at: {change.at} is not before {last}, so nothing would change"
    problem = change_problem(spec.environment, change)
    if problem is not None:
        yield problem


def _intervention_problems(item: Intervention, spec: RunSpec) -> Iterator[str]:
    """Yield what is wrong with one intervention of ``spec``, its donors included."""
    if item.carrier not in spec.learner.carrier_names:
        yield f"carrier: {spec.learner.missing_carrier(item.carrier)}"
    if item.carrier == "replay" and isinstance(item, RandomState | Permute | Ablate):
        yield f"operation: {item.operation!r} makes no trajectories; it has no meaning for replay"
    at = getattr(item, "at", spec.start)
    if at >= spec.iterations:
        last = f"the last iteration ({spec.iterations})"
        yield f"at: {at} is not before {last}, so nothing would be done"
    if at < spec.start:
        yield f"at: {at} is before the fork ({spec.start}), so nothing would be done"
    if isinstance(item, PinSteps) and not spec.learner.stepwise:
        name = getattr(spec.learner, "rule", spec.learner.kind)
        yield f"operation: the learner {name!r} can be pinned after iterations only; use 'pin'"
    if isinstance(item, Ablate) and item.components >= len(set(item.donors)):
        different = f"{len(set(item.donors))} different donors"
        yield f"components: {different} cannot vary along {item.components} directions"
    for key, donor in _donors(item).items():
        yield from (f"{key}.{problem}" for problem in _problems(donor))
        if item.carrier not in donor.kept:
            yield f"{key}.keep: a donor must keep its {item.carrier!r}"


def _find_non_finite(data: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the key and value of every float in ``data`` that is not finite."""
    if isinstance(data, dict):
        for name, part in data.items():
            yield from _find_non_finite(part, f"{path}.{name}" if path else name)
    elif isinstance(data, list):
        for place, part in enumerate(data):
            yield from _find_non_finite(part, f"{path}[{place}]")
    elif isinstance(data, float) and not math.isfinite(data):
        yield path, data
