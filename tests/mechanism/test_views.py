"""The views of trajectories and of replay, from small lifetimes to results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from mechanism.samples import seen_paths
from rulescope.assays.results import Results
from rulescope.core.errors import SpecError
from rulescope.mechanism import replay_view, trajectory_view
from rulescope.mechanism.instrumented_runs import observe
from rulescope.mechanism.mechanism_figures import RINGS
from rulescope.mechanism.view_request import Inquiry, checked
from rulescope.mechanism.views import VIEWS, find
from rulescope.records import Store
from rulescope.spec.run_spec import RunSpec, Transplant
from rulescope.stats import Estimate

PATHS = Inquiry("sprout-random:0", (0.1, 1.0, 10.0), 2, 20)
AGES = Inquiry("sprout-random:0", (1.0,), 1, 60)
"""The world changes after iteration 20."""
ARMS = ("disco", "dqn-cleared")
"""The others do nothing else, and as slowly."""


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Results:
    home = tmp_path_factory.mktemp("paths")
    seen = observe(trajectory_view.VIEW, PATHS, Store(home / "store"), home)
    return trajectory_view.analyse(PATHS, seen)


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> Results:
    home = tmp_path_factory.mktemp("ages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_view, "ARMS", ARMS)
        seen = observe(replay_view.VIEW, AGES, Store(home / "store"), home)
    return replay_view.analyse(AGES, seen)


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
    assert len(long) <= trajectory_view.MOMENTS + 1 + len(RINGS)
    assert set(long) - evenly <= {31, 32, 34, 41, 61, 131}


@pytest.mark.parametrize(("first", "iterations"), [(32, 3000), (6, 2400), (1, 1000)])
def test_whatever_has_a_ring_or_a_cross_is_read(first: int, iterations: int) -> None:
    found = trajectory_view.moments(first, iterations)
    assert {first + updates - 1 for updates in RINGS} <= set(found)
    assert first == 1 or first - 1 in found
    assert found[0] >= 1


def test_one_seed_has_nothing_to_say_about_others() -> None:
    """There is no pair of one scale and two seeds, and no cosine of it."""
    one, single = (Inquiry("random:0", scales, 1, 60) for scales in ((0.1, 10.0), (1.0,)))
    [table] = trajectory_view.analyse(one, seen_paths(one)).tables
    assert "nan" not in table.note
    assert re.search(r"at the end: [0-9.-]+ between scales \(h\)", table.note)
    [table] = trajectory_view.analyse(single, seen_paths(single)).tables
    assert "cosine" not in table.note
    two = Inquiry("random:0", (0.1, 10.0), 2, 60)
    [table] = trajectory_view.analyse(two, seen_paths(two)).tables
    assert re.search(r"at the end: [0-9.-]+ within and [0-9.-]+ between scales", table.note)


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
        replay_view.stages(Inquiry("random:0", (0.1, 1.0), 1, 80))


@pytest.mark.parametrize(
    ("inquiry", "said"),
    [
        (Inquiry("random:0", (1.0,), 0, 80), "--seeds: 0"),
        (Inquiry("random:0", (-1.0,), 1, 80), "--scales: -1 is not between"),
        (Inquiry("random:0", (1.0,), 1, 30), "--iterations: 30 .* nearest: 34"),
        (
            Inquiry("random:0", (0.1234567, 10.0), 1, 80),
            r"--scales: 0\.1234567 has more than six digits; nearest: 0\.123457$",
        ),
        (Inquiry("random:0", (1.0, 1.0000001), 1, 80), r"--scales: 1\.0000001 .* nearest: 1$"),
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
