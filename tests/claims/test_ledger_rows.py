"""Every row that a claim names is planned by the analysis of the claim's own cells."""

from __future__ import annotations

import pytest

from made_up_records import fill
from rulescope.claims.ledger import Claim, claims
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.claims.verdicts import names_of
from rulescope.records import Store

SEEDS = 3
MEASURED = [claim for claim in claims() if claim.cells]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> RecordEvidence:
    return RecordEvidence(Store(tmp_path_factory.mktemp("ledger")))


@pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: claim.id)
def test_the_cells_of_a_claim_have_its_rows_on_the_published_grid(
    claim: Claim, records: RecordEvidence
) -> None:
    assert records.store is not None
    for cells in claim.cells:
        plan = RecordEvidence(None).plan(cells, SEEDS)
        assert plan.seeds == tuple(range(SEEDS))
        fill(records.store, list(plan.runs.values()))
    for name in names_of(claim):
        found = records._row(claim, name, SEEDS)
        if name.row == "spanning":  # a count of intervals, which three seeds do not have
            continue
        assert found is not None, name
        assert not found.row.other_grid
        assert found.row.seeds is None or len(found.row.seeds) == SEEDS
    for part in claim.parts:
        if part.first.row == "spanning":
            continue
        reading, kind = records._reading(claim, part, SEEDS), records.empty_reading(part)
        assert reading is not None
        assert (reading.seeds is None) == (kind.seeds is None), part.atom
        assert (reading.happened is None) == (kind.happened is None), part.atom
        assert (reading.level, reading.signed) == (kind.level, kind.signed), part.atom
