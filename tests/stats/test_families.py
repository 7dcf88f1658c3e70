"""Families keep their plan."""

from __future__ import annotations

import math

import pytest

from rulescope.stats import DataError, Estimate, Family

VALUE = Estimate(0.5, 0.1, 0.9, 12, 10_000, 3)


def plan() -> Family:
    return Family("widths", ["catch", "catch-big", "tracking"])


def test_size_is_that_of_the_plan() -> None:
    family = plan()
    assert family.members == ("catch", "catch-big", "tracking")
    assert family.size == 3
    assert family.tail == 0.05 / 6
    assert family.missing == family.members
    one = family.with_estimate("catch-big", VALUE)
    assert one.missing == ("catch", "tracking")
    assert one.size == 3
    assert one.tail == family.tail
    assert one["catch-big"] == VALUE
    assert one["catch"] is None


def test_a_family_is_immutable() -> None:
    names = ["a", "b"]
    family = Family("f", names)
    names.append("c")
    estimate = Estimate(1.0, 0.0, 2.0, 5, 1000, 2)
    more = family.with_estimate("a", estimate)
    assert family.size == 2
    assert family.missing == ("a", "b")
    assert more.missing == ("b",)
    with pytest.raises(TypeError):
        more.estimates["b"] = estimate  # type: ignore[index]
    with pytest.raises(AttributeError):
        more.name = "g"  # type: ignore[misc]
    assert more == Family("f", ["a", "b"], {"a": estimate})


def test_an_estimate_without_value_is_missing() -> None:
    nothing = Estimate(math.nan, math.nan, math.nan, 0, method="none")
    family = plan().with_estimate("catch", nothing)
    assert family.missing == ("catch", "catch-big", "tracking")
    assert family["catch"] is nothing


def test_an_unplanned_member_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(DataError, match="'catch-bgi' is not in family 'widths'; nearest: 'catch-b"):
        plan().with_estimate("catch-bgi", VALUE)
    with pytest.raises(DataError, match="valid: catch, catch-big, tracking"):
        plan()["breakout"]


def test_an_interval_made_for_another_family_is_refused() -> None:
    with pytest.raises(DataError, match="for a family of 1, but 'widths' has 3"):
        plan().with_estimate("catch", Estimate(0.5, 0.1, 0.9, 12, 10_000, 1))
    ranged = Estimate(0.5, 0.1, 0.9, 2, method="range")
    assert plan().with_estimate("catch", ranged)["catch"] == ranged


def test_a_second_estimate_of_a_member_is_refused() -> None:
    with pytest.raises(DataError, match="'catch' of family 'widths' already"):
        plan().with_estimate("catch", VALUE).with_estimate("catch", VALUE)


def test_bad_plans() -> None:
    with pytest.raises(DataError, match="'f' has no members"):
        Family("f", [])
    with pytest.raises(DataError, match="names a more than once"):
        Family("f", ["a", "b", "a"])
