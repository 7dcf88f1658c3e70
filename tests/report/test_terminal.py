"""Curves in plain characters."""

from __future__ import annotations

import numpy as np

from rulescope.render.terminal_chart import curve


def heights(text: str) -> list[int]:
    rows = [line.split("│", 1)[1] for line in text.splitlines() if "│" in line]
    return [sum(row[k] != " " for row in rows) for k in range(len(rows[0]))]


def test_a_rising_curve_rises() -> None:
    found = heights(curve(np.arange(600), np.linspace(0, 1, 600), width=30, height=5))
    assert len(found) == 30
    assert found == sorted(found)
    assert found[0] == 1
    assert found[-1] == 5


def test_bounds_hold_the_axis_but_never_hide_a_point() -> None:
    text = curve([1, 2], [0.5, 0.5], bounds=(0.0, 1.0), height=4)
    assert "1.00" in text
    assert "0.00" in text
    assert " -2.00" in curve([1, 2], [-2.0, 0.5], bounds=(0.0, 1.0))


def test_missing_values_leave_gaps() -> None:
    found = heights(curve(np.arange(4), [np.nan, 1.0, np.nan, 1.0], width=4, bounds=(0.0, 1.0)))
    assert found[0] == found[2] == 0
    assert found[1] > 0
    assert curve([1, 2], [np.nan, np.nan]) == "score: no data yet"
