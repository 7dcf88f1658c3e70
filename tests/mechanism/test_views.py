"""The views of trajectories and of replay, from small lifetimes to results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rulescope.assays.results import Results
from rulescope.errors import SpecError
from rulescope.mechanism import replay, trajectory
from rulescope.mechanism.inquiry import Inquiry, checked
from rulescope.mechanism.views import VIEWS, find
from rulescope.mechanism.watching import observe
from rulescope.records import Store
from rulescope.spec import RunSpec, Transplant

PATHS = Inquiry("sprout-random:0", (0.1, 1.0, 10.0), 2, 20)
AGES = Inquiry("sprout-random:0", (1.0,), 1, 60)
"""The world changes after iteration 20."""
ARMS = ("disco", "dqn-cleared")
"""The others do nothing else, and as slowly."""


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Results:
    home = tmp_path_factory.mktemp("paths")
    seen = observe(trajectory.VIEW, PATHS, Store(home / "store"), home)
    return trajectory.analyse(PATHS, seen)


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> Results:
    home = tmp_path_factory.mktemp("ages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "ARMS", ARMS)
        seen = observe(replay.VIEW, AGES, Store(home / "store"), home)
    return replay.analyse(AGES, seen)


def test_live_lifetimes_are_those_of_the_assays() -> None:
    live, crossed = trajectory.stages(PATHS)
    runs = {name: run for group in live for name, run in group.runs.items()}
    assert runs["live/0.1/1"] == RunSpec(
        learner=PATHS.learner, scale=0.1, iterations=20, log_every=20, seed=1
    )
    made = {name: run for group in crossed for name, run in group.runs.items()}
    assert set(made) == {"cross/0.1/0", "cross/0.1/1", "cross/10/0", "cross/10/1"}
    [item] = made["cross/0.1/1"].interventions
    assert isinstance(item, Transplant)
    assert item.donor == runs["live/10/0"]


def test_trajectories_begin_at_birth_and_are_told_apart(paths: Results) -> None:
    born = PATHS.first_update - 1
    for key in ("path/live/0.1/0", "path/live/10/1"):
        path = paths.series[key]
        assert path.shape == (20, 3)
        assert path[:born] == pytest.approx(np.tile(paths.series["birth"], (born, 1)))
        assert not np.allclose(path[-1], paths.series["birth"], atol=1e-3)
    assert np.isnan(paths.series["same/h"][:born]).all()
    assert np.isfinite(paths.series["same/h"][born:]).all()
    assert 0.0 < paths.series["explained"].sum() <= 1.0


def test_a_transplanted_state_is_the_donors_until_the_first_update(paths: Results) -> None:
    left = paths.series["left/0.1/0"]
    assert left[: PATHS.first_update - 1] == pytest.approx(1.0)
    assert left[-1] < 0.9
    assert "left/1/0" not in paths.series
    [table] = paths.tables
    assert [row[3] is None for row in table.rows] == [False, True, False]


def test_moments_are_all_iterations_or_evenly_spaced() -> None:
    assert trajectory.moments(5) == (1, 2, 3, 4, 5)
    long = trajectory.moments(2001)
    assert len(long) <= trajectory.MOMENTS
    assert long[-1] == 2001
    assert set(np.diff(long)) == {6}


def test_what_is_stored_is_what_first_in_first_out_says(ages: Results) -> None:
    for arm in ARMS:
        for part in ("before", "mean", "quantiles"):
            [measured] = ages.series[f"measured/{arm}/held/{part}"]
            assert measured == pytest.approx(ages.series[f"fifo/{arm}/{part}"], nan_ok=True), part
        assert ages.estimates[f"off/{arm}"].value == 0.0
    assert ages.estimates["before/disco/0"].value == 1.0
    assert ages.estimates["drawn/disco"].value == pytest.approx(0.0, abs=0.05)


def test_what_is_drawn_follows_what_is_stored(ages: Results) -> None:
    [drawn] = ages.series["measured/disco/drawn/before"]
    assert np.isnan(drawn[:5]).all()
    assert (drawn[5:20] == 1.0).all()  # all there is, is from before the change
    assert 0.0 < drawn[25:45].mean() < 1.0
    assert (drawn[51:] == 0.0).all()  # 64 trajectories of 2 an iteration: gone after 32
    assert ages.estimates["uses/disco"].value == pytest.approx(12 * 15 / 40)
    [cleared] = ages.series["measured/dqn-cleared/drawn/before"]
    assert np.isnan(cleared[20:35]).all()  # not drawn from until 1,000 transitions are there
    assert (cleared[40:] == 0.0).all()
    assert ages.series["measured/disco/score"].shape == (1, 3)


def test_replay_has_no_reward_scales() -> None:
    with pytest.raises(SpecError, match="--scales"):
        replay.stages(Inquiry("random:0", (0.1, 1.0), 1, 80))


@pytest.mark.parametrize(
    ("inquiry", "said"),
    [
        (Inquiry("random:0", (1.0,), 0, 80), "--seeds: 0"),
        (Inquiry("random:0", (-1.0,), 1, 80), "--scales: -1 is not between"),
        (Inquiry("random:0", (1.0,), 1, 30), "--iterations: 30 .* nearest: 34"),
    ],
)
def test_a_senseless_inquiry_is_refused(inquiry: Inquiry, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        checked(inquiry)


def test_views_are_found_by_name() -> None:
    assert find("replay") is VIEWS["replay"]
    with pytest.raises(SpecError, match=r"trajectry.*nearest: 'trajectory'"):
        find("trajectry")


def test_views_are_looked_at_by_default_at_a_modest_budget(tmp_path: Path) -> None:
    for view in VIEWS.values():
        assert checked(view.default) == view.default
        assert view.stages(view.default)
    assert not list(tmp_path.iterdir())
