"""A lifetime as data: ``RunSpec`` is frozen, strictly decoded, and named by the hash of itself."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta

from rulescope.envs.config import Boundary, Catch, EnvironmentSpec
from rulescope.errors import SpecError, nearest
from rulescope.frozen import Frozen
from rulescope.learners.disco.config import Disco

LearnerSpec = Disco


class Intervention(Frozen, frozen=True):
    """What is done to one carrier after every iteration.

    ``pin`` sets every array of the carrier to zero (which for ``averages`` is not the state of a
    fresh learner: there the product of decays starts at one). ``placebo`` writes back the value
    just read, which must leave the lifetime bit-identical.
    """

    carrier: str
    operation: Literal["pin", "placebo"]


class RunSpec(Frozen, frozen=True):
    """Everything that decides what happens in one lifetime, and nothing else."""

    learner: LearnerSpec = Disco()
    environment: EnvironmentSpec = Catch()
    boundary: Boundary = Boundary()
    scale: Annotated[float, Meta(gt=0.0, le=1e12)] = 1.0
    """Reward multiplier seen by the learner; logged streams are in the world's own units."""
    interventions: tuple[Intervention, ...] = ()
    iterations: Annotated[int, Meta(ge=1)] = 2000
    log_every: Annotated[int, Meta(ge=1)] = 20
    lanes: Annotated[int, Meta(ge=1, le=4096)] = 2
    """Environments stepped together."""
    steps: Annotated[int, Meta(ge=2, le=65536)] = 29
    """Interactions of each lane in one iteration."""
    seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] = 0
    keep: tuple[str, ...] = ("averages", "recurrent")
    """Carriers whose terminal value is kept in the record."""
    schema: Literal[1] = 1
    """Version of the specification schema; a change of meaning raises it."""

    @property
    def id(self) -> str:
        """The sha256 of the canonical form, as 64 hexadecimal digits."""
        return hashlib.sha256(canonical(self)).hexdigest()


def canonical(spec: RunSpec) -> bytes:
    """Return the canonical JSON of ``spec``: sorted keys, defaults left out, version always in."""
    fields = _without_defaults(spec)
    return msgspec.json.encode({**fields, "schema": spec.schema}, order="sorted")


def _without_defaults(part: Any) -> Any:
    """Return ``part`` as plain data without what equals its default.

    (msgspec's own ``omit_defaults`` goes by identity: an equal Struct or tuple is written out.)
    """
    if isinstance(part, msgspec.Struct):
        tag = part.__struct_config__.tag
        kept = {} if tag is None else {"kind": tag}
        for field in msgspec.structs.fields(part):
            value = getattr(part, field.name)
            if isinstance(field.default, float) and type(value) is int:
                value = float(value)  # as reading it back would
            if value != field.default:
                kept[field.name] = _without_defaults(value)
        return kept
    if isinstance(part, tuple):
        return [_without_defaults(item) for item in part]
    return part


def expanded(part: Any) -> Any:
    """Return ``part`` as plain data with every default written out, for people to read."""
    if isinstance(part, msgspec.Struct):
        tag = part.__struct_config__.tag
        head = {"kind": tag} if tag is not None else {}
        return head | {name: expanded(getattr(part, name)) for name in part.__struct_fields__}
    if isinstance(part, tuple):
        return [expanded(item) for item in part]
    return part


def decode(text: bytes | str, source: str = "spec") -> RunSpec:
    """Read a ``RunSpec`` from JSON; any fault is a :class:`SpecError` that names the key."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise SpecError(f"{source}: not valid JSON ({fault})") from None
    return convert(data, source)


def convert(data: Any, source: str = "spec") -> RunSpec:
    """Turn plain data (as from JSON) into a checked ``RunSpec``."""
    try:
        spec = msgspec.convert(data, RunSpec)
    except msgspec.ValidationError as fault:
        raise SpecError(f"{source}: {_explain(str(fault))}") from None
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

    Made in Python, nothing was checked: a list may stand for a tuple, which has another id.
    """
    try:
        return convert(msgspec.to_builtins(spec), source)
    except TypeError as fault:  # such as a number of NumPy's
        raise SpecError(f"{source}: {fault}") from None


def _problems(spec: RunSpec) -> list[str]:
    """List what no single field can tell: combinations that make no sense."""
    learner, boundary = spec.learner, spec.boundary
    found = [f"{key}: {value} is not finite" for key, value in _infinite(expanded(spec))]
    if boundary.terminals == "synthetic" and boundary.interval is None:
        found.append("boundary.interval: synthetic terminals need an interval, such as 29")
    if boundary.terminals != "synthetic" and boundary.interval is not None:
        found.append(f"boundary.interval: has no meaning with terminals {boundary.terminals!r}")
    if spec.log_every > spec.iterations:
        found.append(
            f"log_every: {spec.log_every} is more than iterations ({spec.iterations}), "
            "so nothing would be logged"
        )
    if learner.batch > learner.capacity:
        found.append(
            f"learner.batch: {learner.batch} is more than learner.capacity ({learner.capacity}), "
            "so learning would never start"
        )
    for where, name in [("keep", name) for name in spec.keep] + [
        (f"interventions[{i}].carrier", item.carrier) for i, item in enumerate(spec.interventions)
    ]:
        if name not in learner.CARRIERS:
            found.append(f"{where}: no carrier {name!r}{nearest(name, learner.CARRIERS)}")
    found += [f"keep: {name!r} is named twice" for name in spec.keep if spec.keep.count(name) > 1]
    return found


def _infinite(data: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the key and value of every float in ``data`` that JSON could not write."""
    if isinstance(data, dict):
        for name, part in data.items():
            yield from _infinite(part, f"{path}.{name}" if path else name)
    elif isinstance(data, float) and not math.isfinite(data):
        yield path, data


def _explain(message: str) -> str:
    """Turn msgspec's message into one that starts with the key and names the nearest valid one."""
    text, _, where = message.partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    unknown = re.match(r"Object contains unknown field `(.*)`", text)
    if unknown:
        key = unknown[1]
        fields = _fields_at(path)
        full = f"{path}.{key}" if path else key
        return f"{full}: no such key{nearest(key, fields)}"
    wrong = re.match(r"Invalid (?:enum )?value (.*)", text)
    choices = _choices_at(path)
    if wrong and choices:
        value = wrong[1].strip("'`")
        return f"{path}: {value!r} is not valid{nearest(value, choices)}"
    return f"{path or 'top level'}: {text[0].lower()}{text[1:]}"


def _struct_at(steps: list[str]) -> type[msgspec.Struct]:
    """Follow ``steps`` (field names) from RunSpec to the Struct type found there."""
    kind: type[msgspec.Struct] = RunSpec
    for step in steps:
        hint = get_type_hints(kind)[step.partition("[")[0]]
        inner = [part for part in (hint, *getattr(hint, "__args__", ())) if _is_struct(part)]
        if not inner:
            break
        kind = inner[0]
    return kind


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _fields_at(path: str) -> list[str]:
    kind = _struct_at(path.split(".") if path else [])
    tag = kind.__struct_config__.tag
    return [*kind.__struct_fields__, *(["kind"] if tag is not None else [])]


def _choices_at(path: str) -> list[str]:
    """Return the values a Literal field at ``path`` may take, or nothing."""
    *parents, last = path.split(".")
    kind = _struct_at(parents)
    if last == "kind":
        return [str(kind.__struct_config__.tag)]
    hint = get_type_hints(kind, include_extras=False).get(last.partition("[")[0])
    values = getattr(hint, "__args__", ()) if getattr(hint, "__origin__", None) is Literal else ()
    return [str(value) for value in values]
