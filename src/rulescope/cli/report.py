"""``rulescope report``: a store as a website."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rulescope.assays.assay_run import folder_name
from rulescope.cli.assay_options import OptionalPreset, require_preset
from rulescope.cli.console import Meter, console, printable
from rulescope.cli.options import RESULTS, STORE, AsJson, StoreFolder
from rulescope.core import disk
from rulescope.core.errors import counted
from rulescope.records import Store

if TYPE_CHECKING:
    from rulescope.report.site_model import Progress

OUT = Path("report")


def report(
    store: StoreFolder = STORE,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the pages.")] = OUT,
    preset: OptionalPreset = None,
    results: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder of the results of audits, checks and mechanism views."
        ),
    ] = RESULTS,
    check_exact: Annotated[
        bool,
        typer.Option("--check-exact", help="Run the programs that decide exact claims."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a report of a store: pages that any browser opens from disk.

    Its pages: the profile of each audited rule; one for every assay that the store has runs of,
    with curves, figures, tables and all estimates beside the published ones; the claims of the
    published audit with their verdicts; the mechanism views among the results; every run with its
    log and lineage; coverage and provenance. Figures and tables for print are in `publication`. No
    lifetime is run. The same store and results give the same bytes.

    Examples:

      rulescope report

      rulescope report --store replication/store --out /tmp/report
    """
    if preset is not None:
        require_preset(preset)
    from rulescope.report import report_inputs, site_builder

    site_builder.require_replaceable(out)
    disk.require_possible(out)
    keep = Store(store, read_only=True)
    stages = _Stages()
    try:
        found = site_builder.gather(
            keep,
            folder_name,
            preset,
            report_inputs.find_profiles(results),
            report_inputs.find_views(results),
            stages,
            report_inputs.find_checks(results),
            check_exact=check_exact,
        )
        files = site_builder.write(found, out, stages)
    finally:
        stages.close()
    for run, reason in found.problems:
        print(f"warning: run {run[:12]} left out: {printable(reason)}", file=sys.stderr)
    for name, reason in found.unanalysed:
        print(f"warning: {name} has no page: {printable(reason)}", file=sys.stderr)
    for name, reason in found.unreadable:
        print(f"warning: {name} left out: {printable(reason)}", file=sys.stderr)
    body = site_builder.summary(found, files, out)
    if as_json:
        print(json.dumps(body))
        return
    screen = console()
    pages = counted(len(found.pages), "assay")
    screen.print(
        f"{counted(body['runs'], 'lifetime')}, {pages}, {len(files):,} files, "
        f"{body['bytes'] / 1e6:.1f} MB",
        markup=False,
    )
    screen.print(f"open: {body['front']}", markup=False)


class _Stages:
    """A meter for each stage of the report, one after another."""

    def __init__(self) -> None:
        self._meter: Meter | None = None
        self._stage = ""

    def __call__(self, stage: str) -> Progress:
        self.close()
        self._stage = stage
        return self._update

    def _update(self, done: int, total: int, note: str) -> None:
        if self._meter is None:
            self._meter = Meter(self._stage, total, unit="step").__enter__()
        self._meter.update(done, note)

    def close(self) -> None:
        """End the current meter."""
        if self._meter is not None:
            self._meter.__exit__(None, None, None)
        self._meter = None
