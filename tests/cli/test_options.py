"""Options that several verbs share, and dataclasses of options."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from rulescope.cli import main
from rulescope.cli.options import expand_option_groups, split_names, split_numbers
from rulescope.core.errors import SpecError

SELECTING = ("run", "status", "compare", "audit", "report")
"""Verbs that select assays and budgets."""


def list_options(name: str) -> dict[str, str]:
    """Return the help of each option of a verb."""
    (verb,) = [each for each in main.VERBS if each.name == name]
    command: Any = typer.main.get_command(verb.load())
    return {each.opts[0]: each.help for each in command.params if each.param_type_name == "option"}


def test_an_option_means_the_same_in_every_verb() -> None:
    helps: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for verb in SELECTING:
        for option, text in list_options(verb).items():
            helps[option][verb] = text
    for option in ("--only", "--out"):  # of estimates or assays; results or pages
        del helps[option]
    for option, by_verb in helps.items():
        shortest = min(by_verb.values(), key=len).rstrip(".")
        assert all(text.startswith(shortest) for text in by_verb.values()), (option, by_verb)


def test_verbs_that_select_runs_offer_the_same_selection() -> None:
    selection = ("preset", "seeds", "iterations", "episodes", "arms", "scales", "tasks")
    options = {f"--{name}" for name in (*selection, "conditions", "agent", "rule", "weights")}
    for verb in ("run", "status", "compare"):
        assert options <= set(list_options(verb)), verb
    execution = {"--workers", "--engine", "--address", "--time-limit", "--force"}
    assert execution <= set(list_options("run"))
    assert execution <= set(list_options("audit"))
    assert not execution & {*list_options("status"), *list_options("compare")}


@dataclass(frozen=True)
class Size:
    width: Annotated[int, typer.Option(help="In metres.")] = 3
    long_name: Annotated[bool, typer.Option("--flag")] = False


def test_a_dataclass_becomes_options_and_arrives_whole() -> None:
    received: list[Any] = []

    @expand_option_groups
    def verb(name: Annotated[str, typer.Argument()], size: Size, last: int = 7) -> None:
        """Do nothing."""
        received.append((name, size, last))

    app = typer.Typer()
    app.command()(verb)
    assert CliRunner().invoke(app, ["a"]).exit_code == 0
    assert CliRunner().invoke(app, ["b", "--width", "5", "--flag", "--last", "1"]).exit_code == 0
    assert received == [("a", Size(), 7), ("b", Size(5, True), 1)]
    assert "In metres." in CliRunner().invoke(app, ["--help"]).stdout


def test_lists_are_split_at_commas() -> None:
    assert split_names("--arms", None) == []
    assert split_names("--arms", "live, pin") == ["live", "pin"]
    assert split_numbers("--scales", "0.1,1e3") == [0.1, 1000.0]
    with pytest.raises(SpecError, match="--arms: 'live,,pin' has an empty name"):
        split_names("--arms", "live,,pin")
    with pytest.raises(SpecError, match="--scales: 'big' is not a number"):
        split_numbers("--scales", "1,big")
