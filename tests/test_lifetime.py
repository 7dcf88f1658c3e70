"""A lifetime: stopped anywhere it goes on to the bit, and only what is asked for changes it."""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from learners.small import small_disco, small_spec
from rulescope.core import arrays
from rulescope.core.errors import RecordError, SpecError, WeightsError
from rulescope.envs.world_config import ActionFlip, Boundary
from rulescope.episode_stats import STREAMS
from rulescope.learners.baseline_config import DQN, NetworkSizes
from rulescope.learners.disco.diagnostics import METRICS
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.lifetime import Lifetime, Progress
from rulescope.run_spec import Freeze, Intervention, Pin, Placebo, Reset, RunSpec

ITERATIONS = 28
STOPS = sorted(random.Random(0).sample(range(ITERATIONS), 20))
Content = dict[str, NDArray[Any]]


def long_spec() -> RunSpec:
    """Learns from iteration 2 on; the replay is full after 8, and then turns over."""
    return small_spec(iterations=ITERATIONS, keep=Disco.CARRIERS)


def carriers(life: Lifetime) -> Content:
    return {
        f"{name}/{key}": array
        for name, carrier in life.learner.carriers.items()
        for key, array in carrier.get().items()
    }


def science(life: Lifetime) -> str:
    return life.record().manifest.science_hash


def without_times(checkpoint: Content) -> Content:
    times = ("loop/seconds", "loop/started")
    return {name: array for name, array in checkpoint.items() if name not in times}


def assert_same(one: Content, other: Content) -> None:
    """Equal names, types, shapes and bits."""
    differing = [
        name
        for name in {**one, **other}
        if name not in one
        or name not in other
        or arrays.digest({name: one[name]}) != arrays.digest({name: other[name]})
    ]
    assert differing == []


def assert_same_life(one: Lifetime, other: Lifetime) -> None:
    assert_same(carriers(one), carriers(other))
    assert_same(dict(one.log()), dict(other.log()))
    assert_same(without_times(one.save()), without_times(other.save()))
    assert science(one) == science(other)


@cache
def completed(spec: RunSpec) -> Lifetime:
    """Return the finished lifetime of ``spec``, which is to be looked at only."""
    life = Lifetime(spec)
    life.run()
    return life


def uninterrupted() -> Lifetime:
    return completed(long_spec())


@cache
def checkpoints() -> dict[int, bytes]:
    """Return a checkpoint, packed as for the disk, after each of the stops."""
    life, found = Lifetime(long_spec()), {}
    for iteration in range(ITERATIONS):
        if iteration in {0, 1, *STOPS}:
            found[iteration] = arrays.pack(life.save())
        life.advance()
    assert_same_life(life, uninterrupted())  # saving changes nothing
    return found


@pytest.mark.parametrize("stop", sorted({0, 1, *STOPS}))
def test_stopped_and_resumed_is_uninterrupted(stop: int) -> None:
    life = Lifetime(long_spec())
    life.load(arrays.unpack(checkpoints()[stop]))
    assert life.iteration == stop
    life.run()
    assert_same_life(life, uninterrupted())


@pytest.mark.parametrize("bundle", AGENTS)
def test_every_bundle_resumes(bundle: str) -> None:
    spec = small_spec(learner=small_disco(bundle), iterations=12, keep=Disco.CARRIERS)
    whole, first = completed(spec), Lifetime(spec)
    first.run(until=7)
    second = Lifetime(spec)
    second.load(first.save())
    second.run()
    assert_same_life(second, whole)


def test_a_synthetic_boundary_and_interventions_resume() -> None:
    spec = small_spec(
        boundary=Boundary(terminals="synthetic", interval=5),
        interventions=(Pin(carrier="recurrent"),),
        scale=0.01,
        iterations=12,
        lanes=3,
    )
    whole, first = completed(spec), Lifetime(spec)
    first.run(until=5)
    second = Lifetime(spec)
    second.load(first.save())
    second.run()
    assert_same_life(second, whole)


def test_a_checkpoint_is_not_changed_by_what_follows() -> None:
    life = Lifetime(long_spec())
    life.run(until=6)
    saved = life.save()
    before = {name: np.array(array) for name, array in saved.items()}
    life.run(until=12)
    assert_same(saved, before)
    fresh = Lifetime(long_spec())
    fresh.load(saved)
    fresh.run(until=12)
    assert_same(saved, before)


def test_loading_replaces_whatever_went_before() -> None:
    life = Lifetime(long_spec())
    life.run(until=15)
    life.load(arrays.unpack(checkpoints()[1]))
    life.run()
    assert_same_life(life, uninterrupted())


def test_two_lifetimes_of_one_spec_are_equal() -> None:
    again = Lifetime(long_spec())
    again.run()
    assert_same_life(again, uninterrupted())


