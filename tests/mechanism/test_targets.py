"""Swapped targets: one update on copies, in which nothing but the state is another."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from learners.small import small_spec
from mechanism.samples import SWAPS, seen_swaps
from rulescope.core import seeds
from rulescope.core.errors import SpecError
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco.rule_network import RuleState
from rulescope.lifetime import Lifetime
from rulescope.mechanism.instrumented_runs import watch
from rulescope.mechanism.targets_view import (
    analyse,
    ask,
    compared,
    donors,
    moments,
    observer,
    stages,
)
from rulescope.mechanism.view_request import Group, Inquiry
from rulescope.records import Store
from rulescope.render.table_formats import markdown
from rulescope.spec.baseline_config import A2C, NetworkSizes

SMALL = Inquiry("sprout-random:0", (0.1, 1.0, 10.0), 2, 20)


@pytest.fixture(scope="module")
def learner() -> DiscoLearner:
    life = Lifetime(small_spec())
    life.run(12)
    assert isinstance(life.learner, DiscoLearner)
    return life.learner


@pytest.fixture(scope="module")
def batch(learner: DiscoLearner) -> Batch:
    return learner.batch(seeds.stream(0, "some"))


def test_with_its_own_state_the_rule_says_what_it_said(learner: DiscoLearner, batch: Batch) -> None:
    own = learner.state.recurrent
    same = compared(ask(learner, batch, own), ask(learner, batch, own))
    assert [same[key] for key in ("kl_policy", "kl_y", "kl_z", "moved", "value")] == [0.0] * 5
    assert same["agree"] == pytest.approx(1.0)
    assert same["size"] == 1.0


def test_what_is_asked_is_what_an_update_would_do(learner: DiscoLearner, batch: Batch) -> None:
    said = ask(learner, batch, learner.state.recurrent)
    twin = Lifetime(small_spec())
    twin.run(12)
    assert isinstance(twin.learner, DiscoLearner)
    _, step = twin.learner.update.fast_(twin.learner.state, batch)
    assert said.gradient.tolist() == step.gradient.numpy().astype(np.float64).tolist()
    assert said.y.tolist() == step.targets.y.flatten(0, 1).numpy().astype(np.float64).tolist()
    assert said.policy == pytest.approx(step.targets.policy.softmax(-1).flatten(0, 1).numpy())


def test_another_state_moves_the_targets_and_not_the_values(
    learner: DiscoLearner, batch: Batch
) -> None:
    own = learner.state.recurrent
    zero = learner.update.network.fresh()
    seen = compared(ask(learner, batch, own), ask(learner, batch, zero))
    assert min(seen["kl_policy"], seen["kl_y"], seen["kl_z"]) > 0.0
    assert seen["value"] == 0.0


def test_only_the_hidden_half_matters_at_once(learner: DiscoLearner, batch: Batch) -> None:
    own = learner.state.recurrent
    other = RuleState(own.hidden, own.cell + 5.0)
    seen = compared(ask(learner, batch, own), ask(learner, batch, other))
    assert (seen["kl_policy"], seen["kl_y"], seen["kl_z"]) == (0.0, 0.0, 0.0)


def test_donors_differ_in_seed_or_in_scale_too() -> None:
    found = donors([f"{s}/{n}" for s in ("0.1", "1", "10") for n in (4, 5, 6)])
    assert found["0.1/6"] == {"match": "0.1/4", "cross": "10/4"}
    assert found["1/4"] == {"match": "1/5"}
    assert donors(["0.1/0", "10/0"])["0.1/0"] == {"cross": "10/0"}


def test_each_state_is_the_one_that_its_name_says(tmp_path: Path) -> None:
    """Ask again by hand, at the end: a swap that took the wrong state would show."""
    keys = {
        f"{s:g}/{n}": small_spec(scale=s, seed=n, iterations=9) for s in (0.1, 10.0) for n in (0, 1)
    }
    found = watch(Group(keys, (9,)), observer, Store(tmp_path)).seen
    lives = {key: Lifetime(run) for key, run in keys.items()}
    for life in lives.values():
        life.run()
    mine, *_ = (life.learner for life in lives.values())
    assert isinstance(mine, DiscoLearner)
    batch = mine.batch(seeds.stream(0, "mechanism", "batch", 9))
    live = ask(mine, batch, mine.state.recurrent)
    for swap, key in (("match", "0.1/1"), ("cross", "10/1")):
        other = lives[key].learner
        assert isinstance(other, DiscoLearner)
        seen = compared(live, ask(mine, batch, other.state.recurrent))
        assert found[f"0.1/0/{swap}/kl_y"].tolist() == [seen["kl_y"]]
    zero = compared(live, ask(mine, batch, mine.update.network.fresh()))
    assert found["0.1/0/pin/kl_y"].tolist() == [zero["kl_y"]]
    assert len({float(found[f"0.1/0/{swap}/kl_y"][0]) for swap in ("pin", "match", "cross")}) == 3


def test_moments_are_denser_at_first() -> None:
    found = moments(32, 160)
    assert (found[0], found[-1]) == (32, 160)
    gaps = np.diff(found)
    assert gaps.min() >= 1
    assert gaps[-1] > gaps[0]


@pytest.mark.parametrize(("seeds_", "sizes"), [(1, [1]), (2, [2]), (3, [3]), (5, [2, 3])])
def test_every_seed_is_in_a_group_with_another(seeds_: int, sizes: list[int]) -> None:
    groups = stages(Inquiry("sprout-random:0", (0.1, 10.0), seeds_, 20))[0]
    assert [len(group.runs) // 2 for group in groups] == sizes
    assert sorted(key for group in groups for key in group.runs) == sorted(
        f"{s}/{n}" for s in ("0.1", "10") for n in range(seeds_)
    )


def test_the_analysis_gathers_seeds_by_scale_and_state(tmp_path: Path) -> None:
    groups = [group._replace(moments=(8, 20)) for group in stages(SMALL)[0]]
    results = analyse(SMALL, [watch(group, observer, Store(tmp_path)) for group in groups])
    assert results.series["kl_y/0.1/cross"].shape == (2, 2)
    assert "kl_y/1/cross" not in results.series
    assert results.estimates["kl_y/10/pin"].value > 0.0
    [table] = results.tables
    assert [row[:2] for row in table.rows if row[0] == "1"] == [
        ("1", "pin"),
        ("1", "match"),
    ]


def test_the_table_has_the_range_beside_the_mean() -> None:
    """A mean over moments at which gradients point either way says little on its own."""
    [made_up] = seen_swaps(SWAPS)
    late = np.array(made_up.group.moments) >= SWAPS.iterations / 2
    lines = np.zeros((2, len(late)))
    lines[:, late] = [[0.22, 0.01, 0.03, -0.56], [0.5, 0.1, 0.1, 0.0]]
    agree = {f"0.001/{seed}/pin/agree": lines[seed] for seed in (0, 1)}
    results = analyse(SWAPS, [made_up._replace(seen={**made_up.seen, **agree})])
    found = results.estimates["agree/0.001/pin"]
    assert (found.low, found.high, found.n) == (-0.56, 0.5, 8)
    assert found.value == pytest.approx(0.05)
    [table] = results.tables
    said = markdown(table)
    assert "| 0.05 (−0.56 to 0.50) |" in said
    assert "(a to b): lowest and highest, over 2 seeds and the 4 moments looked at" in said
    assert "over the seeds" not in said


def test_one_seed_has_a_range_over_moments() -> None:
    one = Inquiry("random:0", (1.0,), 1, 160)
    [table] = analyse(one, seen_swaps(one)).tables
    assert re.search(r"\| pin \| [0-9.]+ \([0-9.]+ to [0-9.]+\) \|", markdown(table))
    assert "over 1 seed and the 4 moments" in table.note


def test_a_learner_without_such_a_rule_is_refused() -> None:
    life = Lifetime(small_spec(learner=A2C(agent=NetworkSizes(hidden=(8, 8)))))
    with pytest.raises(SpecError, match="A2CLearner has no rule"):
        observer({"1/0": life})(1)
