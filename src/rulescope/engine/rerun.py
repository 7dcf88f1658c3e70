"""Running recorded lifetimes again, and comparing the records."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.engine import local_engine
from rulescope.records import Record, Store
from rulescope.records.record import CARRIER_COLUMNS, agree, differing_facts
from rulescope.records.verification import Finding
from rulescope.run_spec import RunSpec, with_donors

if TYPE_CHECKING:
    from rulescope.engine.scheduler import Report


def list_reruns(store: Store, runs: Collection[str]) -> dict[str, RunSpec]:
    """Return the specs of ``runs`` and of their donors, by id."""
    return with_donors(store.read(run).spec for run in runs)


def rerun_records(
    store: Store,
    runs: Collection[str],
    *,
    workers: int | None = None,
    weights: Path | None = None,
    force: bool = False,
    report: Report | None = None,
) -> list[Finding]:
    """Run ``runs`` again in a temporary store, and compare each record with that in ``store``.

    Donors that are not among ``runs`` are taken from ``store``, not run again.
    """
    old = {run: store.read(run) for run in runs}
    with tempfile.TemporaryDirectory(prefix="rulescope-verify-") as folder:
        again = Store(Path(folder) / "store")
        for donor in with_donors(record.spec for record in old.values()):
            if donor not in old and donor in store:
                again.commit_files(donor, store.files(donor))
        campaign = local_engine.run_all(
            [record.spec for record in old.values()],
            again,
            workers=workers,
            report=report,
            weights=weights,
            name="verify",
            force=force,
            share_prefixes=False,  # each run by itself, whatever was shared when it was recorded
        )
        return [
            _compare(run, record, again.read(run))
            if run in again
            else Finding(run, f"rerun failed: {campaign.failed[run]}")
            for run, record in old.items()
        ]


def _compare(run: str, before: Record, after: Record) -> Finding:
    """Return whether two records of a run agree, and if not, the probable cause."""
    old, new = before.manifest, after.manifest
    if old.science_hash == new.science_hash:
        return Finding(run, "rerun: bit-identical", wrong=False)
    if agree(before, after):
        left_out = ", ".join(name for name in CARRIER_COLUMNS if name in before.log)
        about = (
            f"rerun: bit-identical except {left_out}, which are not compared: when the record was "
            "made, they were logged before interventions, not after them"
        )
        return Finding(run, about, wrong=False)
    if old.inherited != new.inherited:  # the donor was rerun too, and has a finding of its own
        about = "rerun: differs, as it must: the state it inherited differs"
        return Finding(run, about, wrong=False)
    runtime = ", ".join(differing_facts(old.runtime, new.runtime))
    if runtime:
        about = f"rerun: differs, as it may: it was made with another {runtime}"
        return Finding(run, about, wrong=False)
    source = ", ".join(differing_facts(old.source, new.source))
    cause = f"; it was made by another {source} of rulescope" if source else ""
    return Finding(run, f"rerun: differs on the same kind of machine{cause}")
