"""The options that select the engine and its limits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from rulescope.cli.options import Device, Force, Workers
from rulescope.engine.execution import Execution


@dataclass(frozen=True)
class EngineOptions:
    """Where and how runs are executed; fields as of :class:`Execution`."""

    workers: Workers = None
    device: Device = "cpu"
    engine: Annotated[
        str, typer.Option(help="Where to run: local (processes), or ray (a cluster).")
    ] = "local"
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Of the Ray cluster, or auto. Default: a Ray of this machine alone.",
        ),
    ] = None
    cpus_per_run: Annotated[
        float | None,
        typer.Option(min=0.01, metavar="X", help="Cores of a Ray node per run. Default: 1."),
    ] = None
    gpus_per_run: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            metavar="X",
            help="GPUs of a Ray node per run, which then computes on cuda. Default: none.",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            metavar="SECONDS",
            help="Longest time of one run; one that takes longer fails, and can be resumed.",
        ),
    ] = None
    force: Force = False

    def execution(self, weights: Path | None = None) -> Execution:
        """Return the execution that the options describe."""
        return Execution(**asdict(self), weights=weights)
