"""Options of plug-in rules: typed by a Struct, and held by specifications."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from rulescope.core.errors import SpecError
from rulescope.core.structs import Frozen
from rulescope.envs.world_config import Argument
from rulescope.learners.plugin_options import (
    check_class,
    list_arguments,
    make_options,
    name_options,
    parse_assignments,
    quote,
    split_options,
)


class Options(Frozen, frozen=True):
    alpha: Annotated[float, Meta(gt=0.0)] = 1.0
    steps: int = 3
    fast: bool = False
    mode: Literal["plain", "fancy"] = "plain"
    note: str = ""
    sizes: tuple[int, ...] = (8, 8)
    floor: float | None = None


class Needy(Frozen, frozen=True):
    alpha: float


class Loose(Frozen, frozen=False):  # type: ignore[misc]
    alpha: float = 1.0


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ({}, Options()),
        ({"alpha": "2"}, Options(alpha=2.0)),
        ({"alpha": 2, "steps": "7", "fast": "true"}, Options(alpha=2.0, steps=7, fast=True)),
        ({"mode": "fancy", "note": "a=b"}, Options(mode="fancy", note="a=b")),
        ({"sizes": "[3, 4]", "floor": "0.5"}, Options(sizes=(3, 4), floor=0.5)),
        ({"sizes": [3], "floor": None}, Options(sizes=(3,))),
    ],
)
def test_values_have_the_types_of_the_struct(typed: dict[str, Any], expected: Options) -> None:
    found = make_options("mine", Options, typed)
    assert found == expected
    assert type(found.alpha) is float


@pytest.mark.parametrize(
    ("kind", "typed", "message"),
    [
        (Options, {"alhpa": "2"}, "option 'alhpa': the rule 'mine' has none .*nearest: 'alpha'"),
        (Options, {"alpha": "x"}, "option 'alpha' of the rule 'mine': 'x' is not valid: expected"),
        (Options, {"alpha": "-1"}, "'-1' is not valid: expected `float` > 0.0"),
        (Options, {"mode": "odd"}, "option 'mode' .*'odd' is not valid"),
        (Options, {"sizes": "[1, x]"}, r"option 'sizes' .*'\[1, x\]' is not valid"),
        (Needy, {}, "option 'alpha': the rule 'mine' needs a value"),
        (None, {"alpha": "2"}, "option 'alpha': the rule 'mine' has no options"),
    ],
)
def test_a_wrong_option_is_named(kind: Any, typed: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make_options("mine", kind, typed)


def test_a_specification_holds_what_is_not_the_default_in_one_order() -> None:
    assert list_arguments("mine", Options()) == ()
    assert list_arguments("mine", None) == ()
    ours = make_options("mine", Options, {"steps": "7", "alpha": "2"})
    theirs = make_options("mine", Options, {"alpha": 2.0, "steps": 7, "note": ""})
    found = list_arguments("mine", ours)
    assert found == list_arguments("mine", theirs)
    assert found == (Argument(name="alpha", value=2.0), Argument(name="steps", value=7))
    assert make_options("mine", Options, {each.name: each.value for each in found}) == ours


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"alpha": 0.25, "steps": 7},
        {"fast": True, "sizes": (3, 4), "floor": 1e-9},
        {"note": 'a,b="c"@d', "mode": "fancy"},
        {"note": "[1"},
        {"note": "1.5"},
        {"note": "null", "sizes": ()},
    ],
)
def test_the_name_of_a_subject_reads_back_as_its_options(values: dict[str, Any]) -> None:
    options = Options(**values)
    name = name_options("mine", list_arguments("mine", options))
    rule, typed = split_options(name)
    assert rule == "mine"
    assert make_options("mine", Options, typed) == options


def test_a_name_without_options_stays_as_it_is() -> None:
    assert split_options("random:3") == ("random:3", {})
    assert split_options("disco103") == ("disco103", {})


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["alpha"], "--option: 'alpha' is not NAME=VALUE"),
        (["=2"], "--option: '=2' is not NAME=VALUE"),
        (["alpha=2", "alpha=3"], "--option: 'alpha' is given twice"),
    ],
)
def test_what_is_no_assignment_is_reported(texts: list[str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_assignments(texts)


def test_a_value_that_would_end_the_name_is_quoted() -> None:
    assert (quote("2"), quote("[1,2]"), quote("a,b")) == ("2", "[1,2]", '"a,b"')


def test_options_are_a_frozen_struct() -> None:
    assert check_class(None) is None
    assert check_class(Options) is None
    assert "not frozen" in str(check_class(Loose))
    assert "must be a class derived from" in str(check_class(dict))
