"""The trajectory view, from small lifetimes to results."""

from __future__ import annotations

import re

import numpy as np
import pytest

from mechanism.sample_observations import trajectory_observations
from rulescope.assays.results import Results
from rulescope.mechanism import trajectory_view
from rulescope.mechanism.instrumented_runs import observe_view
from rulescope.mechanism.trajectory_figure import RING_UPDATES
from rulescope.mechanism.view_request import ViewRequest
from rulescope.records import Store
from rulescope.run_spec import RunSpec, Transplant
from rulescope.stats import Estimate

PATHS = ViewRequest("sprout-random:0", (0.1, 1.0, 10.0), 2, 20)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Results:
    home = tmp_path_factory.mktemp("paths")
    observations = observe_view(trajectory_view.VIEW, PATHS, Store(home / "store"), home)
    return trajectory_view.analyse(PATHS, observations)


def test_live_lifetimes_are_those_of_the_assays() -> None:
    live, crossed = trajectory_view.stages(PATHS)
    runs = {name: run for group in live for name, run in group.runs.items()}
    assert runs["live/0.1/1"] == RunSpec(
        learner=PATHS.learner, scale=0.1, iterations=20, log_every=20, seed=1
    )
    made = {name: run for group in crossed for name, run in group.runs.items()}
    assert set(made) == {"cross/0.1/0", "cross/0.1/1", "cross/10/0", "cross/10/1"}
    [item] = made["cross/0.1/1"].interventions
    assert isinstance(item, Transplant)
    assert item.donor == runs["live/10/0"]


def test_trajectories_begin_at_the_initial_state_and_differ(paths: Results) -> None:
    before = PATHS.first_update - 1
    for key in ("path/live/0.1/0", "path/live/10/1"):
        path = paths.series[key]
        assert path.shape == (20, 3)
        assert path[:before] == pytest.approx(np.tile(paths.series["birth"], (before, 1)))
        assert not np.allclose(path[-1], paths.series["birth"], atol=1e-3)
    assert np.isnan(paths.series["same/h"][:before]).all()
    assert np.isfinite(paths.series["same/h"][before:]).all()
    assert 0.0 < paths.series["explained"].sum() <= 1.0


def test_a_transplanted_state_is_the_donors_until_the_first_update(paths: Results) -> None:
    along, off = paths.series["along/0.1/0"], paths.series["off/0.1/0"]
    before = PATHS.first_update - 1
    assert along[:before] == pytest.approx(1.0)
    assert off[:before] == pytest.approx(0.0, abs=1e-6)
    assert along[-1] < 0.9
    assert off[-1] > 0.0
    assert "along/1/0" not in paths.series
    [table] = paths.tables
    assert [row[3] is None for row in table.rows] == [False, True, False]
    off_at_end = [paths.series[f"off/0.1/{seed}"][-1] for seed in (0, 1)]
    shown = table.rows[0][5]
    assert isinstance(shown, Estimate)
    assert shown.value == pytest.approx(np.mean(off_at_end))
    assert (shown.low, shown.high) == (min(off_at_end), max(off_at_end))
    assert table.columns[5].heading.startswith("Off that line")


def test_moments_are_all_iterations_or_evenly_spaced() -> None:
    assert trajectory_view.moments(3, 5) == (1, 2, 3, 4, 5)
    assert trajectory_view.moments(32, 400) == tuple(range(1, 401))
    long = trajectory_view.moments(32, 2001)
    assert long[-1] == 2001
    evenly = set(range(2001, 0, -6))
    assert evenly <= set(long)
    assert len(long) <= trajectory_view.MOMENTS + 1 + len(RING_UPDATES)
    assert set(long) - evenly <= {31, 32, 34, 41, 61, 131}


@pytest.mark.parametrize(("first", "iterations"), [(32, 3000), (6, 2400), (1, 1000)])
def test_states_with_a_ring_or_a_cross_are_read(first: int, iterations: int) -> None:
    found = trajectory_view.moments(first, iterations)
    assert {first + updates - 1 for updates in RING_UPDATES} <= set(found)
    assert first == 1 or first - 1 in found
    assert found[0] >= 1


def test_a_single_seed_or_scale_has_no_cosines_in_the_note() -> None:
    """A cosine needs a pair: two seeds of one scale, or two scales."""
    one, single = (ViewRequest("random:0", scales, 1, 60) for scales in ((0.1, 10.0), (1.0,)))
    [table] = trajectory_view.analyse(one, trajectory_observations(one)).tables
    assert "nan" not in table.note
    assert re.search(r"at the end: [0-9.-]+ between scales \(h\)", table.note)
    [table] = trajectory_view.analyse(single, trajectory_observations(single)).tables
    assert "cosine" not in table.note
    two = ViewRequest("random:0", (0.1, 10.0), 2, 60)
    [table] = trajectory_view.analyse(two, trajectory_observations(two)).tables
    assert re.search(r"at the end: [0-9.-]+ within and [0-9.-]+ between scales", table.note)
