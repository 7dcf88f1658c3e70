"""Where and how runs are executed: on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.core import runtime
from rulescope.core.errors import SpecError, nearest
from rulescope.records import Store
from rulescope.run_spec import RunSpec

if TYPE_CHECKING:
    from rulescope.engine.campaign import Campaign
    from rulescope.engine.ray_engine import Share
    from rulescope.engine.scheduler import Report

ENGINES = ("local", "ray")


@dataclass(frozen=True)
class Execution:
    """The engine that executes runs, and its limits."""

    engine: str = "local"
    """One of :data:`ENGINES`."""
    address: str | None = None
    """Of the Ray cluster; None is a Ray of this machine alone."""
    cpus_per_run: float | None = None
    gpus_per_run: float | None = None
    workers: int | None = None
    """None is one per core, or as many as the cluster has room for."""
    time_limit: float | None = None
    """Seconds that a run may take."""
    force: bool = False
    """Whether to start even if disk or memory seem not to suffice."""
    weights: Path | None = None
    """Where the weights of rules are, if not in the usual places."""
    device: str = "cpu"
    """Where learners compute, as torch names it; all workers share it."""

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise SpecError(f"--engine: no {self.engine!r}{nearest(self.engine, ENGINES)}")
        if self.engine == "ray":
            from rulescope.engine.ray_engine import require_ray

            require_ray()
            self._require_ray_device()
            return
        runtime.require_device(self.device)
        for name in ("address", "cpus_per_run", "gpus_per_run"):
            if getattr(self, name) is not None:
                raise SpecError(f"--{name.replace('_', '-')}: goes with --engine ray")

    def _require_ray_device(self) -> None:
        """Raise unless Ray can give runs this device; whether a node has it is known later."""
        if self.device not in ("cpu", "cuda"):
            raise SpecError(
                f"--device: {self.device!r} does not go with --engine ray, which selects the GPU "
                "of a run itself; available: cpu, cuda"
            )
        if self.device == "cuda" and self.gpus_per_run is None:
            raise SpecError(
                "--device: 'cuda' with --engine ray needs --gpus-per-run, the part of a GPU that a "
                "run takes, such as 0.25"
            )

    @property
    def expected_workers(self) -> int:
        """How many runs are executed at once, as far as it is known before the engine starts.

        The size of a cluster is not known, so one worker stands for it.
        """
        from rulescope.engine.resources import cores

        return self.workers or (1 if self.address is not None else cores())

    @property
    def shares_prefixes(self) -> bool:
        """Whether iterations that runs have in common are executed once.

        Not on Ray, whose workers have no disk in common.
        """
        return self.engine == "local"

    @property
    def local_device(self) -> str:
        """The device of runs that are timed on this machine; a Ray node's GPU may be elsewhere."""
        return self.device if self.engine == "local" else "cpu"

    def require_possible(self, missing: Collection[RunSpec], store: Store) -> None:
        """Raise the error that :meth:`run_all` would raise before its first run."""
        if self.engine == "ray":
            from rulescope.engine import ray_engine

            self._share.require_possible()
            if not self.force:
                ray_engine.require(missing, store, self.workers, self._share)
        elif not self.force:
            from rulescope.engine import local_engine

            local_engine.require(missing, store, self.workers, self.device)

    def run_all(
        self,
        specs: Iterable[RunSpec],
        store: Store,
        *,
        name: str = "",
        report: Report | None = None,
    ) -> Campaign:
        """Bring the record of every spec into ``store``; see :func:`local_engine.run_all`."""
        from rulescope.engine import local_engine

        run_all = partial(local_engine.run_all, device=self.device)
        if self.engine == "ray":
            from rulescope.engine import ray_engine

            run_all = partial(ray_engine.run_all, address=self.address, share=self._share)
        return run_all(
            specs,
            store,
            workers=self.workers,
            report=report,
            weights=self.weights,
            timeouts=local_engine.Timeouts(run=self.time_limit),
            name=name,
            force=self.force,
        )

    @property
    def _share(self) -> Share:
        from rulescope.engine.ray_engine import Share

        return Share(self.cpus_per_run or 1.0, self.gpus_per_run or 0.0)
