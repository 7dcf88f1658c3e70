"""The loop of a campaign, with an engine that makes records up."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from claims.made_up_evidence import claim_of, scored
from rulescope.assays.recorded_plans import recorded_budgets
from rulescope.claims import replication
from rulescope.claims.ledger import Claim
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.claims.replication import Replication
from rulescope.claims.replication_queue import Step
from rulescope.claims.verdicts import Verdict
from rulescope.engine.campaign import Campaign
from rulescope.engine.execution import Execution
from rulescope.records import Store
from rulescope.run_spec import RunSpec, Transplant

COLD = claim_of("matched-prior-beats-a-cold-start")
"""Two arms: live, and clamped to the state of a matched donor."""
DEAD = claim_of("cross-donor-dead-when-clamped")
Score = Callable[[RunSpec], float]


def clamped(spec: RunSpec) -> bool:
    return any(isinstance(each, Transplant) and each.mode == "clamp" for each in spec.interventions)


def better(spec: RunSpec) -> float:
    return 0.9 if clamped(spec) else 0.5


def noise(spec: RunSpec) -> float:
    return 0.9 if clamped(spec) == (spec.seed % 2 == 0) else 0.5


@dataclass
class FakeEngine:
    """Puts a made-up record of every run into the store; a second of its clock each."""

    score: Score = better
    fails: Callable[[RunSpec], bool] = lambda _: False
    vanishes: Callable[[RunSpec], bool] = lambda _: False
    seconds: float = 0.0
    steps: list[list[RunSpec]] = field(default_factory=list)

    def run_missing(
        self,
        missing: Collection[RunSpec],
        store: Store,
        _: Execution,
        *,
        name: str,
        report: Callable[[Campaign], None],
    ) -> dict[str, str]:
        assert name.startswith("replicate ")
        self.steps.append(list(missing))
        failed = {}
        for spec in missing:
            self.seconds += 1.0
            if self.fails(spec):
                failed[spec.id] = "made up"
            elif not self.vanishes(spec):
                store.commit(scored(spec, self.score(spec)))
            report(Campaign(total=1))
        return failed


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine()
    monkeypatch.setattr(replication, "run_missing", fake.run_missing)
    monkeypatch.setattr(replication, "require_runnable", lambda *_: None)
    monkeypatch.setattr(replication, "time", SimpleNamespace(monotonic=lambda: fake.seconds))
    return fake


@dataclass
class Watch:
    """What a campaign reported."""

    started: list[Step] = field(default_factory=list)
    finished: list[list[Verdict]] = field(default_factory=list)

    def run(self, campaign: Replication) -> bool:
        while (step := campaign.next_step()) is not None:
            self.started.append(step)
            campaign.run_step(step, lambda _: None)
            self.finished.append(campaign.verdicts())
        return campaign.complete


def campaign(root: Path, *claims: Claim, deadline: float | None = None) -> Replication:
    return Replication(claims, Store(root), Execution(workers=1), deadline)


def word(found: Replication) -> str:
    [verdict] = found.verdicts()
    return verdict.word


def queue_of(found: Replication) -> list[tuple[str, int, list[str]]]:
    return [(step.verdict.claim.id, step.look, list(step.missing)) for step in found.queue()]


def test_a_campaign_runs_whole_seed_blocks_until_the_claim_is_decided(
    tmp_path: Path, engine: FakeEngine
) -> None:
    found, watch = campaign(tmp_path, COLD), Watch()
    assert watch.run(found)
    assert word(found) == "reproduced"
    assert [step.look for step in watch.started] == [6]
    [specs] = engine.steps
    planned = set(RecordEvidence(None).runs(COLD, 6))
    assert planned <= {spec.id for spec in specs}
    assert len(specs) == 3 * 6  # two arms and a donor of each seed
    [[verdict]] = watch.finished
    assert (verdict.word, verdict.n) == ("reproduced", 6)
    assert not found.failed
    assert found.queue() == []


def test_an_undecided_claim_is_given_up_at_its_cap(tmp_path: Path, engine: FakeEngine) -> None:
    engine.score = noise
    found, watch = campaign(tmp_path, COLD), Watch()
    assert watch.run(found)
    [verdict] = found.verdicts()
    assert (verdict.word, verdict.n, verdict.at_cap) == ("undecided", 27, True)
    looks = [step.look for step in watch.started]
    assert looks == sorted(set(looks))
    assert looks[-1] == 27
    ran = [spec.id for step in engine.steps for spec in step]
    assert len(ran) == len(set(ran)) == 3 * 27


def test_a_campaign_stops_at_its_deadline_and_the_next_one_continues(
    tmp_path: Path, engine: FakeEngine
) -> None:
    before = queue_of(campaign(tmp_path / "store", COLD))  # of a store that is not there yet
    first, watch = campaign(tmp_path / "store", COLD, deadline=7.0), Watch()
    assert not watch.run(first)
    assert engine.seconds == 7.0
    assert len(watch.finished) == 1
    done = set(first.store.ids())
    assert len(done) == 7
    left = queue_of(campaign(tmp_path / "store", COLD))
    assert left[0][:2] == before[0][:2]
    assert left[0][2] == [key for key in before[0][2] if key not in done]
    again = campaign(tmp_path / "store", COLD)
    assert queue_of(again) == left
    assert Watch().run(again)
    engine.steps.clear()
    whole = campaign(tmp_path / "uninterrupted", COLD)
    assert Watch().run(whole)
    assert [one.word for one in again.verdicts()] == [one.word for one in whole.verdicts()]


def test_no_step_is_started_after_the_deadline(tmp_path: Path, engine: FakeEngine) -> None:
    engine.seconds = 5.0
    found, watch = campaign(tmp_path, COLD, deadline=5.0), Watch()
    assert not watch.run(found)
    assert not engine.steps
    assert not watch.started


@pytest.mark.parametrize("how", ["fails", "vanishes"])
def test_runs_that_do_not_succeed_are_not_repeated_for_ever(
    how: str, tmp_path: Path, engine: FakeEngine
) -> None:
    setattr(engine, how, lambda spec: spec.seed == 3 and clamped(spec))
    found, watch = campaign(tmp_path, COLD), Watch()
    assert not watch.run(found)
    assert len(engine.steps) == 1
    [cause] = found.failed.values()
    assert cause == ("made up" if how == "fails" else "left no record")
    [verdict] = found.verdicts()
    assert (verdict.word, verdict.n) == ("undecided", 3)


def test_other_claims_go_on_when_the_runs_of_one_fail(tmp_path: Path, engine: FakeEngine) -> None:
    [cells] = COLD.cells
    cold = RecordEvidence(None).plan(cells, COLD.cap).runs.keys()
    engine.fails = lambda spec: spec.id in cold
    engine.score = lambda spec: 0.05 if clamped(spec) else 0.9
    found, watch = campaign(tmp_path, COLD, DEAD), Watch()
    assert not watch.run(found)
    words = {verdict.claim.id: verdict.word for verdict in found.verdicts()}
    assert words == {COLD.id: "undecided", DEAD.id: "reproduced"}


@pytest.mark.usefixtures("engine")
def test_the_published_grids_of_the_claims_are_recorded_for_readers(tmp_path: Path) -> None:
    found = campaign(tmp_path, COLD)
    assert Watch().run(found)
    [(assay, budget)] = recorded_budgets(found.store)
    assert assay.id == "E2"
    assert budget == assay.budget("paper")


def test_exact_claims_need_no_lifetimes(tmp_path: Path, engine: FakeEngine) -> None:
    found = campaign(tmp_path, claim_of("family-11-tails"))
    assert Watch().run(found)
    assert found.verdicts() == []
    assert engine.steps == []
