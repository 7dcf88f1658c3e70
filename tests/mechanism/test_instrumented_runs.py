"""Observing does not change a lifetime, and stored observations are reused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from learners.small import small_spec
from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.envs.world_config import ActionFlip
from rulescope.learners.baseline_config import DQN, NetworkSizes
from rulescope.learners.disco_config import Disco
from rulescope.lifetime import Lifetime
from rulescope.mechanism import instrumented_runs, replay_view, targets_view, trajectory_view
from rulescope.mechanism.instrumented_runs import OBSERVATIONS, observe_group, observe_view
from rulescope.mechanism.view_request import AttachObserver, Observer, RunGroup, ViewRequest
from rulescope.records import Store
from rulescope.run_spec import Reset, RunSpec

SMALL = ViewRequest("sprout-random:0", (0.1, 10.0), 1, 20)
ITERATIONS = 14
MOMENTS = (3, 8, ITERATIONS)


def science_hash(run: RunSpec) -> str:
    """Return the science hash of a lifetime that is not observed."""
    lifetime = Lifetime(run)
    lifetime.run()
    return lifetime.record().manifest.science_hash


def everything(run: RunSpec) -> RunSpec:
    """Return ``run`` with all carriers of its learner in the record, so that all are hashed."""
    return msgspec.structs.replace(run, keep=run.learner.CARRIERS)


def small(**changes: object) -> RunSpec:
    return everything(small_spec(iterations=ITERATIONS, **changes))


def dqn() -> RunSpec:
    learner = DQN(agent=NetworkSizes(hidden=(8, 8)), capacity=100, start=20, batch=4)
    cleared = (Reset(carrier="replay", at=7),)
    return small(learner=learner, change=ActionFlip(at=7), interventions=cleared)


CASES: list[tuple[AttachObserver, Mapping[str, RunSpec]]] = [
    (trajectory_view.attach_observer, {"live/1/0": small()}),
    (
        targets_view.attach_observer,
        {f"{s:g}/{n}": small(scale=s, seed=n) for s in (0.1, 10.0) for n in (0, 1)},
    ),
    (replay_view.attach_observer, {"disco/0": small(change=ActionFlip(at=7))}),
    (replay_view.attach_observer, {"dqn-cleared/0": dqn()}),
]


@pytest.mark.parametrize(("attach_observer", "runs"), CASES)
def test_an_observed_lifetime_is_the_same_to_the_bit(
    attach_observer: AttachObserver, runs: Mapping[str, RunSpec], tmp_path: Path
) -> None:
    group = RunGroup(runs, MOMENTS)
    found = observe_group(group, attach_observer, Store(tmp_path))
    assert {name: science_hash(run) for name, run in runs.items()} == found.science_hashes
    assert all(len(values) == len(MOMENTS) for values in found.values.values())
    kept = Store(tmp_path).read(next(iter(runs.values())).id)
    assert set(kept.state) > {"params/flat"}


def attach_changing_observer(lifetimes: Mapping[str, Lifetime]) -> Observer:
    """Read parameters in a way that changes them."""

    def observe(_: int) -> Arrays:
        [lifetime] = lifetimes.values()
        params = lifetime.learner.carriers["params"].get()
        lifetime.learner.carriers["params"].set({"flat": params["flat"] + np.float32(1e-3)})
        return params

    return observe


def test_an_observer_that_changes_a_lifetime_is_detected(tmp_path: Path) -> None:
    group, store = RunGroup({"one": small()}, (5,)), Store(tmp_path)
    observe_group(group, trajectory_view.attach_observer, store)
    with pytest.raises(RecordError, match="the observed run differs"):
        observe_group(group, attach_changing_observer, store)
    observe_group(group, trajectory_view.attach_observer, store)  # the stored record is intact


def test_stored_observations_are_reused(tmp_path: Path) -> None:
    view, store, folder = trajectory_view.VIEW, Store(tmp_path / "store"), tmp_path / "out"
    reported: list[int] = []
    first = observe_view(view, SMALL, store, folder, progress=reported.append)
    assert reported[-1] == instrumented_runs.total_iterations(view, SMALL) == 4 * SMALL.iterations
    assert sorted(set(reported)) == list(range(1, reported[-1] + 1))

    def refuse(_: Mapping[str, Lifetime]) -> Observer:
        raise AssertionError("observed again")

    refusing = replace(view, attach_observer=refuse)
    again = observe_view(refusing, SMALL, Store(tmp_path / "none"), folder)
    for one, other in zip(first, again, strict=True):
        assert one.science_hashes == other.science_hashes
        assert (one.source, one.runtime) == (other.source, other.runtime)
        assert {k: v.tobytes() for k, v in one.values.items()} == {
            k: v.tobytes() for k, v in other.values.items()
        }
        [log], [same] = one.logs.values(), other.logs.values()
        assert log["score"].tobytes() == same["score"].tobytes()
    damaged = sorted((folder / OBSERVATIONS).iterdir())[0]
    damaged.write_bytes(b"PK nothing")
    with pytest.raises(AssertionError, match="observed again"):
        observe_view(replace(view, attach_observer=refuse), SMALL, store, folder)
    with pytest.raises(AssertionError, match="observed again"):
        observe_view(replace(view, attach_observer=refuse, version=2), SMALL, store, folder)


def test_donors_are_run_if_the_store_lacks_them(tmp_path: Path) -> None:
    crossed = trajectory_view.stages(SMALL)[1][0]
    [run] = crossed.runs.values()
    found = observe_group(crossed, trajectory_view.attach_observer, Store(tmp_path))
    [name] = crossed.runs
    donor = Store(tmp_path).read(run.donors[0].id).state["recurrent/h"]
    before = SMALL.first_update - 2  # the place of the last moment before the first update
    assert found.values[f"{name}/h"][before].tobytes() == donor.tobytes()
    assert found.values[f"{name}/h"][-1].tobytes() != donor.tobytes()


def test_the_default_learner_keeps_its_recurrent_state() -> None:
    assert isinstance(SMALL.learner, Disco)
    assert "recurrent" in SMALL.run_without_intervention(1.0, 0).kept
