"""Which runs of a campaign start from the state of another one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from learners.small import small_spec
from rulescope.assays import ASSAYS
from rulescope.engine import resources
from rulescope.engine.branch_plan import LEAST, count_shared, plan_branches, shared_fraction
from rulescope.engine.worker_pool import EngineError
from rulescope.envs.world_config import ActionFlip, RewardMove
from rulescope.learners.baseline_config import A2C
from rulescope.run_spec import Ablate, Freeze, RunSpec, with_donors
from rulescope.shared_prefix import branch_of

LENGTH, SWITCH, FROZEN = 60, 40, 20


def run(*interventions: Any, **changes: Any) -> RunSpec:
    return small_spec(learner=A2C(), iterations=LENGTH, interventions=interventions, **changes)


LIVE = [run(change=change) for change in (None, ActionFlip(at=SWITCH), RewardMove(at=SWITCH))]
STILL = [msgspec.structs.replace(spec, interventions=(Freeze("params", FROZEN),)) for spec in LIVE]


def by_id(*specs: RunSpec) -> dict[str, RunSpec]:
    return {spec.id: spec for spec in specs}


def test_each_run_starts_from_the_last_state_that_it_shares_with_one_before_it() -> None:
    plan = plan_branches(by_id(*LIVE, *STILL))
    ids = {spec.id: spec for spec in (*LIVE, *STILL)}
    assert {run: branch.iteration for run, branch in plan.starts.items()} == {
        LIVE[1].id: SWITCH,
        LIVE[2].id: SWITCH,
        STILL[0].id: FROZEN - 1,
        STILL[1].id: SWITCH,
        STILL[2].id: SWITCH,
    }
    assert plan.parents == {
        LIVE[1].id: LIVE[0].id,
        LIVE[2].id: LIVE[0].id,
        STILL[0].id: LIVE[0].id,
        STILL[1].id: STILL[0].id,
        STILL[2].id: STILL[0].id,
    }
    assert plan.users(LIVE[0].id) == {
        SWITCH: (LIVE[1].id, LIVE[2].id),
        FROZEN - 1: (STILL[0].id,),
    }
    assert plan.users(LIVE[1].id) == {}
    assert plan.groups == [list(ids)]
    for name, branch in plan.starts.items():
        parent = ids[plan.parents[name]]
        assert branch == branch_of(ids[name], branch.iteration)
        assert branch == branch_of(parent, branch.iteration)


@pytest.mark.parametrize("first", range(6))
def test_the_order_of_the_runs_does_not_change_how_much_is_shared(first: int) -> None:
    specs = [*LIVE, *STILL]
    turned = specs[first:] + specs[:first]
    everything = 4 * SWITCH + FROZEN - 1
    assert sum(count_shared(turned).values()) == everything
    assert sum(count_shared(reversed(turned)).values()) == everything


def test_a_run_is_behind_no_run_that_comes_later() -> None:
    for specs in ([*LIVE, *STILL], [*STILL, *LIVE]):
        plan, place = plan_branches(by_id(*specs)), [spec.id for spec in specs]
        for name, parent in plan.parents.items():
            assert place.index(parent) < place.index(name)


def test_a_run_does_not_wait_for_donors_of_others() -> None:
    donors = tuple(run(seed=seed, keep=("params",)) for seed in (5, 6))
    ablated = run(Ablate("params", donors, 1, "principal", 30, "natural"))
    plan = plan_branches(with_donors([ablated, LIVE[0]]))
    assert plan.parents == {ablated.id: LIVE[0].id}
    assert plan.starts[ablated.id].iteration == 29


def test_a_few_iterations_are_not_shared() -> None:
    for at in (LEAST, LEAST + 1):
        frozen = run(Freeze("params", at))
        assert count_shared([LIVE[0], frozen]) == ({} if at <= LEAST else {frozen.id: LEAST})


def test_a_checkpoint_of_an_earlier_campaign_is_used() -> None:
    # The run that left it is not part of the plan, nor is its intervention.
    branch = branch_of(LIVE[1], 33)
    plan = plan_branches(by_id(LIVE[1], LIVE[2]), {branch, branch_of(run(seed=1), 50)})
    assert plan.starts == {
        LIVE[1].id: branch,
        LIVE[2].id: branch_of(LIVE[1], SWITCH),
    }
    assert plan.parents == {LIVE[2].id: LIVE[1].id}
    alone = plan_branches(by_id(LIVE[2]), {branch})
    assert (alone.starts, alone.parents) == ({LIVE[2].id: branch}, {})


def test_the_disk_must_have_room_for_branch_checkpoints(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = [*LIVE, *STILL]
    each = resources.estimate(LIVE[0])
    room = 6 * each.record + 2 * each.checkpoint + resources.RESERVE
    monkeypatch.setattr(resources, "free_disk", lambda _: room + 3 * each.checkpoint)
    resources.require(specs, 1, tmp_path)
    monkeypatch.setattr(resources, "free_disk", lambda _: room + 3 * each.checkpoint - 1)
    with pytest.raises(EngineError, match="of disk at most"):
        resources.require(specs, 1, tmp_path)


def test_the_published_grid_of_change_saves_more_than_a_third() -> None:
    assay = ASSAYS["E3"]
    specs = with_donors(run for cell in assay.grid(assay.budget("paper")) for run in cell.runs)
    saved = sum(count_shared(specs.values()).values())
    total = sum(spec.iterations for spec in specs.values())
    assert shared_fraction(specs.values()) == saved / total > 1 / 3
    assert shared_fraction([]) == 0.0
