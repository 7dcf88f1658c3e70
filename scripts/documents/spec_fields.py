"""Tables of all fields of a specification, with the types, defaults and docstrings of the code."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import get_args

import msgspec

from rulescope.discover import evolution_spec
from rulescope.discover.discovery_spec import World
from rulescope.discover.evolution_strategy import Strategy
from rulescope.envs.world_config import Boundary, Change, EnvironmentSpec
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.disco_config import Conventions, Disco
from rulescope.learners.learner_base import ReturnScaling, UnitReplacement
from rulescope.learners.learner_config import LearnerSpec
from rulescope.run_spec import Evaluation, Fork, Intervention, RunSpec

Struct = type[msgspec.Struct]


def _parts(kind: Struct) -> Iterator[Struct]:
    """Yield the structs that are the default of a field of ``kind``, each once."""
    for field in msgspec.structs.fields(kind):
        if isinstance(field.default, msgspec.Struct):
            yield type(field.default)


GROUPS: dict[str, tuple[Struct, ...]] = {
    "run": (RunSpec, Boundary, Fork, Evaluation),
    "interventions": get_args(Intervention),
    "learners": get_args(LearnerSpec),
    "parts": tuple(
        dict.fromkeys((Conventions, *_parts(Disco), NetworkSizes, ReturnScaling, UnitReplacement))
    ),
    "worlds": get_args(EnvironmentSpec),
    "changes": get_args(Change),
    "evolution": (
        evolution_spec.Evolution,
        evolution_spec.Lpg,
        evolution_spec.Lpo,
        evolution_spec.SmallAgents,
        World,
        evolution_spec.Lifetimes,
        Strategy,
        evolution_spec.Imitation,
        evolution_spec.Validation,
    ),
}
"""Structs of a specification, by the name of their table."""


def table(structs: Iterable[Struct]) -> list[list[str]]:
    """Return a row for each field of ``structs``, the headings first."""
    rows = [row for kind in structs for row in _rows(kind)]
    return [["", "field", "type", "default", "meaning"], *rows]


def _rows(kind: Struct) -> Iterator[list[str]]:
    tag = kind.__struct_config__.tag
    title = f"`{tag}`" if isinstance(tag, str) else f"`{kind.__name__}`"
    summary = _plain(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0])
    yield [f"**{title}**", "", "", "", summary]
    for field in msgspec.structs.fields(kind):
        annotation, meaning = _declared(kind, field.name)
        yield ["", f"`{field.name}`", annotation, _default(field), meaning]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is msgspec.NODEFAULT:
        return "required"
    if isinstance(field.default, msgspec.Struct):
        return "its defaults"
    return f"`{json.dumps(msgspec.to_builtins(field.default))}`"


def _declared(kind: Struct, name: str) -> tuple[str, str]:
    """Return the annotation and the docstring of a field, from the class that declares it."""
    for owner in kind.__mro__:
        if owner is not object and name in (declared := _declarations(owner)):
            return declared[name]
    raise LookupError(f"{kind.__name__}.{name}")


@cache
def _declarations(owner: type) -> dict[str, tuple[str, str]]:
    if owner.__module__.startswith("msgspec"):
        return {}
    (tree,) = ast.parse(inspect.getsource(owner)).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, tuple[str, str]] = {}
    for this, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(this, ast.AnnAssign) and isinstance(this.target, ast.Name):
            found[this.target.id] = (_type(this.annotation), _docstring(following))
    return found


def _docstring(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return _plain(inspect.cleandoc(text).split("\n\n")[0])
    return ""


def _type(annotation: ast.expr) -> str:
    """Return an annotation as code that fits into a table: limits of numbers are left out."""
    text = re.sub(r"Annotated\[(.+?), Meta\(.*\)\]", r"\1", ast.unparse(annotation))
    return f"`{text}`".replace("|", "\\|")


def _plain(text: str) -> str:
    """Return a docstring as Markdown in one line: roles become code.

    >>> _plain("See :data:`~rulescope.learners.disco_config.AGENTS`,\\nor ``a | b``.")
    'See `AGENTS`, or `a \\\\| b`.'
    """
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", " ".join(text.split()))
    return text.replace("``", "`").replace("|", "\\|")
