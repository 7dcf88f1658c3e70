"""The base of every specification part, and errors of decoding that name the key.

Parts are frozen, strict, and stable under growth of the schema: fields at their default are left
out of the canonical form, so a field added later (with a default that means "as before") does not
change the identity of any run that already exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from rulescope.core.errors import SpecError, nearest

# Types of fields that several configurations share.
Positive = Annotated[int, Meta(ge=1)]
Fraction = Annotated[float, Meta(ge=0.0, le=1.0)]
NonNegative = Annotated[float, Meta(ge=0.0)]
Rate = Annotated[float, Meta(gt=0.0, le=100.0)]
Norm = Annotated[float, Meta(gt=0.0)]
Decay = Annotated[float, Meta(ge=0.0, lt=1.0)]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class Frozen(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
):
    """Immutable data with strict decoding; members of a union set ``tag`` and ``tag_field="kind"``.

    (Subclasses repeat ``frozen=True`` only because type checkers do not inherit it.)
    """


def without_defaults(part: Any) -> Any:
    """Return ``part`` as plain data without what equals its default.

    (msgspec's own ``omit_defaults`` compares by identity: an equal Struct or tuple is written out.)
    """
    if isinstance(part, msgspec.Struct):
        kept = _tag(part)
        for name, default in _defaults(type(part)):
            value = getattr(part, name)
            if isinstance(default, float) and type(value) is int:
                value = float(value)  # as reading it back would
            if value != default:
                kept[name] = without_defaults(value)
        return kept
    if isinstance(part, tuple):
        return [without_defaults(item) for item in part]
    return part


@cache
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of ``kind`` with their defaults (msgspec is slow to compute them)."""
    return tuple((field.name, field.default) for field in msgspec.structs.fields(kind))


def _tag(part: msgspec.Struct) -> dict[str, Any]:
    """Return the tag field of ``part`` with its tag, if it is a member of a union."""
    config = part.__struct_config__
    return {} if config.tag_field is None else {config.tag_field: config.tag}


def expanded(part: Any) -> Any:
    """Return ``part`` as plain data with every default written out."""
    if isinstance(part, msgspec.Struct):
        return _tag(part) | {name: expanded(getattr(part, name)) for name in part.__struct_fields__}
    if isinstance(part, tuple):
        return [expanded(item) for item in part]
    return part


Kinds = list[type[msgspec.Struct]]


def parsed(text: bytes | str, source: str) -> Any:
    """Return the data of the JSON ``text``; raise :class:`SpecError` naming ``source``."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise SpecError(f"{source}: not valid JSON ({fault})") from None


def explain(fault: msgspec.ValidationError, root: type[msgspec.Struct], data: Any) -> str:
    """Return why ``data`` is not a valid ``root``, starting with the key."""
    text, _, where = str(fault).partition(" - at `$")
    path = where.rstrip("`").lstrip(".")
    unknown = re.match(r"Object contains unknown field `(.*)`", text)
    if unknown:
        key = unknown[1]
        full = f"{path}.{key}" if path else key
        return f"{full}: no such key{nearest(key, _fields(_kinds_at(root, data, path)))}"
    wrong = re.match(r"Invalid (?:enum )?value (.*)", text)
    choices = _choices(root, data, path)
    if wrong and choices:
        value = wrong[1].strip("'`")
        return f"{path}: {value!r} is not valid{nearest(value, choices)}"
    return f"{path or 'top level'}: {text[0].lower()}{text[1:]}"


def _kinds_at(root: type[msgspec.Struct], data: Any, path: str) -> Kinds:
    """Return the Struct types that are valid at ``path``; one, where ``data`` has a tag."""
    kinds: Kinds = [root]
    for step in re.findall(r"\w+|\[\d+\]", path):
        if step.startswith("["):
            index = int(step[1:-1])
            data = data[index] if isinstance(data, list) and index < len(data) else None
        else:
            hints = [get_type_hints(kind).get(step) for kind in kinds]
            kinds = list(dict.fromkeys(kind for hint in hints for kind in _structs(hint)))
            data = data.get(step) if isinstance(data, dict) else None
        kinds = [kind for kind in kinds if _tagged(kind, data)] or kinds
    return kinds


def _structs(hint: Any) -> Iterator[type[msgspec.Struct]]:
    """Yield the Struct types inside a type such as ``tuple[A | B, ...]``."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    elif get_origin(hint) in (tuple, Union, UnionType, Annotated):
        for part in get_args(hint):
            yield from _structs(part)


def _tagged(kind: type[msgspec.Struct], data: Any) -> bool:
    """Return whether ``data`` has the tag of ``kind``."""
    config = kind.__struct_config__
    if config.tag_field is None or not isinstance(data, dict):
        return False
    return bool(data.get(config.tag_field) == config.tag)


def _fields(kinds: Kinds) -> list[str]:
    tags = {kind.__struct_config__.tag_field for kind in kinds} - {None}
    names = {name for kind in kinds for name in kind.__struct_fields__}
    return sorted(names | {tag for tag in tags if tag is not None})


def _choices(root: type[msgspec.Struct], data: Any, path: str) -> list[str]:
    """Return the values that a tag or a Literal at ``path`` may take, or nothing."""
    parent, _, last = path.rpartition(".")
    kinds = _kinds_at(root, data, parent)
    tags = [kind.__struct_config__ for kind in kinds]
    named = [str(config.tag) for config in tags if config.tag_field == last]
    if named:
        # The tag itself is wrong, so it cannot have selected a member of the union.
        return named
    hints = [get_type_hints(kind).get(last.partition("[")[0]) for kind in kinds]
    return [str(value) for hint in hints if get_origin(hint) is Literal for value in get_args(hint)]
