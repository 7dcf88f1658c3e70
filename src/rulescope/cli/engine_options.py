"""The options that say where lifetimes are lived: on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rulescope.core.errors import SpecError, nearest
from rulescope.records import Store
from rulescope.spec.run_spec import RunSpec

if TYPE_CHECKING:
    from rulescope.engine.campaign import Campaign
    from rulescope.engine.ray_engine import Share

ENGINES = ("local", "ray")

Name = Annotated[
    str, typer.Option("--engine", help="Where to run: local (processes), or ray (a cluster).")
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Of the Ray cluster, or auto. Default: a Ray of this machine alone.",
    ),
]
CpusPerRun = Annotated[
    float | None,
    typer.Option(min=0.01, metavar="X", help="Cores of a Ray node for each lifetime. Default: 1."),
]
GpusPerRun = Annotated[
    float | None,
    typer.Option(min=0.01, metavar="X", help="GPUs for each lifetime, lived there then, on Ray."),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(min=0.1, metavar="SECONDS", help="For each lifetime; late ones are put off."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Start even if disk or memory seem not to suffice.")
]


class Engine(NamedTuple):
    """Where lifetimes are lived."""

    name: str = "local"
    address: str | None = None
    cpus: float | None = None
    gpus: float | None = None

    @classmethod
    def chosen(
        cls, name: str, address: str | None, cpus: float | None, gpus: float | None
    ) -> Engine:
        """Return the engine that a person asks for, if there is such a one here."""
        if name not in ENGINES:
            raise SpecError(f"--engine: no {name!r}{nearest(name, ENGINES)}")
        chosen = {"--address": address, "--cpus-per-run": cpus, "--gpus-per-run": gpus}
        given = [option for option, value in chosen.items() if value is not None]
        if name == "local" and given:
            raise SpecError(f"{given[0]}: goes with --engine ray")
        if name == "ray":
            from rulescope.engine.ray_engine import require_ray

            require_ray()
        return cls(name, address, cpus, gpus)

    @property
    def elsewhere(self) -> bool:
        """Whether this machine's cores say nothing about how many lifetimes there are at once."""
        return self.address is not None

    def require(
        self, missing: Collection[RunSpec], store: Store, workers: int | None, force: bool
    ) -> None:
        """Raise what :meth:`run_all` would before its first run: disk, memory, share of a node."""
        if self.name == "local":
            from rulescope.engine import local_engine

            if not force:
                local_engine.require(missing, store, workers)
            return
        from rulescope.engine import ray_engine

        self._share.require_possible()
        if not force:
            ray_engine.require(missing, store, workers, self._share)

    @property
    def _share(self) -> Share:
        from rulescope.engine.ray_engine import Share

        return Share(self.cpus or 1.0, self.gpus or 0.0)

    def run_all(self, specs: Iterable[RunSpec], store: Store, **options: Any) -> Campaign:
        """Bring the records of ``specs`` into ``store``; options as of ``engine.local.run_all``."""
        if self.name == "local":
            from rulescope.engine import local_engine

            return local_engine.run_all(specs, store, **options)
        from rulescope.engine import ray_engine

        return ray_engine.run_all(specs, store, address=self.address, share=self._share, **options)


LOCAL = Engine()
