"""Terminal geometry of E1: a worked example, and plain loops over every draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rulescope.assays.frame import Floats, Frame
from rulescope.assays.scale.scale import analyse

from .frames import bounds, constant_frame, drawn_seeds

AXES = {"task": ("catch",), "arm": ("live", "pin"), "scale": (1.0, 10.0)}
SQUARE = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])


def frame_of(h: Floats, c: Floats, scales: tuple[float, ...] = (1.0, 10.0)) -> Frame:
    """Lifetimes with these states [scales, seeds, units] in both arms."""
    axes = {**AXES, "scale": scales}
    scores = np.full((1, 2, *h.shape[:2]), 0.9)
    states = {
        f"recurrent/{name}": np.stack([values, np.zeros_like(values)])[np.newaxis]
        for name, values in (("h", h), ("c", c))
    }
    return constant_frame(axes, scores, states=states)


def test_the_worked_example() -> None:
    h = np.stack([SQUARE, SQUARE + np.array([3.0, 4.0])])
    third = np.array([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]])
    c = np.concatenate([h, third[..., np.newaxis]], axis=-1)
    results = analyse(frame_of(h, c)).estimates
    assert results["radius/catch/live/h"].value == pytest.approx(1.4142135624)
    assert results["displacement/catch/live/10/h"].value == pytest.approx(3.5355339059)
    unit = results["displacement/catch/live/1/h"]
    assert (unit.value, unit.low, unit.high) == (0.0, 0.0, 0.0)
    assert results["between/catch/live/h"].value == pytest.approx(0.7575757576)
    assert results["principal/catch/live/c"].value == pytest.approx(0.9705882353)
    assert results["principal/catch/live/c"].method == "none"
    assert results["between/catch/live/hc"].n == 4
    assert not [key for key in results if "/pin/" in key and key.startswith(("between", "displ"))]


def geometry(states: Floats, block: Sequence[int]) -> tuple[float, float]:
    """Return displacement of the second scale and between fraction, seed by seed."""
    drawn = [[scale[i] for i in block] for scale in states]
    means = [np.mean(scale, axis=0) for scale in drawn]
    radius = np.mean([np.linalg.norm(x - means[0]) for x in drawn[0]])
    centre = np.mean([x for scale in drawn for x in scale], axis=0)
    total = sum(float(np.sum((x - centre) ** 2)) for scale in drawn for x in scale)
    between = sum(len(block) * float(np.sum((m - centre) ** 2)) for m in means)
    return float(np.linalg.norm(means[1] - means[0]) / radius), between / total


def test_intervals_are_those_of_plain_loops() -> None:
    generator = np.random.default_rng(0)
    h, c = generator.normal(size=(2, 2, 6, 3))
    h[1] += 2.0
    results = analyse(frame_of(h, c)).estimates
    both = np.concatenate([h, c], axis=-1)
    # a draw of one seed six times has no radius
    draws = [block for block in drawn_seeds(6) if len(set(block)) > 1]
    every = [geometry(both, block) for block in draws]
    shift, between = results["displacement/catch/live/10/hc"], results["between/catch/live/hc"]
    assert (shift.value, between.value) == pytest.approx(geometry(both, range(6)))
    assert (shift.low, shift.high) == pytest.approx(bounds([one for one, _ in every]))
    # such a draw does have a between fraction, of one
    rest = [1.0] * (10_000 - len(draws))
    assert (between.low, between.high) == pytest.approx(bounds([*(two for _, two in every), *rest]))


def test_geometry_needs_the_unit_scale_states_and_a_second_seed() -> None:
    states = np.random.default_rng(1).normal(size=(2, 4, 3))
    assert "between/catch/live/h" in analyse(frame_of(states, states)).estimates
    for frame in (
        frame_of(states, states, scales=(0.1, 10.0)),
        frame_of(states[:, :1], states[:, :1]),
        constant_frame(AXES, np.full((1, 2, 2, 4), 0.5)),
    ):
        found = analyse(frame)
        assert not [key for key in found.estimates if key.startswith("between")]
        assert "tab:unified-scale-geometry" not in {table.label for table in found.tables}


def test_a_missing_state_is_left_out() -> None:
    states = np.random.default_rng(2).normal(size=(2, 5, 3))
    gone = states.copy()
    gone[1, 3] = np.nan
    ours = analyse(frame_of(gone, gone)).estimates["displacement/catch/live/10/h"]
    unit, other = states[0], np.delete(states[1], 3, axis=0)
    radius = np.mean([np.linalg.norm(x - unit.mean(axis=0)) for x in unit])
    shift = np.linalg.norm(other.mean(axis=0) - unit.mean(axis=0))
    assert ours.value == pytest.approx(shift / radius)
    assert ours.n == 4


def test_tables_of_states_have_a_row_for_each_scale_and_each_vector() -> None:
    states = np.random.default_rng(3).normal(size=(2, 4, 3))
    tables = {table.label: table for table in analyse(frame_of(states, states)).tables}
    assert [row[:3] for row in tables["v5:tab:app-scale-state"].rows] == [
        ("Catch", "Live", "1"),
        ("Catch", "Live", "10"),
    ]
    assert [row[2] for row in tables["tab:unified-scale-geometry"].rows] == ["h", "c", "hc"]
