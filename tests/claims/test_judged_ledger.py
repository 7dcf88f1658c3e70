"""All claims with their verdicts, and what the records of several agents show of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_up_records import fill
from rulescope.claims.judged_ledger import judge_agents, judge_all, judge_ledger
from rulescope.claims.ledger import select
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.records import Store

CLAIMS = select(
    ["own-freeze-costs-nothing", "popart-floor-never-binds", "checkpoint-parameter-count"]
)
"""One that depends on the agent, one of a learner that has none, and an exact one."""
BLOCKS = {"published": 3, "historical": 2}
"""Seeds of each agent in the store."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    made = Store(tmp_path_factory.mktemp("store"))
    for agent, seeds in BLOCKS.items():
        plans = RecordEvidence(None, agent)
        for claim in CLAIMS:
            for cells in claim.cells:
                fill(made, list(plans.plan(cells, seeds).runs.values()))
    return made


def test_every_claim_has_a_verdict_in_the_given_order(store: Store) -> None:
    entries = judge_all(CLAIMS, RecordEvidence(store), store, check=False)
    assert [one.verdict.claim for one in entries] == CLAIMS
    assert [one.verdict.n for one in entries] == [3, 3, 0]
    assert entries[2].verdict.word == "exact (not checked)"
    assert entries[2].step is None


def test_the_published_numbers_have_no_step(store: Store) -> None:
    entries = judge_all(CLAIMS, RecordEvidence(store), store, published=True, check=False)
    assert [one.step for one in entries] == [None, None, None]


def test_only_claims_that_depend_on_the_agent_are_compared(store: Store) -> None:
    ledger = judge_ledger(CLAIMS, store, ["published", "historical"], check=False)
    assert {agent: [one.n for one in row] for agent, row in ledger.by_agent.items()} == {
        "published": [3],
        "historical": [2],
    }
    [[published], [historical]] = ledger.by_agent.values()
    assert published is ledger.entries[0].verdict  # the published cohort is of this agent
    assert (historical.claim, historical.word) == (CLAIMS[0], "not comparable")


def test_one_agent_alone_is_not_compared(store: Store, tmp_path: Path) -> None:
    entries = judge_all(CLAIMS, RecordEvidence(store), store, check=False)
    assert judge_agents(entries, store, ["published"]) == {}
    assert judge_agents(entries, store, ["published", "reference"]) == {}  # of which none is there
    assert judge_agents(entries, Store(tmp_path / "empty"), ["published", "historical"]) == {}


def test_an_agent_that_an_assay_cannot_have_leaves_its_claims_out(store: Store) -> None:
    conventions = select(["conventions"])
    entries = judge_all(conventions, RecordEvidence(store), store, check=False)
    assert judge_agents(entries, store, ["published", "historical", "legacy"]) == {}
