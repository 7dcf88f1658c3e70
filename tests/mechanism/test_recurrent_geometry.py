"""Principal components, shared directions, and positions between live and donor."""

from __future__ import annotations

import numpy as np
import pytest

from rulescope.mechanism.recurrent_geometry import (
    between_scale_share,
    fit_components,
    mean_cosines,
    position_on_line,
    settling_moment,
)
from rulescope.stats import DataError, principal_fraction


def test_components_are_ordered_by_variance_and_shares_add_up() -> None:
    rng = np.random.default_rng(0)
    widths = np.array([5.0, 2.0, 0.5])
    turned, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    states = rng.normal(size=(4000, 3)) * widths @ turned.T + 7.0
    found = fit_components(states, 3)
    assert found.explained == pytest.approx(widths**2 / (widths**2).sum(), abs=0.02)
    assert found.explained.sum() == pytest.approx(1.0)
    assert np.abs(found.axes @ turned) == pytest.approx(np.eye(3), abs=0.03)
    assert found.axes @ found.axes.T == pytest.approx(np.eye(3))


def test_coordinates_are_centred_and_keep_distances() -> None:
    rng = np.random.default_rng(1)
    states = rng.normal(size=(50, 4))
    placed = fit_components(states, 4).project(states)
    assert placed.mean(axis=0) == pytest.approx(np.zeros(4))
    assert np.linalg.norm(placed[3] - placed[9]) == pytest.approx(
        np.linalg.norm(states[3] - states[9])
    )


def test_axes_point_the_same_way_whatever_the_order_of_states() -> None:
    states = np.random.default_rng(2).normal(size=(40, 6))
    one, other = fit_components(states, 2), fit_components(states[::-1], 2)
    assert one.axes == pytest.approx(other.axes)
    assert (one.axes[np.arange(2), np.abs(one.axes).argmax(axis=1)] > 0).all()


def test_shares_agree_with_the_statistic_of_the_assays() -> None:
    states = np.random.default_rng(3).normal(size=(3, 5, 8))
    shares = fit_components(states.reshape(15, 8), 2).explained
    assert shares.sum() == pytest.approx(principal_fraction(states))


def test_states_without_variance_have_no_shares() -> None:
    assert np.isnan(fit_components(np.ones((5, 3)), 2).explained).all()
    with pytest.raises(DataError, match="no 4 principal"):
        fit_components(np.ones((5, 3)), 4)


def test_lifetimes_that_move_in_one_direction_have_cosine_one() -> None:
    states = np.zeros((2, 2, 3, 2))  # 2 scales, 2 seeds, 3 moments; the first is the initial state
    states[0, :, 1:, 0] = [[1.0, 2.0], [3.0, 4.0]]  # along x, at any length
    states[1, :, 1:, 1] = [[5.0, 6.0], [7.0, -8.0]]  # along y; in the end against each other
    found = mean_cosines(states)
    assert np.isnan(found.same[0])
    assert np.isnan(found.other[0])
    assert found.same[1:] == pytest.approx([1.0, 0.0])
    assert found.other[1:] == pytest.approx([0.0, 0.0])


def test_a_single_seed_has_no_pair_within_its_scale() -> None:
    found = mean_cosines(np.ones((2, 1, 4, 3)))
    assert np.isnan(found.same).all()
    assert found.other == pytest.approx(np.ones(4))


def test_the_share_between_scales_is_computed_for_each_moment() -> None:
    rng = np.random.default_rng(4)
    states = rng.normal(size=(2, 6, 2, 3)) * 1e-3
    states[1, :, 1] += 10.0
    shares = between_scale_share(states)
    assert shares[0] < 0.5
    assert shares[1] > 0.999
    assert np.isnan(between_scale_share(states[:, :1])).all()


def test_a_position_has_a_part_along_the_line_and_one_off_it() -> None:
    live, donor = np.array([0.0, 1.0]), np.array([4.0, 1.0])
    states = np.array([[4.0, 1.0], [1.0, 9.0], [0.0, 1.0], [4.0, -1.0]])
    found = position_on_line(states, live, donor)
    assert found.along == pytest.approx([1.0, 0.25, 0.0, 1.0])
    assert found.off == pytest.approx([0.0, 2.0, 0.0, 0.5])
    moving = position_on_line(states[:2], np.array([[0.0, 1.0], [1.0, 5.0]]), donor)
    assert moving.along == pytest.approx([1.0, -16 / 25])
    assert moving.off == pytest.approx([0.0, 12 / 25])
    nowhere = position_on_line(states, donor, donor)
    assert np.isnan(nowhere.along).all()
    assert np.isnan(nowhere.off).all()


def test_less_than_half_along_is_nearer_to_live() -> None:
    rng = np.random.default_rng(5)
    states, live, donor = rng.normal(size=(50, 4)), rng.normal(size=4), rng.normal(size=4)
    to_live, to_donor = (np.linalg.norm(states - end, axis=1) for end in (live, donor))
    assert (position_on_line(states, live, donor).along < 0.5).tolist() == (
        to_live < to_donor
    ).tolist()


def test_the_settling_moment_is_the_first_without_return() -> None:
    when = np.array([10, 20, 30, 40])
    assert settling_moment(when, np.array([0.9, 0.49, 0.3, 0.1])) == 20.0
    assert settling_moment(when, np.array([0.9, 0.4, 0.6, 0.1])) == 40.0  # it returned in between
    assert settling_moment(when, np.zeros(4)) == 10.0
    assert np.isnan(settling_moment(when, np.array([0.9, 0.4, 0.3, 0.6])))