def test_two_lifetimes_side_by_side_do_not_disturb_each_other() -> None:
    one, two = Lifetime(long_spec()), Lifetime(small_spec(seed=5))
    while not one.finished:
        one.advance()
        if not two.finished:
            two.advance()
    assert_same_life(one, uninterrupted())


def test_another_seed_is_another_lifetime() -> None:
    one, two = completed(small_spec()), completed(small_spec(seed=1))
    assert science(one) != science(two)
    assert (carriers(one)["params/flat"] != carriers(two)["params/flat"]).any()


def test_a_changed_world_is_the_same_until_it_changes_and_resumes() -> None:
    spec = small_spec(change=ActionFlip(at=12))
    changed, plain = completed(spec), completed(small_spec())
    before = plain.log()["iteration"] <= 12
    for name, column in plain.log().items():
        assert_same({name: column[before]}, {name: changed.log()[name][before]})
    assert science(changed) != science(plain)
    for stop in (5, 12, 13, 20):
        first = Lifetime(spec)
        first.run(until=stop)
        second = Lifetime(spec)
        second.load(first.save())
        second.run()
        assert_same_life(second, changed)


def treated(item: Intervention) -> RunSpec:
    return small_spec(interventions=(item,))


@pytest.mark.parametrize("carrier", Disco.CARRIERS)
def test_placebo_is_bit_identical_to_no_intervention(carrier: str) -> None:
    live, placebo = completed(small_spec()), completed(treated(Placebo(carrier=carrier)))
    assert_same_life(live, placebo)
    assert live.spec.id != placebo.spec.id


def test_pinned_recurrent_state_is_zero_after_every_iteration() -> None:
    life = Lifetime(treated(Pin(carrier="recurrent")))
    while not life.finished:
        life.advance()
        state = life.learner.carriers["recurrent"].get()
        assert not state["h"].any()
        assert not state["c"].any()


def test_pinning_makes_a_difference() -> None:
    live, pinned = completed(small_spec()), completed(treated(Pin(carrier="recurrent")))
    assert science(live) != science(pinned)
    assert (carriers(live)["params/flat"] != carriers(pinned)["params/flat"]).any()
    # The first update reads the initial state in both.
    assert live.log()["loss_policy"][0] == pytest.approx(pinned.log()["loss_policy"][0], rel=0.5)


def test_pinning_acts_after_the_update_not_before_the_first() -> None:
    """Up to and including the first update, a pinned lifetime is a live one."""
    live, pinned = Lifetime(small_spec()), Lifetime(treated(Pin(carrier="recurrent")))
    for life in (live, pinned):
        life.run(until=2)
    one, other = carriers(live), carriers(pinned)
    for name in ("recurrent/h", "recurrent/c"):
        assert one.pop(name).any()
        assert not other.pop(name).any()
    assert_same(one, other)


@pytest.mark.parametrize("carrier", Disco.CARRIERS)
def test_every_carrier_can_be_pinned(carrier: str) -> None:
    life = completed(treated(Pin(carrier=carrier)))
    assert not any(array.any() for array in life.learner.carriers[carrier].get().values())
    assert np.isfinite(carriers(life)["params/flat"]).all()


def test_tampered_rule_weights_are_noticed() -> None:
    life = Lifetime(small_spec(iterations=3))
    life.run()
    life.record()
    life.learner._weights["lstm/linear/b"][0] += 1e-3  # type: ignore[attr-defined]
    with pytest.raises(RecordError, match=r"weights of rule 'random:20240' changed"):
        life.record()


def test_the_record_names_the_rule() -> None:
    rule = uninterrupted().record().manifest.rule
    assert rule is not None
    assert rule.name == "random:20240"
    assert rule.digest == uninterrupted().learner.rule_digest()


def test_an_unfinished_lifetime_has_no_record() -> None:
    life = Lifetime(small_spec())
    life.run(until=5)
    assert not life.finished
    with pytest.raises(RecordError, match="stopped at 5 of 24"):
        life.record()


def test_rows_are_written_at_multiples_of_the_interval_only() -> None:
    log = completed(small_spec(iterations=10, log_every=4)).log()
    assert log["iteration"].tolist() == [4.0, 8.0]
    assert log["steps"].tolist() == [4 * 12.0, 8 * 12.0]
    assert list(log) == ["iteration", "steps", *STREAMS, *METRICS]
    assert all(column.dtype == np.float64 for column in log.values())


def test_how_often_is_logged_changes_nothing_else() -> None:
    often, seldom = completed(small_spec(log_every=1)), completed(small_spec(log_every=12))
    assert_same(carriers(often), carriers(seldom))
    rows = [11, 23]
    for name, column in often.log().items():
        np.testing.assert_array_equal(column[rows], seldom.log()[name])


