"""A campaign that spends compute where it decides a claim.

The store is its only state: killed and started again, it makes the same queue from the same records
and continues every lifetime from its checkpoint. Evidence is looked at only when a step is
complete, that is at planned numbers of seeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rulescope import assays
from rulescope.assays.assay_run import require_runnable, run_missing
from rulescope.assays.recorded_plans import record_plan
from rulescope.claims.compute_cost import Pace
from rulescope.claims.ledger import Claim
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.claims.replication_queue import Step, order_steps
from rulescope.claims.verdicts import Verdict, judge_claim
from rulescope.core import disk
from rulescope.engine.campaign import Campaign
from rulescope.engine.execution import Execution
from rulescope.records import Store


class _TimeIsUp(Exception):
    """Raised inside a campaign when its time is over; runs have saved checkpoints."""


@dataclass
class Replication:
    """Steps for some claims, one after the other, until a deadline or until all are decided."""

    claims: Sequence[Claim]
    store: Store
    execution: Execution
    deadline: float | None = None
    """Of :func:`time.monotonic`; None for no limit."""

    def __post_init__(self) -> None:
        self.failed: dict[str, str] = {}
        """Causes of failures by run id."""
        self.complete = False
        """Whether the last look found nothing left to run."""

    def verdicts(self) -> list[Verdict]:
        """Return the verdicts of the store as it is now."""
        return self._judge(RecordEvidence(self._existing))

    @property
    def _existing(self) -> Store | None:
        """The store, once it is there."""
        return self.store if disk.is_folder(self.store.root) else None

    def _judge(self, records: RecordEvidence) -> list[Verdict]:
        return [judge_claim(claim, records) for claim in self.claims if not claim.exact]

    def queue(self) -> list[Step]:
        """Return the steps that are left, the next one first; those with failed runs last."""
        records = RecordEvidence(self._existing)
        steps = order_steps(self._judge(records), records, Pace(self._existing))
        return sorted(steps, key=lambda step: bool(self.failed.keys() & step.missing.keys()))

    def next_step(self) -> Step | None:
        """Return the step to run now; None if time is up, or if nothing is left that can be run.

        A step with a run that failed is not tried again.
        """
        if self._time_is_up():
            return None
        steps = self.queue()
        self.complete = not steps
        return None if not steps or self.failed.keys() & steps[0].missing.keys() else steps[0]

    def run_step(self, step: Step, report: Callable[[Campaign], None]) -> None:
        """Run what ``step`` lacks, or until time is up; ``report`` is called meanwhile."""

        def watched(campaign: Campaign) -> None:
            report(campaign)
            if self._time_is_up():
                raise _TimeIsUp

        self._record_plans(step)
        specs = list(step.missing.values())
        require_runnable(specs, self.store, self.execution)
        name = f"replicate {step.verdict.claim.id}"
        try:
            failed = run_missing(specs, self.store, self.execution, name=name, report=watched)
        except _TimeIsUp:
            return
        # A run without a record and without a cause would be run again, and again.
        left = [key for key in step.missing if key not in self.store]
        self.failed |= {key: "left no record" for key in left} | failed

    def _time_is_up(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def _record_plans(self, step: Step) -> None:
        """Write the grids that ``step`` is part of into the store, for its readers.

        They are the published ones, with more seeds if the step has more.
        """
        for name in dict.fromkeys(cells.assay for cells in step.verdict.claim.cells):
            assay = assays.find(name)
            budget = assay.budget("paper")
            record_plan(self.store, assay, replace(budget, seeds=max(budget.seeds, step.look)))
