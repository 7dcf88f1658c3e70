"""The replay view, from small lifetimes to results."""

from __future__ import annotations

import numpy as np
import pytest

from rulescope.assays.results import Results
from rulescope.core.errors import SpecError
from rulescope.mechanism import replay_view
from rulescope.mechanism.instrumented_runs import observe_view
from rulescope.mechanism.view_request import ViewRequest
from rulescope.records import Store

AGES = ViewRequest("sprout-random:0", (1.0,), 1, 60)
"""The world changes after iteration 20."""
ARMS = ("rule", "dqn-cleared")
"""The other arms add nothing but time."""


@pytest.fixture(scope="module")
def ages(tmp_path_factory: pytest.TempPathFactory) -> Results:
    home = tmp_path_factory.mktemp("ages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_view, "ARMS", ARMS)
        observations = observe_view(replay_view.VIEW, AGES, Store(home / "store"), home)
    return replay_view.analyse(AGES, observations)


def test_measured_ages_are_those_of_first_in_first_out(ages: Results) -> None:
    for arm in ARMS:
        for part in ("before", "mean", "quantiles"):
            [measured] = ages.series[f"measured/{arm}/held/{part}"]
            assert measured == pytest.approx(ages.series[f"fifo/{arm}/{part}"], nan_ok=True), part
        assert ages.estimates.at("off", arm=arm).value == 0.0
    assert ages.estimates.at("before", arm="rule", delay=0.0).value == 1.0
    assert ages.estimates.at("drawn", arm="rule").value == pytest.approx(0.0, abs=0.05)


def test_sampled_shares_follow_stored_shares(ages: Results) -> None:
    [drawn] = ages.series["measured/rule/drawn/before"]
    assert np.isnan(drawn[:5]).all()
    assert (drawn[5:20] == 1.0).all()  # everything is from before the change
    assert 0.0 < drawn[25:45].mean() < 1.0
    assert (drawn[51:] == 0.0).all()  # 64 trajectories of 2 an iteration: gone after 32
    assert ages.estimates.at("uses", arm="rule").value == pytest.approx(12 * 15 / 40)
    [cleared] = ages.series["measured/dqn-cleared/drawn/before"]
    assert np.isnan(cleared[20:35]).all()  # not sampled until it has 1,000 transitions
    assert (cleared[40:] == 0.0).all()
    assert ages.series["measured/rule/score"].shape == (1, 3)


def test_rows_have_named_columns_and_the_table_has_the_name_of_the_rule(ages: Results) -> None:
    assert {tuple(row.labels) for row in ages.estimates.rows} == {("arm", "delay"), ("arm",)}
    assert ages.axes["arm"] == ARMS
    assert [row[0] for row in ages.tables[0].rows] == ["sprout-random:0", "DQN cleared"]


def test_the_replay_view_refuses_reward_scales() -> None:
    with pytest.raises(SpecError, match="--scales"):
        replay_view.stages(ViewRequest("random:0", (0.1, 1.0), 1, 80))
