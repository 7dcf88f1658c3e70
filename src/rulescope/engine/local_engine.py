"""Run many specs on this machine: worker processes of one thread each, reused across runs.

Workers only turn specs into records in the store. Running the same specs again does what is
missing: resuming is not a feature of the engine, it is what the store makes true.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from rulescope.engine import resources
from rulescope.engine.campaign import Campaign
from rulescope.engine.pool import EngineError, Patience
from rulescope.engine.process_pool import Processes, refuse_rerun_script
from rulescope.engine.scheduler import Report, carry_out
from rulescope.records import Store
from rulescope.spec.run_spec import RunSpec

__all__ = ["Campaign", "EngineError", "Patience", "run_all"]


def run_all(
    specs: Iterable[RunSpec],
    store: Store,
    *,
    workers: int | None = None,
    report: Report | None = None,
    weights: Path | None = None,
    patience: Patience | None = None,
    name: str = "",
    force: bool = False,
) -> Campaign:
    """Bring the record of every spec into ``store``; a failed run is reported, others go on.

    Donors are runs like any other: they are added, and come first. A worker that dies or hangs is
    replaced and its run tried again; ``patience`` says what counts as hanging, and how long a run
    may take. Causes of failures are kept in the store until the run succeeds (see
    :mod:`rulescope.engine.failures`).

    Ctrl-C and SIGTERM let every worker finish its iteration and leave a checkpoint, then raise
    ``KeyboardInterrupt``; a second one does so at once. :class:`EngineError` is raised before
    anything is run if disk or memory would not suffice, unless ``force``, and when workers cannot
    be started. ``name`` is what readers of the store see of this campaign while it runs.
    """
    refuse_rerun_script()

    def enlist(missing: dict[str, RunSpec]) -> Processes:
        if not force:
            require(missing.values(), store, workers)
        size = _size(missing, workers)
        return Processes(size, store.root, weights, patience or Patience())

    return carry_out(specs, store, enlist, report, name)


def require(missing: Collection[RunSpec], store: Store, workers: int | None) -> None:
    """Raise :class:`EngineError` if disk or memory would not suffice to run ``missing``."""
    resources.require(missing, _size(missing, workers), store.root)


def _size(missing: Collection[object], workers: int | None) -> int:
    """Return how many worker processes there will be."""
    return min(workers or resources.cores(), len(missing))
