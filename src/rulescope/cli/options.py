"""Options that several verbs share, and groups of options that a verb takes as one argument."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from rulescope.core.errors import SpecError

STORE = Path("store")
RESULTS = Path("results")

StoreFolder = Annotated[
    Path, typer.Option("--store", metavar="DIR", help="The store: the folder of the records.")
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")]
Weights = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="File or folder of the rule's weights, if not the usual."),
]
PlanOnly = Annotated[
    bool, typer.Option("--plan", help="Show what would be run, and how long it takes, and stop.")
]
Force = Annotated[
    bool, typer.Option("--force", help="Start even if disk or memory seem not to suffice.")
]
Device = Annotated[
    str,
    typer.Option(metavar="NAME", help="Where learners compute, as torch names it: cpu, cuda, ..."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes. Default: one per core.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def expand_option_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Give ``verb`` one option for each field of its parameters that are dataclasses.

    The fields are annotated as the parameters of a verb are. Typer sees them one by one; ``verb``
    is called with instances of the dataclasses.
    """
    own = inspect.signature(verb, eval_str=True).parameters.values()
    groups: dict[str, Any] = {
        each.name: each.annotation for each in own if is_dataclass(each.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for each in own:
        if each.name in groups:
            parameters += _list_parameters(groups[each.name])
        else:
            parameters.append(each.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(verb)
    def call(**given: Any) -> None:
        for name, group in groups.items():
            own = {field.name: given.pop(field.name) for field in fields(group)}
            given[name] = group(**own)
        verb(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    return call


def _list_parameters(group: Any) -> list[inspect.Parameter]:
    """Return one parameter for each field of a dataclass."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


def split_names(option: str, text: str | None) -> list[str]:
    """Return the names in a list with commas, such as ``"live,pin"``."""
    names = [name.strip() for name in (text or "").split(",")]
    if text is not None and not all(names):
        raise SpecError(f"{option}: {text!r} has an empty name in it; separate names by one comma")
    return [name for name in names if name]


def split_numbers(option: str, text: str | None) -> list[float]:
    """Return the numbers in a list with commas, such as ``"0.1,1e3"``."""
    numbers = []
    for word in split_names(option, text):
        try:
            numbers.append(float(word))
        except ValueError:
            raise SpecError(f"{option}: {word!r} is not a number, such as 1e-3") from None
    return numbers
