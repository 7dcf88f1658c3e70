import subprocess
from pathlib import Path

import msgspec
import numpy as np
import pytest

from benchmarks import measurement, peak_memory
from benchmarks.measurement import Plan, Round, Spread
from benchmarks.timed_lifetime import Iteration, MoreActions, Subject, disco, world
from rulescope.core.errors import RulescopeError
from rulescope.envs import check_env
from rulescope.rules import locate
from rulescope.spec.run_spec import RunSpec
from rulescope.spec.world_config import Catch

PLAN = Plan(rounds=2, iterations=2, warm_up=1, scaling_rounds=1, memory_iterations=2)


def test_more_actions_is_a_proper_world(small: RunSpec) -> None:
    check_env(lambda: MoreActions(world(small, lanes=2), actions=7), steps=60)


def test_the_subject_updates_from_the_first_iteration(small: RunSpec) -> None:
    subject = Subject(small)
    before = subject.learner.state.params.clone()
    assert len(subject.learner.replay) == disco(small).capacity
    time = subject.iterate()
    assert 0.0 < time.learning < time.total
    assert not before.equal(subject.learner.state.params)
    assert len(subject.batches) == len(subject.products()) == 1
    subject.forget()
    assert subject.products() == []


def test_the_filled_replay_is_a_lawful_one(small: RunSpec) -> None:
    spec = msgspec.structs.replace(
        small, learner=msgspec.structs.replace(small.learner, capacity=100)
    )
    subject = Subject(spec, actions=5)
    content = subject.learner.carriers["replay"].get()
    assert content["index"].shape == (100, 29)
    assert content["actions"].shape == content["terminals"].shape == (100, 28)
    assert content["behaviour"].shape == (100, 28, 5)
    assert set(np.unique(content["actions"])) == {0, 1, 2, 3, 4}
    # Catch pays at the end of an episode and nowhere else, and an episode lasts seven steps.
    assert np.array_equal(content["rewards"] != 0.0, content["terminals"] != 0.0)
    assert set(content["terminals"].sum(1).tolist()) == {4.0}
    # The second rollout begins one step into an episode, so trajectories differ in phase.
    assert len(np.unique(content["terminals"].argmax(1))) == 2


def test_ratios_are_taken_within_a_round() -> None:
    one = Round(
        rate=100.0,
        square=200.0,
        ours=[Iteration(0.2, 0.1), Iteration(0.4, 0.1)],
        products=[5],
        peer=1.5,
    )
    assert one.own == pytest.approx(0.3)
    assert one.limit == pytest.approx(0.05)
    assert one.square_limit == pytest.approx(0.025)


def test_spread() -> None:
    assert Spread.of([4.0, 1.0, 2.0, 3.0, 5.0]) == Spread(median=3.0, q1=2.0, q3=4.0)


@pytest.mark.usefixtures("fake_peer")
def test_compare_with_the_peer(small: RunSpec, weights: Path) -> None:
    reports: list[int] = []
    found = measurement.compare(small, 2, PLAN, weights, report=lambda: reports.append(1))
    assert len(reports) == found.rounds == 2
    assert (found.batch, found.grid, found.actions, found.agent) == (4, 8, 3, "historical")
    assert found.peer_ms is not None
    assert found.ratio_to_peer is not None
    for spread in (found.ours_ms, found.limit_ms, found.ratio_to_limit, found.ratio_to_peer):
        assert 0.0 < spread.q1 <= spread.median <= spread.q3
    assert 0.0 < found.acting_share.median < 1.0
    assert 0.0 < found.distinct_rows <= 4 * 29


@pytest.mark.usefixtures("no_peer")
def test_a_run_without_the_peer(small: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def spec(_rule: str, environment: Catch, *_: object, **__: object) -> RunSpec:
        return msgspec.structs.replace(small, environment=environment)

    monkeypatch.setattr(measurement, "lifetime_spec", spec)
    monkeypatch.setattr(measurement, "peak_memory", lambda _rule, _iterations: 123.0)
    monkeypatch.setattr(locate, "find", lambda _rule: None)
    stages: list[str] = []
    found = measurement.run(PLAN, stages.append)
    assert found.ratio_to_peer is None
    assert found.catch.ratio_to_peer is None
    assert found.ratio_to_limit > 0.0
    assert found.rule == measurement.FALLBACK
    assert len(found.notes) == 2
    assert "rulescope[bench]" in found.notes[0]
    assert len(found.scaling) == len(measurement.settings())
    assert [row.actions for row in found.scaling][-2:] == [6, 12]
    assert len(stages) == PLAN.total


def test_the_settings_vary_one_thing_at_a_time() -> None:
    first, *others = measurement.settings()
    assert first == measurement.STANDARD
    for setting in others:
        assert sum(setting[name] != first[name] for name in first) == 1


def test_released_weights_are_used_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "find", lambda _rule: Path("disco_103.npz"))
    with measurement.rule_file() as (rule, path):
        assert (rule, path) == ("disco103", Path("disco_103.npz"))


def test_peak_memory_of_a_process_of_its_own() -> None:
    assert 50.0 < peak_memory.peak_memory(measurement.FALLBACK, iterations=2) < 4000.0


def test_a_failed_memory_process_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "Traceback\nWeightsError: no such rule\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RulescopeError, match="no such rule"):
        peak_memory.peak_memory("nonsense", iterations=2)
