"""``rulescope report``: a store as pages to browse."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rulescope.assays import ASSAYS, PRESETS
from rulescope.assays.results import counted
from rulescope.cli import selection_options
from rulescope.cli.console import console, printable
from rulescope.cli.progress import Meter
from rulescope.cli.selection_options import folder_name
from rulescope.core import disk
from rulescope.records import Store

if TYPE_CHECKING:
    from rulescope.report.site.site_model import Progress

OUT = Path("report")


def report(
    store: selection_options.StoreFolder = selection_options.STORE,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the pages are written.")] = OUT,
    preset: Annotated[
        str | None,
        typer.Option(
            help=f"Show every assay at this budget: {', '.join(PRESETS)}. Default: for each assay "
            "the one of which the store has most."
        ),
    ] = None,
    results: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Where audits, checks and mechanism views wrote their results."
        ),
    ] = selection_options.RESULTS,
    as_json: selection_options.AsJson = False,
) -> None:
    """Turn a store into a report to browse, which opens from disk in any browser.

    Its pages: the profile of each audited rule; one for every assay that the store has lifetimes
    of, with curves, figures, tables and all estimates beside the published ones; the mechanism
    views among the results; every lifetime with its log and lineage; coverage and provenance.
    Figures and tables for print are in `publication`. Nothing is run. The same store and results
    give the same bytes.

    Examples:

      rulescope report

      rulescope report --store replication/store --out /tmp/report
    """
    if preset is not None:
        ASSAYS["E1"].budget(preset)  # so that a misspelt one is told before anything is read
    from rulescope.report import site  # here, because drawing is not always needed
    from rulescope.report.site import inputs

    site.require_replaceable(out)
    disk.require_possible(out)
    keep = Store(store, read_only=True)
    stages = _Stages()
    try:
        found = site.gather(
            keep,
            folder_name,
            preset,
            inputs.find_profiles(results),
            inputs.find_views(results),
            stages,
            inputs.find_checks(results),
        )
        files = site.write(found, out, stages)
    finally:
        stages.close()
    for run, reason in found.problems:
        print(f"warning: run {run[:12]} left out: {printable(reason)}", file=sys.stderr)
    for name, reason in found.unanalysed:
        print(f"warning: {name} has no page: {printable(reason)}", file=sys.stderr)
    for name, reason in found.unreadable:
        print(f"warning: {name} left out: {printable(reason)}", file=sys.stderr)
    said = site.summary(found, files, out)
    if as_json:
        print(json.dumps(said))
        return
    screen = console()
    pages = counted(len(found.pages), "assay")
    screen.print(
        f"{counted(said['runs'], 'lifetime')}, {pages}, {len(files):,} files, "
        f"{said['bytes'] / 1e6:.1f} MB",
        markup=False,
    )
    screen.print(f"open: {said['front']}", markup=False)


class _Stages:
    """One meter after another: what is being done, and how far it is."""

    def __init__(self) -> None:
        self._meter: Meter | None = None
        self._what = ""

    def __call__(self, what: str) -> Progress:
        self.close()
        self._what = what
        return self._tell

    def _tell(self, done: int, total: int, note: str) -> None:
        if self._meter is None:
            self._meter = Meter(self._what, total, unit="step").__enter__()
        self._meter.update(done, note)

    def close(self) -> None:
        """Leave the last line as it is."""
        if self._meter is not None:
            self._meter.__exit__(None, None, None)
        self._meter = None