def test_metrics_are_unknown_until_learning_starts() -> None:
    spec = small_spec(learner=small_disco(batch=6), iterations=4, log_every=1)
    log = completed(spec).log()
    for name in METRICS:
        assert np.isfinite(log[name]).tolist() == [False, False, True, True], name
    assert np.isfinite(log["reward_rate"]).all()


def test_score_is_unknown_until_an_episode_ends() -> None:
    """Five rows make episodes of four steps; an iteration of three steps ends none."""
    log = completed(small_spec(iterations=3, steps=3, log_every=1)).log()
    assert np.isnan(log["score"]).tolist() == [True, False, False]
    assert log["episodes"].tolist() == [0.0, 2.0, 4.0]


def test_record_keeps_the_carriers_asked_for() -> None:
    record = completed(small_spec(iterations=3, keep=("recurrent", "target"))).record()
    assert set(record.state) == {"recurrent/h", "recurrent/c", "target/flat"}
    assert set(completed(small_spec(iterations=3, keep=())).record().state) == set()


def test_progress_is_reported_after_each_iteration() -> None:
    seen: list[Progress] = []
    life = Lifetime(small_spec(iterations=4, log_every=2))
    life.run(until=3, report=seen.append)
    life.run(until=99, report=seen.append)
    life.run(report=seen.append)
    assert [progress.iteration for progress in seen] == [1, 2, 3, 4]
    assert {progress.iterations for progress in seen} == {4}
    assert seen[-1].score == life.stats.read()["score"]


def test_reward_scale_affects_the_learner_but_not_the_statistics() -> None:
    life = completed(small_spec(scale=100.0, iterations=6))
    stored = life.learner.carriers["replay"].get()["rewards"]
    assert set(np.unique(stored).tolist()) <= {-100.0, 0.0, 100.0}
    assert abs(life.log()["mean_return"][-1]) <= 1.0


def test_slots_hold_what_followed_each_action() -> None:
    """Catch pays at the end of an episode, which comes every fourth step of each lane."""
    life = Lifetime(small_spec(steps=6, learner=small_disco("legacy")))
    life.run(until=2)
    stored = life.learner.carriers["replay"].get()
    first, second = stored["terminals"][:2], stored["terminals"][2:]
    assert first.tolist() == [[0, 0, 0, 1, 0, 0]] * 2
    assert second.tolist() == [[0, 1, 0, 0, 0, 1]] * 2
    assert (stored["rewards"] != 0).tolist() == (stored["terminals"] == 1).tolist()
    # The observation of the bootstrap is the first one of the next trajectory.
    rows, index = stored["rows"], stored["index"]
    assert (rows[index[0, -1]] == rows[index[2, 0]]).all()


def test_began_says_whether_the_rollout_before_ended_an_episode() -> None:
    life = Lifetime(small_spec(steps=6))
    life.run(until=4)
    stored = life.learner.carriers["replay"].get()
    assert stored["began"].tolist() == [0, 0, 0, 0, 1, 1, 0, 0]


def test_an_invalid_spec_is_refused() -> None:
    with pytest.raises(SpecError, match=r"interventions\[0\]\.carrier: no carrier 'recurent'"):
        Lifetime(treated(Pin(carrier="recurent")))


@pytest.mark.parametrize("rule", ["disco104", "random:", "random:x", "random:-1", ""])
def test_a_rule_that_does_not_exist_is_refused(rule: str) -> None:
    with pytest.raises((WeightsError, SpecError)):
        Lifetime(small_spec(learner=small_disco(rule=rule)))


def test_score_is_not_a_number_before_anything_happened() -> None:
    life = Lifetime(small_spec())
    assert math.isnan(life.stats.score())
    assert all(len(column) == 0 for column in life.log().values())


def log_of(*interventions: Intervention) -> Content:
    life = Lifetime(small_spec(iterations=6, log_every=3, interventions=interventions))
    life.run()
    return life.log()


def test_norms_are_logged_as_the_next_iteration_finds_them() -> None:
    plain, pinned = log_of(), log_of(Pin(carrier="recurrent"))
    for name in ("hidden_norm", "cell_norm"):
        assert (plain[name] > 0.0).all()
        assert (pinned[name] == 0.0).all()
    frozen = log_of(Freeze(carrier="recurrent", at=2))
    assert frozen["hidden_norm"][0] == frozen["hidden_norm"][1] > 0.0


def test_a_cleared_replay_is_logged_as_empty() -> None:
    learner = DQN(agent=NetworkSizes(hidden=(8, 8)), start=8, batch=4)
    life = Lifetime(
        small_spec(
            learner=learner,
            iterations=4,
            log_every=2,
            interventions=(Reset(carrier="replay", at=2),),
        )
    )
    life.run()
    assert life.log()["stored"].tolist() == [0.0, 24.0]
