"""Forks: a lifetime that begins in the middle of another's, and counts only its own part."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from learners.baseline_cases import SMALL as BASELINES
from learners.small import small_disco
from learners.test_open_ppo import SMALL as OPEN
from rulescope.assays.plan import iteration_seconds
from rulescope.core.arrays import bit_equal, unprefix
from rulescope.core.errors import RecordError, SpecError
from rulescope.envs.world_config import ActionFlip, Catch
from rulescope.learners.learner_config import LearnerSpec
from rulescope.lifetime import Lifetime
from rulescope.records import Record, Store
from rulescope.run_spec import (
    Fork,
    Freeze,
    Pin,
    PinSteps,
    Reset,
    RunSpec,
    canonical,
    checked,
    decode,
)
from rulescope.runner import find_or_make

LEARNERS: dict[str, LearnerSpec] = {
    **OPEN,
    "a2c": BASELINES["a2c"],
    "dqn": BASELINES["dqn"],
    "disco": small_disco(),
}
AT, ITERATIONS, STEPS = 4, 9, 6


def whole(name: str, **changes: Any) -> RunSpec:
    learner = LEARNERS[name]
    base = RunSpec(
        learner=learner,
        environment=Catch(rows=5, columns=5),
        iterations=ITERATIONS,
        log_every=1,
        steps=STEPS,
        keep=learner.CARRIERS,
        marks=(AT,),
    )
    return msgspec.structs.replace(base, **changes)


def fork(run: RunSpec, *interventions: Any, **changes: Any) -> RunSpec:
    changed = {"marks": (), "origin": Fork(run=run, at=AT), "interventions": interventions}
    return msgspec.structs.replace(run, **(changed | changes))


@cache
def completed(spec: RunSpec) -> Record:
    donors = {donor.id: completed(donor).state for donor in spec.donors}
    life = Lifetime(spec, donors=donors)
    life.run()
    return life.record()


def final(spec: RunSpec) -> dict[str, Any]:
    state = completed(spec).state
    return {name: a for name, a in state.items() if not name.startswith("mark.")}


@pytest.mark.parametrize("name", LEARNERS)
def test_a_fork_without_interventions_is_bit_identical_to_the_rest_of_the_run(name: str) -> None:
    run = whole(name, change=ActionFlip(at=6))
    assert bit_equal(final(run), final(fork(run)))


@pytest.mark.parametrize("name", ["small", "dqn"])
def test_a_mark_changes_nothing_but_the_record(name: str) -> None:
    assert bit_equal(final(whole(name)), final(whole(name, marks=())))
    assert bit_equal(completed(whole(name)).log, completed(whole(name, marks=())).log)


def test_a_fork_counts_only_its_own_part() -> None:
    run = whole("small", remainder=3)
    rest, log = fork(run), completed(fork(run)).log
    each = 2 * STEPS
    assert run.interactions == ITERATIONS * each + 3 * 2
    assert rest.interactions == (ITERATIONS - AT) * each + 3 * 2
    assert log["iteration"].tolist() == [5, 6, 7, 8, 9]
    assert log["steps"].tolist() == [each, 2 * each, 3 * each, 4 * each, rest.interactions]
    assert completed(run).log["steps"][-1] == run.interactions
    assert log["episodes"][0] < completed(run).log["episodes"][AT]


def test_the_budgets_of_the_published_audit() -> None:
    run = RunSpec(iterations=56, lanes=64, steps=128, remainder=82, marks=(28,))
    assert run.interactions == 464_000
    rest = msgspec.structs.replace(run, marks=(), origin=Fork(run=run, at=28))
    assert rest.interactions == 234_624
    assert run.lanes * run.steps * 28 == 229_376


def test_an_episode_under_way_at_the_fork_is_counted_whole() -> None:
    run = whole("small", environment=Catch(rows=5, columns=5, dense=True))
    assert run.steps % 4 != 0  # an episode has four
    log, rest = completed(run).log, completed(fork(run)).log
    sums = log["mean_return"] * log["episodes"]
    expected = (sums[-1] - sums[AT - 1]) / rest["episodes"][-1]
    assert rest["mean_return"][-1] == pytest.approx(expected, abs=1e-9)


def test_reset_once_forgets_the_carry_and_nothing_else() -> None:
    run = whole("small")
    spec = fork(run, Reset(carrier="recurrent", at=AT))
    life = Lifetime(spec, donors={run.id: completed(run).state})
    there = unprefix(f"mark.{AT}", completed(run).state)
    mine = life.learner.save()
    for name, array in unprefix("learner", there).items():
        if name.startswith("recurrent/"):
            assert array.any()
            assert not mine[name].any()
        else:
            np.testing.assert_array_equal(array, mine[name])
    life.run()
    assert not bit_equal(final(run), final(spec))
    assert life.learner.carriers["schedule"].get()["steps"] == ITERATIONS * 6


def test_a_reset_within_a_run_ends_as_a_fork_with_that_reset_to_the_bit() -> None:
    once = Reset(carrier="recurrent", at=AT)
    run = whole("small")
    forked = final(fork(run, once))
    within = final(msgspec.structs.replace(run, marks=(), interventions=(once,)))
    assert bit_equal(forked, within)


def test_pins_and_freezes_act_from_the_fork_on() -> None:
    run = whole("small")
    pinned = Lifetime(
        fork(run, Pin(carrier="recurrent")), donors={run.id: completed(run).state}
    ).learner
    assert not any(a.any() for a in pinned.carriers["recurrent"].get().values())
    frozen = final(fork(run, Freeze(carrier="recurrent", at=AT)))
    there = unprefix(f"mark.{AT}/learner", completed(run).state)
    assert bit_equal(unprefix("recurrent", frozen), unprefix("recurrent", there))


@pytest.mark.parametrize("stop", [AT, AT + 1, AT + 3])
def test_stopped_and_resumed_a_fork_is_uninterrupted(stop: int) -> None:
    run = whole("large")
    spec = fork(run, Reset(carrier="recurrent", at=AT), remainder=5)
    donors = {run.id: completed(run).state}
    first = Lifetime(spec, donors=donors)
    first.run(until=stop)
    again = Lifetime(spec, donors=donors)
    again.load(first.save())
    again.run()
    assert again.record().manifest.science_hash == completed(spec).manifest.science_hash


def test_marks_survive_a_checkpoint() -> None:
    run = whole("small", marks=(2, AT))
    first = Lifetime(run)
    first.run(until=3)
    again = Lifetime(run)
    again.load(first.save())
    again.run()
    assert again.record().manifest.science_hash == completed(run).manifest.science_hash


def test_the_store_finds_or_makes_the_origin_first(tmp_path: Any) -> None:
    run, store = whole("small"), Store(tmp_path)
    spec = fork(run, Reset(carrier="recurrent", at=AT))
    record = find_or_make(spec, store)
    assert run.id in store
    assert record.manifest.parents == (run.id,)
    assert decode(canonical(spec)) == spec
    assert store.read(spec.id).spec == spec


def test_how_long_a_fork_takes_can_be_estimated_without_its_origin() -> None:
    run = whole("adam")
    pace = iteration_seconds(fork(run))
    assert 0.0 < pace < 60.0


def test_a_fork_of_a_fork_continues() -> None:
    run = whole("dqn")
    second = fork(run, marks=(6,))
    third = msgspec.structs.replace(second, marks=(), origin=Fork(run=second, at=6))
    assert bit_equal(final(run), final(third))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"seed": 3}, "origin.run.seed: a fork must have the same seed"),
        ({"iterations": 8}, "origin.run.iterations: a fork must have the same iterations"),
        ({"scale": 2.0}, "origin.run.scale: a fork must have the same scale"),
        ({"marks": (AT,)}, "marks: 4 is not between 4 and the last iteration (9)"),
        ({"interventions": (Reset(carrier="recurrent", at=2),)}, "at: 2 is before the fork (4)"),
        ({"log_every": 20}, "log_every: 20 is more than iterations 4 to 9, so nothing would be"),
    ],
    ids=str,
)
def test_an_invalid_fork_is_reported(changes: dict[str, Any], problem: str) -> None:
    spec = msgspec.structs.replace(fork(whole("small")), **changes)
    with pytest.raises(SpecError) as raised:
        checked(spec)
    assert problem in str(raised.value)


def test_the_origin_must_keep_the_moment() -> None:
    run = whole("small", marks=())
    with pytest.raises(SpecError, match=r"origin\.run\.marks: the run must keep 4"):
        checked(fork(run))
    with pytest.raises(RecordError, match="has no record: run it first"):
        Lifetime(fork(whole("small")))


@pytest.mark.parametrize("marks", [(0,), (9,), (3, 3)], ids=str)
def test_marks_are_moments_within_the_lifetime(marks: tuple[int, ...]) -> None:
    with pytest.raises(SpecError, match="marks"):
        checked(whole("small", marks=marks))


# --- pins after every step ----------------------------------------------------------------------


def test_pinned_steps_see_nothing_but_zero() -> None:
    spec = whole("small", marks=(), interventions=(PinSteps(carrier="recurrent"),))
    life = Lifetime(spec)
    optimiser = life.learner._optimiser.rule  # type: ignore[attr-defined]
    seen: list[bool] = []
    update = optimiser.update

    def watched(*given: Any) -> Any:
        seen.append(bool(optimiser.carry.any()))
        return update(*given)

    optimiser.update = watched
    life.run()
    assert len(seen) == ITERATIONS * 6
    assert not any(seen)


def test_the_three_cadences_are_three_lifetimes() -> None:
    ends = {
        name: final(whole("small", marks=(), interventions=treatments))["params/flat"].tobytes()
        for name, treatments in {
            "live": (),
            "iteration": (Pin(carrier="recurrent"),),
            "step": (PinSteps(carrier="recurrent"),),
        }.items()
    }
    assert len(set(ends.values())) == 3


def test_learners_of_one_step_cannot_be_pinned_within_it() -> None:
    spec = whole("a2c", marks=(), interventions=(PinSteps(carrier="moments"),))
    with pytest.raises(SpecError, match="learner 'a2c' can be pinned after iterations only"):
        checked(spec)
