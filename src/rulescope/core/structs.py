"""The base of every specification part: frozen, strict, and stable under the growth of the schema.

Fields at their default are left out of the canonical form, so a field added later (with a default
that means "as before") does not change the identity of any run that already exists.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

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

    (msgspec's own ``omit_defaults`` goes by identity: an equal Struct or tuple is written out.)
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
