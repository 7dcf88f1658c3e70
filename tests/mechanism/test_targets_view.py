"""The targets view: one update on copies, in which only the recurrent state differs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from learners.small import small_spec
from mechanism.sample_observations import TARGETS, targets_observations
from rulescope.core import seeds
from rulescope.core.errors import SpecError
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco.rule_network import RuleState
from rulescope.lifetime import Lifetime
from rulescope.mechanism.instrumented_runs import observe_group
from rulescope.mechanism.targets_view import (
    analyse,
    attach_observer,
    compare_responses,
    cosine,
    find_donors,
    mean_kl,
    mean_total_variation,
    moments,
    query_rule,
    softmax,
    stages,
)
from rulescope.mechanism.view_request import RunGroup, ViewRequest
from rulescope.records import Store
from rulescope.render.tables import markdown

SMALL = ViewRequest("sprout-random:0", (0.1, 1.0, 10.0), 2, 20)


@pytest.fixture(scope="module")
def learner() -> DiscoLearner:
    lifetime = Lifetime(small_spec())
    lifetime.run(12)
    assert isinstance(lifetime.learner, DiscoLearner)
    return lifetime.learner


@pytest.fixture(scope="module")
def batch(learner: DiscoLearner) -> Batch:
    return learner.batch(seeds.stream(0, "some"))


def test_with_its_own_state_the_response_is_the_same(learner: DiscoLearner, batch: Batch) -> None:
    own = learner.state.recurrent
    same = compare_responses(query_rule(learner, batch, own), query_rule(learner, batch, own))
    assert [same[key] for key in ("kl_policy", "kl_y", "kl_z", "moved", "value")] == [0.0] * 5
    assert same["agree"] == pytest.approx(1.0)
    assert same["size"] == 1.0


def test_a_query_gives_what_an_update_would_compute(learner: DiscoLearner, batch: Batch) -> None:
    response = query_rule(learner, batch, learner.state.recurrent)
    twin = Lifetime(small_spec())
    twin.run(12)
    assert isinstance(twin.learner, DiscoLearner)
    _, step = twin.learner.update.fast_(twin.learner.state, batch)
    assert response.gradient.tolist() == step.gradient.numpy().astype(np.float64).tolist()
    assert response.y.tolist() == step.targets.y.flatten(0, 1).numpy().astype(np.float64).tolist()
    assert response.policy == pytest.approx(step.targets.policy.softmax(-1).flatten(0, 1).numpy())


def test_another_state_changes_the_targets_but_not_those_of_values(
    learner: DiscoLearner, batch: Batch
) -> None:
    own = learner.state.recurrent
    zero = learner.update.network.fresh()
    changed = compare_responses(query_rule(learner, batch, own), query_rule(learner, batch, zero))
    assert min(changed["kl_policy"], changed["kl_y"], changed["kl_z"]) > 0.0
    assert changed["value"] == 0.0


def test_only_the_hidden_half_has_an_effect_within_one_update(
    learner: DiscoLearner, batch: Batch
) -> None:
    own = learner.state.recurrent
    other = RuleState(own.hidden, own.cell + 5.0)
    changed = compare_responses(query_rule(learner, batch, own), query_rule(learner, batch, other))
    assert (changed["kl_policy"], changed["kl_y"], changed["kl_z"]) == (0.0, 0.0, 0.0)


def test_donors_have_another_seed_and_for_cross_the_opposite_scale() -> None:
    found = find_donors([f"{s}/{n}" for s in ("0.1", "1", "10") for n in (4, 5, 6)])
    assert found["0.1/6"] == {"match": "0.1/4", "cross": "10/4"}
    assert found["1/4"] == {"match": "1/5"}
    assert find_donors(["0.1/0", "10/0"])["0.1/0"] == {"cross": "10/0"}


def test_each_arm_uses_the_state_of_its_donor(tmp_path: Path) -> None:
    """Query again by hand, at the end: a swap that took the wrong state would show."""
    keys = {
        f"{s:g}/{n}": small_spec(scale=s, seed=n, iterations=9) for s in (0.1, 10.0) for n in (0, 1)
    }
    found = observe_group(RunGroup(keys, (9,)), attach_observer, Store(tmp_path)).values
    lifetimes = {key: Lifetime(run) for key, run in keys.items()}
    for lifetime in lifetimes.values():
        lifetime.run()
    mine, *_ = (lifetime.learner for lifetime in lifetimes.values())
    assert isinstance(mine, DiscoLearner)
    batch = mine.batch(seeds.stream(0, "mechanism", "batch", 9))
    live = query_rule(mine, batch, mine.state.recurrent)
    for swap, key in (("match", "0.1/1"), ("cross", "10/1")):
        other = lifetimes[key].learner
        assert isinstance(other, DiscoLearner)
        changed = compare_responses(live, query_rule(mine, batch, other.state.recurrent))
        assert found[f"0.1/0/{swap}/kl_y"].tolist() == [changed["kl_y"]]
    zero = compare_responses(live, query_rule(mine, batch, mine.update.network.fresh()))
    assert found["0.1/0/pin/kl_y"].tolist() == [zero["kl_y"]]
    assert len({float(found[f"0.1/0/{swap}/kl_y"][0]) for swap in ("pin", "match", "cross")}) == 3


def test_moments_are_denser_at_the_start() -> None:
    found = moments(32, 160)
    assert (found[0], found[-1]) == (32, 160)
    gaps = np.diff(found)
    assert gaps.min() >= 1
    assert gaps[-1] > gaps[0]


@pytest.mark.parametrize(("seeds_", "sizes"), [(1, [1]), (2, [2]), (3, [3]), (5, [2, 3])])
def test_every_seed_shares_a_group_with_another_if_there_is_one(
    seeds_: int, sizes: list[int]
) -> None:
    groups = stages(ViewRequest("sprout-random:0", (0.1, 10.0), seeds_, 20))[0]
    assert [len(group.runs) // 2 for group in groups] == sizes
    assert sorted(key for group in groups for key in group.runs) == sorted(
        f"{s}/{n}" for s in ("0.1", "10") for n in range(seeds_)
    )


def test_the_analysis_gathers_seeds_by_scale_and_state(tmp_path: Path) -> None:
    groups = [group._replace(moments=(8, 20)) for group in stages(SMALL)[0]]
    results = analyse(
        SMALL, [observe_group(group, attach_observer, Store(tmp_path)) for group in groups]
    )
    assert results.series["kl_y/0.1/cross"].shape == (2, 2)
    assert "kl_y/1/cross" not in results.series
    assert results.estimates.at("kl_y", scale=10.0, state="pin").value > 0.0
    [table] = results.tables
    assert [row[:2] for row in table.rows if row[0] == "1"] == [
        ("1", "pin"),
        ("1", "match"),
    ]


def test_the_table_has_the_range_beside_the_mean() -> None:
    """Gradients point either way at different moments, so the mean alone is not enough."""
    [made_up] = targets_observations(TARGETS)
    late = np.array(made_up.group.moments) >= TARGETS.iterations / 2
    lines = np.zeros((2, len(late)))
    lines[:, late] = [[0.22, 0.01, 0.03, -0.56], [0.5, 0.1, 0.1, 0.0]]
    agree = {f"0.001/{seed}/pin/agree": lines[seed] for seed in (0, 1)}
    results = analyse(TARGETS, [made_up._replace(values={**made_up.values, **agree})])
    found = results.estimates.at("agree", scale=0.001, state="pin")
    assert (found.low, found.high, found.n) == (-0.56, 0.5, 8)
    assert found.value == pytest.approx(0.05)
    [table] = results.tables
    text = markdown(table)
    assert "| 0.05 (−0.56 to 0.50) |" in text
    assert "(a to b): lowest and highest, over 2 seeds and the 4 moments observed" in text
    assert "over the seeds" not in text


def test_one_seed_has_a_range_over_moments() -> None:
    one = ViewRequest("random:0", (1.0,), 1, 160)
    [table] = analyse(one, targets_observations(one)).tables
    assert re.search(r"\| pin \| [0-9.]+ \([0-9.]+ to [0-9.]+\) \|", markdown(table))
    assert "over 1 seed and the 4 moments" in table.note


def test_a_learner_without_a_rule_that_sets_targets_is_refused() -> None:
    lifetime = Lifetime(small_spec(learner=A2C(agent=NetworkSizes(hidden=(8, 8)))))
    with pytest.raises(SpecError, match="A2CLearner has no rule"):
        attach_observer({"1/0": lifetime})(1)


def test_divergences_have_their_known_values() -> None:
    one, other = np.array([[0.5, 0.5]]), np.array([[0.25, 0.75]])
    assert mean_kl(one, other) == pytest.approx(0.5 * np.log(2.0) + 0.5 * np.log(2.0 / 3.0))
    assert mean_total_variation(one, other) == pytest.approx(0.25)
    assert mean_kl(one, other) != pytest.approx(mean_kl(other, one))


def test_divergences_are_means_over_all_transitions() -> None:
    one = np.array([[[0.5, 0.5], [1.0, 0.0]]])
    other = np.array([[[0.5, 0.5], [0.5, 0.5]]])
    assert mean_kl(one, other) == pytest.approx(np.log(2.0) / 2.0)
    assert mean_total_variation(one, other) == pytest.approx(0.25)


def test_equal_distributions_have_zero_divergence_and_zeros_are_finite() -> None:
    some = softmax(np.random.default_rng(0).normal(size=(7, 600)))
    assert mean_kl(some, some) == 0.0
    assert mean_total_variation(some, some) == 0.0
    certain = np.array([[1.0, 0.0]])
    assert 80.0 < mean_kl(certain, certain[:, ::-1]) < 90.0


def test_softmax_of_large_logits_is_finite() -> None:
    assert softmax(np.array([1e4, 1e4 + np.log(3.0)])) == pytest.approx([0.25, 0.75])


def test_cosines_have_their_known_values() -> None:
    x, y = np.array([1.0, 0.0]), np.array([1.0, 1.0])
    assert cosine(x, y) == pytest.approx(np.sqrt(0.5))
    assert cosine(x, -3.0 * x) == pytest.approx(-1.0)
    assert np.isnan(cosine(x, 0.0 * x))
