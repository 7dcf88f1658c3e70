"""``rulescope verify``: whether the records of a store are intact and reproducible."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from rulescope.cli.console import Meter, console, printable
from rulescope.cli.options import STORE, AsJson, Force, StoreFolder, Weights, Workers
from rulescope.core.errors import counted
from rulescope.records import Store
from rulescope.records.verification import Finding, StoreCheck, check_store

WRONG = 1
"""Exit code if the store has a problem."""
QUIET_SECONDS = 2.0
"""A check that takes no longer shows no progress."""


def verify(
    rerun: Annotated[
        int, typer.Option(min=0, help="Run this many records again, and compare.")
    ] = 0,
    seed: Annotated[int, typer.Option(help="Selects the records that are run again.")] = 0,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Report damage, and move nothing.")
    ] = False,
    workers: Workers = None,
    force: Force = False,
    store: StoreFolder = STORE,
    weights: Weights = None,
    as_json: AsJson = False,
) -> None:
    """Verify a store: every record and checkpoint must match its own checksums.

    Damaged entries are moved into quarantine (unless --read-only) and named; running the assay
    again replaces them. With --rerun, a random sample of records is run again in a temporary
    store and must be bit-identical. That is promised only for the program, libraries and processor
    that made the record: elsewhere a difference is reported and is not a problem.
    """
    keep = Store(store, read_only=read_only)
    findings, intact = _check(keep)
    chosen = random.Random(seed).sample(intact, min(rerun, len(intact)))
    if chosen:
        findings += _rerun(keep, chosen, workers, weights, force)
    wrong = [finding for finding in findings if finding.wrong]
    if as_json:
        body = {"records": len(intact), "rerun": chosen, "wrong": len(wrong)}
        print(json.dumps(body | {"findings": [finding._asdict() for finding in findings]}))
    else:
        for finding in findings:
            file = sys.stderr if finding.wrong else sys.stdout
            word = "error" if finding.wrong else "note"
            print(printable(f"{word}: {finding.what}: {finding.about}"), file=file)
        again = f", {len(chosen)} of them run again" if chosen else ""
        verdict = counted(len(wrong), "problem") if wrong else "no problems"
        console().print(f"{store}: {counted(len(intact), 'intact record')}{again}; {verdict}")
    if wrong:
        raise typer.Exit(WRONG)


def _check(store: Store) -> StoreCheck:
    """Check ``store``, with a progress bar if it takes long."""
    started = time.monotonic()
    with ExitStack() as stack:
        meter: Meter | None = None

        def report(done: int, total: int) -> None:
            nonlocal meter
            if time.monotonic() - started < QUIET_SECONDS:
                return
            if meter is None:
                meter = stack.enter_context(Meter("verify", total, "records"))
            meter.update(done)

        return check_store(store, report)


def _rerun(
    store: Store, runs: Collection[str], workers: int | None, weights: Path | None, force: bool
) -> list[Finding]:
    """Run ``runs`` again with a progress bar, and compare."""
    from rulescope.engine.rerun import list_reruns, rerun_records

    total = sum(spec.iterations for spec in list_reruns(store, runs).values())
    with Meter("rerun", total) as meter:
        return rerun_records(
            store, runs, workers=workers, weights=weights, force=force, report=meter.follow
        )
