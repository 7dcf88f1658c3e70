"""Watched lifetimes do not notice, and what was seen is not looked at twice."""

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
from rulescope.lifetime import Lifetime
from rulescope.mechanism import instrumented_runs, replay_view, targets_view, trajectory_view
from rulescope.mechanism.instrumented_runs import KEPT, observe, watch
from rulescope.mechanism.view_request import Group, Inquiry, Look, Observer
from rulescope.records import Store
from rulescope.spec.baseline_config import DQN, NetworkSizes
from rulescope.spec.disco_config import Disco
from rulescope.spec.run_spec import Reset, RunSpec
from rulescope.spec.world_config import ActionFlip

SMALL = Inquiry("sprout-random:0", (0.1, 10.0), 1, 20)
ITERATIONS = 14
MOMENTS = (3, 8, ITERATIONS)


def science(run: RunSpec) -> str:
    """Return the science hash of a lifetime that nobody looks at."""
    life = Lifetime(run)
    life.run()
    return life.record().manifest.science_hash


def everything(run: RunSpec) -> RunSpec:
    """Return ``run`` with all that its learner carries in the record, so that all is hashed."""
    return msgspec.structs.replace(run, keep=run.learner.CARRIERS)


def small(**changes: object) -> RunSpec:
    return everything(small_spec(iterations=ITERATIONS, **changes))


def dqn() -> RunSpec:
    learner = DQN(agent=NetworkSizes(hidden=(8, 8)), capacity=100, start=20, batch=4)
    cleared = (Reset(carrier="replay", at=7),)
    return small(learner=learner, change=ActionFlip(at=7), interventions=cleared)


WATCHED: list[tuple[Observer, Mapping[str, RunSpec]]] = [
    (trajectory_view.observer, {"live/1/0": small()}),
    (
        targets_view.observer,
        {f"{s:g}/{n}": small(scale=s, seed=n) for s in (0.1, 10.0) for n in (0, 1)},
    ),
    (replay_view.observer, {"disco/0": small(change=ActionFlip(at=7))}),
    (replay_view.observer, {"dqn-cleared/0": dqn()}),
]


@pytest.mark.parametrize(("observer", "runs"), WATCHED)
def test_a_watched_lifetime_is_the_same_to_the_bit(
    observer: Observer, runs: Mapping[str, RunSpec], tmp_path: Path
) -> None:
    group = Group(runs, MOMENTS)
    found = watch(group, observer, Store(tmp_path))
    assert {name: science(run) for name, run in runs.items()} == found.science
    assert all(len(values) == len(MOMENTS) for values in found.seen.values())
    kept = Store(tmp_path).read(next(iter(runs.values())).id)
    assert set(kept.state) > {"params/flat"}


def meddling(lives: Mapping[str, Lifetime]) -> Look:
    """Look at parameters in a way that changes them."""

    def look(_: int) -> Arrays:
        [life] = lives.values()
        params = life.learner.carriers["params"].get()
        life.learner.carriers["params"].set({"flat": params["flat"] + np.float32(1e-3)})
        return params

    return look


def test_looking_that_changes_a_lifetime_is_found_out(tmp_path: Path) -> None:
    group, store = Group({"one": small()}, (5,)), Store(tmp_path)
    watch(group, trajectory_view.observer, store)
    with pytest.raises(RecordError, match="watched, it ended otherwise"):
        watch(group, meddling, store)
    watch(group, trajectory_view.observer, store)  # the record that was there is untouched


def test_what_was_seen_is_not_looked_at_twice(tmp_path: Path) -> None:
    view, store, folder = trajectory_view.VIEW, Store(tmp_path / "store"), tmp_path / "out"
    told: list[int] = []
    first = observe(view, SMALL, store, folder, report=told.append)
    assert told[-1] == instrumented_runs.total(view, SMALL) == 4 * SMALL.iterations
    assert sorted(set(told)) == list(range(1, told[-1] + 1))

    def blind(_: Mapping[str, Lifetime]) -> Look:
        raise AssertionError("looked at again")

    again = observe(replace(view, observer=blind), SMALL, Store(tmp_path / "none"), folder)
    for one, other in zip(first, again, strict=True):
        assert one.science == other.science
        assert (one.source, one.runtime) == (other.source, other.runtime)
        assert {k: v.tobytes() for k, v in one.seen.items()} == {
            k: v.tobytes() for k, v in other.seen.items()
        }
        [log], [same] = one.logs.values(), other.logs.values()
        assert log["score"].tobytes() == same["score"].tobytes()
    damaged = sorted((folder / KEPT).iterdir())[0]
    damaged.write_bytes(b"PK nothing")
    with pytest.raises(AssertionError, match="looked at again"):
        observe(replace(view, observer=blind), SMALL, store, folder)
    with pytest.raises(AssertionError, match="looked at again"):
        observe(replace(view, observer=blind, version=2), SMALL, store, folder)


def test_donors_are_lived_if_the_store_has_lost_them(tmp_path: Path) -> None:
    crossed = trajectory_view.stages(SMALL)[1][0]
    [run] = crossed.runs.values()
    found = watch(crossed, trajectory_view.observer, Store(tmp_path))
    [name] = crossed.runs
    donor = Store(tmp_path).read(run.donors[0].id).state["recurrent/h"]
    before = SMALL.first_update - 2  # the place of the last moment before the first update
    assert found.seen[f"{name}/h"][before].tobytes() == donor.tobytes()
    assert found.seen[f"{name}/h"][-1].tobytes() != donor.tobytes()


def test_the_default_learner_keeps_its_recurrent_state() -> None:
    assert isinstance(SMALL.learner, Disco)
    assert "recurrent" in SMALL.live(1.0, 0).kept
