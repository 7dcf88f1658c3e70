"""The scheduler of a campaign: which run starts when, retries, and progress.

It is the same for every kind of pool. Donors run first, failed runs are retried, every cause is
kept, and progress is reported to the caller and to readers of the store.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from graphlib import TopologicalSorter
from typing import Any

from rulescope import run_packages, run_spec
from rulescope.core.errors import RecordError
from rulescope.core.signals import Interrupts
from rulescope.engine import failures
from rulescope.engine.branch_plan import BranchPlan, plan_branches
from rulescope.engine.campaign import Campaign, RunProgress
from rulescope.engine.heartbeat import StatusFile
from rulescope.engine.messages import Assignment, RunEnded
from rulescope.engine.worker_pool import EngineError, Pool
from rulescope.envs.world_config import Gymnasium
from rulescope.records import Store
from rulescope.records.branch_checkpoints import Branch, BranchCheckpoints
from rulescope.run_spec import RunSpec

_log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
ATTEMPTS = 3
"""Attempts at a run in one campaign; each one resumes from the last checkpoint."""

Report = Callable[[Campaign], None]


def run_campaign(
    specs: Iterable[RunSpec],
    store: Store,
    make_pool: Callable[[dict[str, RunSpec]], Pool[Any]],
    report: Report | None,
    name: str,
    *,
    share_prefixes: bool = False,
) -> Campaign:
    """Bring the record of every spec, and of every donor, into ``store``.

    ``make_pool`` returns the pool for the specs, by id, that the store lacks; it is not called if
    there are none. An interrupt pauses all runs, then raises ``KeyboardInterrupt``. With
    ``share_prefixes``, runs start from branch checkpoints of others, for which all workers must
    have the disk of ``store``.
    """
    wanted = run_spec.with_donors(map(run_spec.checked, specs))
    missing = {run: spec for run, spec in wanted.items() if run not in store}
    for run in wanted.keys() - missing.keys():
        if isinstance(wanted[run].environment, Gymnasium):
            run_packages.require_same_world(wanted[run], store.manifest(run))
    campaign = Campaign(sum(spec.iterations for spec in wanted.values()), runs=len(wanted))
    campaign.finished = len(wanted) - len(missing)
    campaign.done = campaign.total - sum(spec.iterations for spec in missing.values())
    if missing:
        run_packages.require_plugins(missing.values())
        pool = make_pool(missing)
        with Interrupts() as interrupts, StatusFile(store, campaign, name) as status_file:
            branches = BranchPlan()
            if share_prefixes:
                existing = BranchCheckpoints(store).list_branches()
                branches = plan_branches(missing, existing)
            _Scheduler(
                missing, branches, store, pool, campaign, report, interrupts, status_file
            ).run()
    return campaign


class _Scheduler:
    """Assigns the missing runs of a campaign to the workers of a pool until all have ended."""

    def __init__(
        self,
        missing: dict[str, RunSpec],
        branches: BranchPlan,
        store: Store,
        pool: Pool[Any],
        campaign: Campaign,
        report: Report | None,
        interrupts: Interrupts,
        status_file: StatusFile,
    ) -> None:
        self._missing, self._branches, self._store, self._pool = missing, branches, store, pool
        self._campaign, self._report = campaign, report
        self._interrupts, self._status_file = interrupts, status_file
        self._done_before = campaign.done
        self._reached: dict[str, int] = {}
        """Run id to the furthest iteration completed in this campaign."""
        self._order = _order_by_donors(missing)
        # Runs from a branch come first, so that few branch checkpoints exist at once.
        self._priority = {
            run: (run not in branches.starts, place) for place, run in enumerate(missing)
        }
        self._ready: list[tuple[tuple[bool, int], str]] = []
        """A heap of (priority, run id), lowest first."""
        self._waiting: set[str] = set()
        """Runs whose donors are there, but not yet the branch that they start from."""

    def run(self) -> None:
        """Run until nothing is left that can be run."""
        try:
            while self._assign_ready():
                self._handle_ended(self._pool.poll(POLL_SECONDS))
                self._campaign.stopping = self._interrupts.asked
                self._update_campaign()
                if self._report is not None:
                    self._report(self._campaign)
                if self._campaign.stopping:
                    raise KeyboardInterrupt
            self._fail_dependants()
            for branch in set(self._branches.starts.values()):
                self._drop_branch(branch)
        except BaseException as fault:
            interrupted = self._interrupts.asked
            self._wait_for_checkpoints()
            if interrupted and isinstance(fault, EngineError):
                raise KeyboardInterrupt from None  # the interrupt ended workers that were starting
            raise
        finally:
            self._pool.close()

    def _wait_for_checkpoints(self) -> None:
        """Wait until every run has stopped at a checkpoint; another Ctrl-C ends the wait."""
        self._interrupts.asked = self._campaign.stopping = True
        self._pool.pause()
        while self._pool.busy:
            self._handle_ended(self._pool.poll(POLL_SECONDS))
            self._update_campaign()

    def _assign_ready(self) -> bool:
        """Assign ready runs to idle workers; return whether there is anything to wait for."""
        for run in self._order.get_ready():
            self._queue(run)
        for run in [run for run in self._waiting if not self._must_wait(run)]:
            self._waiting.remove(run)
            self._queue(run)
        self._pool.grow(len(self._pool.busy) + len(self._ready))
        # Only idle workers get a run: one that becomes ready later may have a higher priority.
        for worker in self._pool.idle[: len(self._ready)]:
            _, run = heapq.heappop(self._ready)
            self._pool.assign(worker, run, self._make_assignment(run))
        return bool(self._ready or self._pool.busy)

    def _queue(self, run: str) -> None:
        if self._must_wait(run):
            self._waiting.add(run)
        else:
            heapq.heappush(self._ready, (self._priority[run], run))

    def _must_wait(self, run: str) -> bool:
        """Return whether ``run`` starts from a branch that another run has not reached yet.

        Even with idle workers it waits: by itself it would reach the branch later than a run that
        is ahead of it. Whether the other run has saved the branch does not matter here: a run that
        does not find its branch starts from the beginning.
        """
        parent = self._branches.parents.get(run)
        if parent is None or parent in self._campaign.failed:
            return False
        return self._reached.get(parent, 0) < self._branches.starts[run].iteration

    def _make_assignment(self, run: str) -> Assignment:
        branch = self._branches.starts.get(run)
        return Assignment(
            run_spec.canonical(self._missing[run]),
            0 if branch is None else branch.iteration,
            self._branches.users(run),
        )

    def _drop_branch(self, branch: Branch) -> None:
        """Remove a branch checkpoint if every run that was to start from it has a record."""
        starts = self._branches.starts
        if all(run in self._store for run, start in starts.items() if start == branch):
            with _logged_errors():
                BranchCheckpoints(self._store).drop_unneeded(branch)

    def _handle_ended(self, runs: Iterable[RunEnded]) -> None:
        for ended in runs:
            match ended.outcome:
                case "done":
                    self._reached[ended.run] = self._missing[ended.run].iterations
                    self._campaign.finished += 1
                    self._order.done(ended.run)
                    with _logged_errors():
                        failures.clear(self._store, ended.run)
                    if ended.run in self._branches.starts:
                        self._drop_branch(self._branches.starts[ended.run])
                case "paused":  # not a failure: it resumes from its checkpoint
                    self._queue(ended.run)
                case "failed":
                    self._handle_failed(ended)

    def _handle_failed(self, ended: RunEnded) -> None:
        """Keep the cause; retry if that may help."""
        causes = self._campaign.causes.setdefault(ended.run, [])
        causes.append(ended.cause)
        with _logged_errors():
            failures.add(
                self._store, ended.run, ended.cause, ended.iteration, ended.trace, ended.host
            )
        if ended.retry and len(causes) < ATTEMPTS:
            self._queue(ended.run)
        else:
            attempts = f" (the last of {len(causes)} attempts)" if len(causes) > 1 else ""
            self._give_up(ended.run, ended.cause + attempts)

    def _give_up(self, run: str, cause: str) -> None:
        self._campaign.failed[run] = cause
        self._campaign.given_up += self._missing[run].iterations - self._reached.get(run, 0)

    def _fail_dependants(self) -> None:
        """Count runs as failed that could not start because a donor failed."""
        for run, spec in self._missing.items():  # donors precede the runs that depend on them
            failed = [donor.id for donor in spec.donors if donor.id in self._campaign.failed]
            if failed:
                self._give_up(run, f"its donor {failed[0][:12]} failed")

    def _update_campaign(self) -> None:
        """Copy the progress of all workers into the campaign and its status file."""
        running, campaign = {}, self._campaign
        for worker in self._pool.busy:
            run = worker.run
            self._reached[run] = max(worker.iteration, self._reached.get(run, 0))
            running[run] = RunProgress(
                self._missing[run].iterations,
                worker.iteration,
                worker.meter.rate,
                len(campaign.causes.get(run, ())) + 1,
                worker.pid,
                worker.host,
            )
        campaign.running = running
        campaign.workers = min(self._pool.size, len(self._missing))
        campaign.done = self._done_before + sum(self._reached.values())
        starts = self._branches.starts.items()
        campaign.shared = sum(start.iteration for run, start in starts if run not in self._reached)
        self._status_file.update()


@contextmanager
def _logged_errors() -> Iterator[None]:
    """Log errors of writing into the store instead of raising them: other runs can go on."""
    try:
        yield
    except RecordError as fault:
        _log.warning("%s", fault)


def _order_by_donors(missing: dict[str, RunSpec]) -> TopologicalSorter[str]:
    """Return an order in which every run comes after its donors."""
    order = TopologicalSorter(
        {
            run: [donor.id for donor in spec.donors if donor.id in missing]
            for run, spec in missing.items()
        }
    )
    order.prepare()
    return order
