"""Options of a plug-in rule: fields of a Struct that its class declares as ``Options``.

    class MyRule(UpdateRule):
        class Options(Frozen, frozen=True):
            alpha: Annotated[float, Meta(gt=0.0)] = 1.0

A specification holds the values that are not their default, so a default that is typed out is the
same run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import NODEFAULT

from rulescope.core.errors import SpecError, nearest
from rulescope.core.structs import without_defaults
from rulescope.envs.world_config import Argument

EXPECTED = "a class derived from rulescope.core.structs.Frozen, with frozen=True"
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")
"""Text that needs no quotes in the name of a rule."""


def check_class(kind: object) -> str | None:
    """Return what is wrong with the attribute ``Options`` of a rule's class; None if nothing is."""
    if kind is None:
        return None
    if not isinstance(kind, type) or not issubclass(kind, msgspec.Struct):
        return f"Options must be {EXPECTED}, not {kind!r}"
    if not kind.__struct_config__.frozen:
        return f"Options must be {EXPECTED}; {kind.__name__} is not frozen"
    return None


def make_options(rule: str, kind: type[msgspec.Struct] | None, given: Mapping[str, Any]) -> Any:
    """Return the options ``given`` to ``rule`` as an instance of ``kind``; None if that is None.

    Values may be text, as typed in a shell. An unknown name, a wrong value and a missing one raise
    :class:`SpecError`.
    """
    if kind is None:
        if given:
            name = next(iter(given))
            raise SpecError(f"option {name!r}: the rule {rule!r} has no options")
        return None
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for name in given:
        if name not in fields:
            hint = nearest(name, fields)
            raise SpecError(f"option {name!r}: the rule {rule!r} has none of that name{hint}")
    for name, field in fields.items():
        if name not in given and field.default is NODEFAULT and field.default_factory is NODEFAULT:
            raise SpecError(f"option {name!r}: the rule {rule!r} needs a value for it")
    return _convert(rule, kind, given)


def _convert(rule: str, kind: type[msgspec.Struct], given: Mapping[str, Any]) -> msgspec.Struct:
    """Return ``given`` as a ``kind``; the error names the first option with a wrong value."""
    made = {}
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        if name not in given:
            continue
        try:
            made[field.name] = _convert_value(given[name], field.type)
        except (msgspec.ValidationError, TypeError) as fault:
            reason = str(fault)
            raise SpecError(
                f"option {name!r} of the rule {rule!r}: {given[name]!r} is not valid: "
                f"{reason[:1].lower()}{reason[1:]}"
            ) from None
    return kind(**made)


def _convert_value(value: Any, kind: Any) -> Any:
    """Return ``value`` as a ``kind``; text that is not one may be JSON, such as ``[1, 2]``."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        if not isinstance(value, str):
            raise
        try:
            data = msgspec.json.decode(value)
        except msgspec.DecodeError:
            data = value
        return msgspec.convert(data, kind, strict=False)


def list_arguments(rule: str, options: msgspec.Struct | None) -> tuple[Argument, ...]:
    """Return the values of ``options`` that are not their default, in the order of the fields."""
    if options is None:
        return ()
    found = {key: each for key, each in without_defaults(options).items() if key != _tag(options)}
    try:
        return tuple(
            msgspec.convert({"name": name, "value": msgspec.to_builtins(value)}, Argument)
            for name, value in found.items()
        )
    except msgspec.ValidationError:
        raise SpecError(
            f"the options of the rule {rule!r} must be numbers, text, booleans, None, or tuples of "
            f"these, not {found!r}"
        ) from None


def _tag(options: msgspec.Struct) -> str | None:
    return options.__struct_config__.tag_field


def parse_assignments(texts: Sequence[str], option: str = "--option") -> dict[str, Any]:
    """Return the values of ``NAME=VALUE`` by name, as typed; text in quotes is unquoted.

    >>> parse_assignments(["alpha=2", 'mode="a,b"'])
    {'alpha': '2', 'mode': 'a,b'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise SpecError(f"{option}: {text!r} is not NAME=VALUE, such as alpha=2")
        if name in found:
            raise SpecError(f"{option}: {name!r} is given twice")
        found[name] = _unquote(value)
    return found


def split_options(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a rule, and the options after it.

    >>> split_options("mine:alpha=2,sizes=[3,4]"), split_options("random:0")
    (('mine', {'alpha': '2', 'sizes': '[3,4]'}), ('random:0', {}))
    """
    name, _, after = text.partition(":")
    if "=" not in after:
        return text, {}
    return name, parse_assignments(_split_list(after), name)


def name_options(rule: str, options: Sequence[Argument]) -> str:
    """Return the name of ``rule`` with ``options``, as :func:`split_options` reads it.

    >>> name_options("mine", [Argument(name="alpha", value=2.0)])
    'mine:alpha=2.0'
    """
    if not options:
        return rule
    return f"{rule}:{','.join(f'{each.name}={_as_text(each.value)}' for each in options)}"


def _as_text(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value):
        return value
    return msgspec.json.encode(value).decode()


def quote(text: str) -> str:
    """Return a value as it is typed in the name of a rule: in quotes, if it would end otherwise."""
    is_list = text.startswith("[") and text.endswith("]")
    return text if is_list or not set(text) & set(',[]"@') else msgspec.json.encode(text).decode()


def _unquote(text: str) -> str:
    if len(text) > 1 and text.startswith('"') and text.endswith('"'):
        try:
            return str(msgspec.json.decode(text, type=str))
        except msgspec.MsgspecError:
            return text
    return text


def _split_list(text: str) -> list[str]:
    """Split ``text`` at the commas that are in no brackets and no quotes."""
    parts, depth, quoted, before = [""], 0, False, ""
    for mark in text:
        quoted ^= mark == '"' and before != "\\"
        depth += 0 if quoted else (mark == "[") - (mark == "]")
        if mark == "," and depth == 0 and not quoted:
            parts.append("")
        else:
            parts[-1] += mark
        before = mark
    return parts
