"""The local engine: many specs run by worker processes of one thread each, reused across runs.

Workers only turn specs into records in the store, so running the same specs again runs what is
missing: the engine needs no resume feature.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from rulescope.engine import resources
from rulescope.engine.campaign import Campaign
from rulescope.engine.process_pool import ProcessPool, refuse_rerun_script
from rulescope.engine.scheduler import Report, run_campaign
from rulescope.engine.worker_pool import EngineError, Timeouts
from rulescope.records import Store
from rulescope.run_spec import RunSpec

__all__ = ["Campaign", "EngineError", "Timeouts", "run_all"]


def run_all(
    specs: Iterable[RunSpec],
    store: Store,
    *,
    workers: int | None = None,
    report: Report | None = None,
    weights: Path | None = None,
    timeouts: Timeouts | None = None,
    name: str = "",
    force: bool = False,
    device: str = "cpu",
    share_prefixes: bool = True,
) -> Campaign:
    """Bring the record of every spec into ``store``; a failed run does not stop the others.

    Donors are added and run first. A worker that crashes or exceeds one of ``timeouts`` is
    replaced, and its run is retried from its checkpoint. Causes of failures are kept in the store
    until the run succeeds (see :mod:`rulescope.engine.failures`).

    On Ctrl-C or SIGTERM every worker completes its iteration and saves a checkpoint, then
    ``KeyboardInterrupt`` is raised; a second signal does not wait for that. :class:`EngineError`
    is raised before anything runs if disk or memory would not suffice, unless ``force``, and when
    workers cannot be started. ``name`` identifies the campaign to readers of the store. Learners
    of all workers compute on ``device``.

    Iterations that runs have in common are executed once, unless ``share_prefixes`` is False: a
    run starts from the branch checkpoint of another (:mod:`rulescope.engine.branch_plan`). Records
    are equal either way.
    """
    refuse_rerun_script()

    def make_pool(missing: dict[str, RunSpec]) -> ProcessPool:
        if not force:
            require(missing.values(), store, workers, device)
        size = _pool_size(missing, workers)
        return ProcessPool(size, store.root, weights, timeouts or Timeouts(), device)

    return run_campaign(specs, store, make_pool, report, name, share_prefixes=share_prefixes)


def require(
    missing: Collection[RunSpec], store: Store, workers: int | None, device: str = "cpu"
) -> None:
    """Raise :class:`EngineError` if disk or memory would not suffice to run ``missing``."""
    resources.require(missing, _pool_size(missing, workers), store.root, device)


def _pool_size(missing: Collection[object], workers: int | None) -> int:
    return min(workers or resources.cores(), len(missing))
