"""Run ids and bits stay what they were: records are found by them, and must be reproducible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import golden_runs
from rulescope.core import runtime
from rulescope.records import Store
from rulescope.run_spec import RunSpec

SPECS = golden_runs.short_specs()
GOLDEN = json.loads(golden_runs.HASHES.read_text())


def test_every_run_of_every_grid_has_its_id() -> None:
    assert golden_runs.grids() == _golden(audit=False)


def test_every_run_of_every_audit_has_its_id() -> None:
    assert golden_runs.audits() == _golden(audit=True)


def test_short_runs_have_their_ids() -> None:
    assert [run.id for run in SPECS] == list(GOLDEN["science"])


@pytest.mark.parametrize("run", SPECS, ids=lambda run: run.id[:8])
def test_a_short_run_has_its_bits(run: RunSpec, tmp_path: Path) -> None:
    """On a machine with other arithmetic: the same bits twice."""
    runtime.single_threaded("cpu")
    found = golden_runs.science(run, Store(tmp_path / "first"))
    if golden_runs.arithmetic() == GOLDEN["arithmetic"]:
        assert found == GOLDEN["science"][run.id]
    else:
        assert found == golden_runs.science(run, Store(tmp_path / "second"))


def _golden(audit: bool) -> dict[str, str]:
    known: dict[str, str] = json.loads(golden_runs.IDS.read_text())
    return {name: ids for name, ids in known.items() if name.startswith("audit ") == audit}
