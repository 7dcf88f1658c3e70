"""The cost of lifetimes, from the pace of records."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from claims.made_up_evidence import scored
from learners.small import small_spec
from rulescope.claims.compute_cost import UNKNOWN_PACE, Pace
from rulescope.learners.baseline_config import A2C, RandomPolicy
from rulescope.records import Store

SPEC = small_spec(iterations=10, log_every=5)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_without_records_every_iteration_takes_the_same_time() -> None:
    long = msgspec.structs.replace(SPEC, iterations=600)
    assert Pace(None).minutes([long, long]) == pytest.approx(2 * 600 * UNKNOWN_PACE / 60)
    assert Pace(None).minutes([]) == 0.0


def test_the_pace_is_the_median_of_records_of_the_same_kind(store: Store) -> None:
    for seed, seconds in enumerate((20.0, 30.0, 1000.0)):
        store.commit(scored(msgspec.structs.replace(SPEC, seed=seed), 0.5, seconds))
    longer = msgspec.structs.replace(SPEC, seed=9, iterations=40)
    assert Pace(store).minutes([longer]) == pytest.approx(40 * 3.0 / 60)


def test_another_world_of_the_kind_is_next_best_and_another_learner_is_not(store: Store) -> None:
    store.commit(scored(SPEC, 0.5, 20.0))
    scaled = msgspec.structs.replace(SPEC, scale=10.0)
    other = A2C() if not isinstance(SPEC.learner, A2C) else RandomPolicy()
    stranger = msgspec.structs.replace(SPEC, learner=other)
    assert Pace(store).minutes([scaled]) == pytest.approx(10 * 2.0 / 60)
    assert Pace(store).minutes([stranger]) == pytest.approx(10 * UNKNOWN_PACE / 60)


def test_a_damaged_record_has_no_pace(store: Store) -> None:
    store.commit(scored(SPEC, 0.5, 20.0))
    for path in store.folder(SPEC.id).glob("*.json"):
        path.write_bytes(b"{")
    assert Pace(store).minutes([SPEC]) == pytest.approx(10 * UNKNOWN_PACE / 60)
