"""Runs with equal first iterations: where they differ, and that a branch is bit-identical."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from learners.baseline_cases import SMALL as BASELINES
from learners.small import CHANNEL_SIZES, small_disco, small_spec
from learners.test_open_ppo import SMALL as OPEN
from rulescope.core import runtime
from rulescope.core.arrays import Arrays, bit_equal, digest
from rulescope.envs.world_config import (
    ActionFlip,
    Boundary,
    CatchStream,
    DeepSea,
    Gymnasium,
    MinAtar,
    ObservationFlip,
    RewardMove,
    RewardSign,
    Tracking,
)
from rulescope.learners.baseline_config import RandomPolicy
from rulescope.learners.learner_config import LearnerSpec
from rulescope.lifetime import Lifetime
from rulescope.records import Record, Store
from rulescope.records.branch_checkpoints import Branch, BranchCheckpoints
from rulescope.records.record import SharedPart
from rulescope.run_spec import (
    Ablate,
    Evaluation,
    Fork,
    Freeze,
    Hold,
    Intervention,
    Permute,
    Pin,
    Placebo,
    Reset,
    RunSpec,
    Transplant,
    checked,
)
from rulescope.runner import Sharing, find_or_make
from rulescope.shared_prefix import branch_of, can_share, list_branch_points, truncate

AT = 8
"""The iteration of most changes and interventions; it is not a multiple of ``log_every``."""
LEARNERS: dict[str, LearnerSpec] = {
    "random rule": small_disco(),
    "sprout": small_disco(rule="sprout"),
    "random": RandomPolicy(),
    **BASELINES,
    **OPEN,
}


def replace(spec: RunSpec, **changes: Any) -> RunSpec:
    return checked(msgspec.structs.replace(spec, **changes))


def short(name: str = "a2c", *interventions: Intervention, **changes: Any) -> RunSpec:
    base = small_spec(learner=LEARNERS[name], iterations=14, interventions=interventions)
    return replace(base, **({"keep": LEARNERS[name].CARRIERS} | changes))


@cache
def completed(spec: RunSpec) -> Record:
    life = make(spec)
    life.run()
    return life.record()


def make(spec: RunSpec) -> Lifetime:
    return Lifetime(spec, donors={donor.id: completed(donor).state for donor in spec.donors})


def shared_iterations(one: RunSpec, other: RunSpec) -> int:
    """Return the last iteration that both have in common; 0 if there is none."""
    points = list_branch_points(one) | list_branch_points(other)
    last = min(one.iterations, other.iterations)
    equal = [t for t in points if t < last and branch_of(one, t) == branch_of(other, t)]
    return max(equal, default=0)


def check_branch(trunk: RunSpec, run: RunSpec, iteration: int) -> None:
    """Check that ``run`` from the branch of ``trunk`` is bit-identical to itself alone."""
    assert shared_iterations(trunk, run) == iteration
    first = make(trunk)
    first.run(until=iteration)
    branch = first.save_branch()
    rest = make(run)
    assert rest.load_branch(branch)
    alone = make(run)
    alone.run(until=iteration)
    assert bit_equal(comparable(rest.save()), comparable(alone.save()))
    rest.run()
    alone.run()
    assert bit_equal(comparable(rest.save()), comparable(alone.save()))
    record = rest.record()
    assert record.manifest.science_hash == alone.record().manifest.science_hash
    assert bit_equal(record.log, alone.record().log)
    assert bit_equal(record.state, alone.record().state)
    assert record.manifest.inherited == alone.record().manifest.inherited
    assert record.manifest.shared == SharedPart(trunk.id, iteration)
    assert alone.record().manifest.shared is None


def comparable(checkpoint: Arrays) -> Arrays:
    """Return a checkpoint without times and without the origin of its first iterations."""
    left_out = ("loop/seconds", "loop/started", "shared/run", "shared/iterations")
    return {name: array for name, array in checkpoint.items() if name not in left_out}


# Bit equality


@pytest.mark.parametrize("name", LEARNERS)
def test_worlds_that_change_share_the_iterations_before_the_change(name: str) -> None:
    plain = short(name)
    for change in (ActionFlip(at=AT), RewardMove(at=AT), RewardSign(at=AT), ObservationFlip(at=AT)):
        check_branch(plain, replace(plain, change=change), AT)
    flipped, moved = (replace(plain, change=kind(at=AT)) for kind in (ActionFlip, RewardMove))
    check_branch(flipped, plain, AT)
    check_branch(flipped, moved, AT)


@pytest.mark.parametrize(
    "world",
    [
        CatchStream(rows=5, columns=5),
        DeepSea(depth=4),
        Tracking(columns=5),
        MinAtar(game="breakout"),
        MinAtar(game="freeway"),
    ],
    ids=repr,
)
def test_the_other_worlds_branch_as_well(world: Any) -> None:
    disco = small_disco(agent=CHANNEL_SIZES) if isinstance(world, MinAtar) else small_disco()
    plain = short("random rule", learner=disco, environment=world)
    check_branch(plain, replace(plain, change=ActionFlip(at=AT)), AT)


def test_wrapped_worlds_branch_as_well() -> None:
    for boundary in (Boundary("masked"), Boundary("synthetic", interval=7)):
        plain = short("a2c-popart", boundary=boundary, scale=0.1)
        check_branch(plain, replace(plain, change=RewardMove(at=AT)), AT)


@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "random"])
def test_an_intervention_leaves_the_iterations_before_it_as_they_are(name: str) -> None:
    for carrier in LEARNERS[name].CARRIERS:
        items: list[Intervention] = [Freeze(carrier, AT), Reset(carrier, AT)]
        if carrier != "replay":
            items += [Permute(carrier, AT, "natural"), Permute(carrier, AT, "clamp")]
        for item in items:
            check_branch(short(name), short(name, item), AT - 1)
        check_branch(short(name, items[0]), short(name), AT - 1)


def test_a_frozen_arm_before_a_change_branches_from_the_live_one() -> None:
    freeze = Freeze("recurrent", AT)
    live = short("random rule", change=ActionFlip(at=11))
    frozen = short("random rule", freeze, change=ActionFlip(at=11))
    moved = short("random rule", freeze, change=RewardMove(at=11))
    check_branch(live, frozen, AT - 1)
    check_branch(frozen, moved, 11)
    check_branch(live, moved, AT - 1)


def test_a_replay_that_is_cleared_at_the_change_branches_before_it() -> None:
    flipped = short("dqn", change=ActionFlip(at=AT))
    cleared = short("dqn", Reset("replay", AT), change=ActionFlip(at=AT))
    check_branch(flipped, cleared, AT - 1)
    check_branch(cleared, short("dqn", Reset("replay", AT)), AT)


def test_interventions_that_act_already_keep_their_state_whatever_their_place() -> None:
    hold, freeze, later = Hold("recurrent"), Freeze("averages", 3), Freeze("params", AT)
    trunk = short("random rule", hold, freeze)
    check_branch(trunk, short("random rule", later, hold, freeze), AT - 1)
    check_branch(trunk, short("random rule", hold, later, freeze), AT - 1)
    check_branch(short("random rule", later, hold, freeze), trunk, AT - 1)
    check_branch(trunk, replace(trunk, change=RewardSign(at=AT)), AT)


def test_donors_count_from_the_moment_they_are_used() -> None:
    donors = tuple(short("random rule", seed=seed, scale=0.1) for seed in (5, 6, 7))
    plain = short("random rule")
    for which in ("principal", "random", "complement"):
        item = Ablate("recurrent", donors, 1, which, AT, "clamp")
        check_branch(plain, short("random rule", item), AT - 1)
    clamp = Transplant("recurrent", donors[0], "clamp")
    given = short("random rule", clamp)
    check_branch(given, replace(given, change=ActionFlip(at=AT)), AT)
    assert shared_iterations(plain, given) == 0
    life = make(given)
    life.run(until=AT)
    branch = life.save_branch()
    changed = {donors[0].id: {**completed(donors[0]).state, "averages/x": np.zeros(1)}}
    other = Lifetime(replace(given, change=ActionFlip(at=AT)), donors=changed)
    assert not other.load_branch(branch), "a donor that was run elsewhere"


def test_what_happens_at_the_end_does_not_matter_before() -> None:
    plain = short("a2c")
    last = plain.iterations - 1
    check_branch(plain, replace(plain, remainder=3), last)
    check_branch(replace(plain, remainder=3), replace(plain, keep=("moments",)), last)
    check_branch(plain, replace(plain, evaluation=Evaluation(lanes=2, steps=10)), last)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_shorter_run_is_shared_unless_the_learner_has_a_schedule(name: str) -> None:
    longer, shorter = short(name), short(name, iterations=11)
    if LEARNERS[name].scheduled:
        assert shared_iterations(longer, shorter) == 0
    else:
        check_branch(longer, shorter, 10)
        check_branch(shorter, longer, 10)


def test_only_learners_without_a_schedule_ignore_the_length_of_the_run() -> None:
    for name, learner in LEARNERS.items():
        states = [make(short(name, iterations=length)) for length in (14, 200)]
        for life in states:
            life.run(until=12)
        one, other = (digest({**life.learner.save(), **life.world.save()}) for life in states)
        if not learner.scheduled:
            assert one == other, name


@pytest.mark.parametrize("name", ["random rule", "dqn", "small"])
def test_forks_of_one_run_branch_from_each_other(name: str) -> None:
    whole = short(name, marks=(4,))
    fork = replace(whole, marks=(), origin=Fork(run=whole, at=4))
    carrier = LEARNERS[name].CARRIERS[0]
    check_branch(fork, replace(fork, interventions=(Reset(carrier, AT),)), AT - 1)
    # A marked state shows whether the world will change.
    check_branch(whole, replace(whole, interventions=(Freeze(carrier, AT),)), AT - 1)
    assert shared_iterations(whole, replace(whole, change=ActionFlip(at=AT))) == 3
    check_branch(whole, replace(whole, change=ActionFlip(at=AT)), 3)


def test_a_branch_of_a_branch_is_a_branch() -> None:
    plain = short("dqn")
    frozen = short("dqn", Freeze("target", AT))
    both = short("dqn", Freeze("target", AT), change=ActionFlip(at=11))
    first = make(plain)
    first.run(until=AT - 1)
    second = make(frozen)
    assert second.load_branch(first.save_branch())
    second.run(until=11)
    third = make(both)
    assert third.load_branch(second.save_branch())
    third.run()
    record = third.record()
    assert record.manifest.science_hash == completed(both).manifest.science_hash
    assert record.manifest.shared == SharedPart(frozen.id, 11)


def test_the_time_and_the_origin_of_shared_iterations_survive_a_checkpoint() -> None:
    trunk, run = short("a2c"), short("a2c", change=ActionFlip(at=AT))
    first = make(trunk)
    first.run(until=AT)
    branch = first.save_branch()
    second = make(run)
    assert second.load_branch(branch)
    second.run(until=AT + 2)
    third = make(run)
    saved = second.save()
    assert third.accepts(saved)
    third.load(saved)
    third.run()
    manifest = third.record().manifest
    assert manifest.shared == SharedPart(trunk.id, AT)
    assert manifest.seconds > float(saved["loop/seconds"]) > float(branch["loop/seconds"]) > 0.0
    third.load(make(run).save())
    third.run()
    assert third.record().manifest.shared is None


# Which iterations are shared


def states_of(spec: RunSpec) -> list[str]:
    """Return the digest of everything that a run has, and has logged, after each iteration."""
    life, found = make(spec), []
    while not life.finished:
        life.advance()
        state = life.learner.save() | {"observation": life._observation}
        world = {f"world/{k}": v for k, v in life.world.save().items() if k != "change.steps"}
        log = {f"log/{k}": v for k, v in life.log().items()}
        meters = {f"meters/{k}": v for k, v in life.stats.save().items()}
        found.append(digest(state | world | log | meters))
    return found


def test_no_pair_of_runs_differs_before_the_iteration_up_to_which_it_is_shared() -> None:
    specs = [
        short("a2c"),
        short("a2c", iterations=10),
        short("a2c", seed=1),
        short("a2c", world_seed=1),
        short("a2c", scale=0.1),
        short("a2c", log_every=2),
        short("a2c", lanes=3),
        short("a2c", steps=7),
        short("a2c", boundary=Boundary("masked")),
        short("a2c", Pin("moments")),
        short("a2c", Pin("moments"), change=ActionFlip(at=AT)),
        short("a2c", Pin("moments"), Freeze("params", AT)),
        short("a2c", Freeze("params", 0)),
        short("a2c", Freeze("params", 1)),
        short("a2c", Freeze("params", AT)),
        short("a2c", Freeze("params", AT), change=RewardSign(at=AT)),
        short("a2c", Freeze("params", AT), Reset("moments", 11)),
        short("a2c", Reset("moments", 11), Freeze("params", AT)),
        short("a2c", Hold("params")),
        short("a2c", Placebo("params")),
        *(short("a2c", change=ActionFlip(at=at)) for at in (0, 1, AT)),
        short("a2c", change=RewardMove(at=11)),
    ]
    states = {spec.id: states_of(spec) for spec in specs}
    shared = 0
    for one, other in combinations(specs, 2):
        t = shared_iterations(one, other)
        shared += t > 0
        assert states[one.id][:t] == states[other.id][:t]
    assert shared > 30


def test_runs_share_nothing_if_anything_else_differs() -> None:
    plain = short("a2c")
    others: list[dict[str, Any]] = [
        {"seed": 1},
        {"world_seed": 1},
        {"log_every": 2},
        {"lanes": 3},
        {"steps": 7},
        {"scale": 0.5},
        {"boundary": Boundary("masked")},
        {"learner": LEARNERS["ppo"]},
        {"environment": Tracking(columns=5)},
        {"interventions": (Pin("moments"),)},
        {"interventions": (Placebo("moments"),)},
        {"interventions": (Freeze("moments", 0),)},
        {"interventions": (Freeze("moments", 1),)},
        {"change": ActionFlip(at=0)},
    ]
    for changes in others:
        assert shared_iterations(plain, replace(plain, **changes)) == 0, changes


def test_truncating_twice_is_truncating_once() -> None:
    spec = short("a2c", Freeze("params", AT), Reset("moments", 11), change=ActionFlip(at=9))
    for later in range(1, 14):
        for earlier in range(1, later + 1):
            assert truncate(truncate(spec, later), earlier) == truncate(spec, earlier)


def test_the_state_of_another_program_is_another_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    before = branch_of(short("a2c"), AT)
    assert before == branch_of(short("a2c", change=ActionFlip(at=AT)), AT)
    monkeypatch.setattr(runtime, "program_identity", lambda: {"sha256": "0" * 64})
    assert branch_of(short("a2c"), AT) != before


def test_runs_with_code_of_other_packages_run_alone() -> None:
    assert can_share(short("a2c"))
    assert not can_share(short("a2c", environment=Gymnasium(id="CartPole-v1")))


def test_a_branch_fits_no_other_run_program_or_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    life = make(short("a2c"))
    life.run(until=AT)
    branch = life.save_branch()
    run = short("a2c", change=ActionFlip(at=AT))
    assert not make(replace(run, seed=1)).load_branch(branch)
    assert not make(short("a2c", Freeze("params", AT))).load_branch(branch)
    assert make(run).load_branch(branch)
    other = make(run)
    other._runtime = other._runtime | {"cpu": "another"}
    assert not other.load_branch(branch)
    monkeypatch.setattr("rulescope.core.runtime._source", lambda: {"sha256": "0" * 64})
    assert not make(run).load_branch(branch)


# In a store


def leave_branch(store: Store, trunk: RunSpec, iteration: int, *users: RunSpec) -> Branch:
    sharing = Sharing(BranchCheckpoints(store), users={iteration: tuple(user.id for user in users)})
    find_or_make(trunk, store, sharing=sharing)
    return branch_of(trunk, iteration)


def first_iteration(store: Store, run: RunSpec, start: int) -> int:
    """Make the record of ``run`` from a branch; return the first iteration that was executed."""
    executed: list[int] = []
    sharing = Sharing(BranchCheckpoints(store), start=start)
    record = find_or_make(
        run, store, report=lambda progress: executed.append(progress.iteration), sharing=sharing
    )
    assert record.manifest.science_hash == completed(run).manifest.science_hash
    return executed[0]


def test_a_run_in_a_store_starts_from_a_branch(tmp_path: Path) -> None:
    store, run = Store(tmp_path), short("a2c", change=ActionFlip(at=AT))
    branch = leave_branch(store, short("a2c"), AT, run)
    assert (tmp_path / "checkpoints" / branch.file_name).exists()
    assert BranchCheckpoints(store).list_branches() == {branch}
    assert first_iteration(store, run, AT) == AT + 1
    assert store.manifest(run.id).shared == SharedPart(short("a2c").id, AT)


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "another run's"])
def test_without_a_valid_branch_a_run_starts_from_the_beginning(
    damage: str, tmp_path: Path
) -> None:
    store, run = Store(tmp_path), short("a2c", change=ActionFlip(at=AT))
    branch = leave_branch(store, short("a2c"), AT, run)
    path = tmp_path / "checkpoints" / branch.file_name
    content = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    else:
        other = leave_branch(store, short("a2c", seed=1), AT, run)
        (tmp_path / "checkpoints" / other.file_name).replace(path)
    assert first_iteration(store, run, AT) == 1
    assert store.manifest(run.id).shared is None
    assert not (tmp_path / "quarantine").exists()


def test_a_checkpoint_of_the_run_itself_comes_first(tmp_path: Path) -> None:
    store, run = Store(tmp_path), short("a2c", change=ActionFlip(at=AT))
    leave_branch(store, short("a2c"), AT, run)
    life = make(run)
    life.run(until=AT + 2)
    store.save_checkpoint(run.id, life.save())
    assert first_iteration(store, run, AT) == AT + 3


def test_a_branch_that_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, trunk = Store(tmp_path), short("a2c")
    before = Store.replace_file

    def fail(self: Store, path: Path, content: bytes) -> None:
        if "checkpoints" in path.parts:
            (tmp_path / "file").touch()
            path = tmp_path / "file" / "below"
        before(self, path, content)

    monkeypatch.setattr(Store, "replace_file", fail)
    leave_branch(store, trunk, AT, short("a2c", change=ActionFlip(at=AT)))
    assert trunk.id in store
    assert "no branch checkpoint for other runs" in caplog.text
