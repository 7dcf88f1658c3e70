"""``rulescope verify``: is every record what it was when it was made, and can it be made again?"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from rulescope.assays.results import counted
from rulescope.cli import engine_options, selection_options
from rulescope.cli.console import console, printable
from rulescope.cli.progress import Meter
from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records import Problem, Record, Store
from rulescope.records.record import CARRIER_COLUMNS, agree, differing_facts
from rulescope.records.sizes import PARTS
from rulescope.records.store_layout import ID
from rulescope.spec.run_spec import with_donors

WRONG = 1
"""Exit code when something is wrong with the store."""
QUIET_SECONDS = 2.0
"""What takes no longer needs no progress."""


class Finding(NamedTuple):
    """Something about one entry of the store that somebody should know."""

    what: str
    about: str
    wrong: bool = True


def verify(
    rerun: Annotated[int, typer.Option(min=0, help="Rerun this many records, and compare.")] = 0,
    seed: Annotated[int, typer.Option(help="Chooses which records are rerun.")] = 0,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Report damage, and move nothing.")
    ] = False,
    workers: selection_options.Workers = None,
    force: engine_options.Force = False,
    store: selection_options.StoreFolder = selection_options.STORE,
    weights: selection_options.Weights = None,
    as_json: selection_options.AsJson = False,
) -> None:
    """Read every record and checkpoint of a store, and compare it with its own checksums.

    What is damaged is moved into quarantine (unless --read-only) and named; running the assay
    again reruns it. With --rerun, a random sample of lifetimes is rerun in a temporary place and
    must be equal to the bit. That is promised only where program, libraries and processor are those
    that made the record: elsewhere a difference is reported and does not count.
    """
    keep = Store(store, read_only=read_only)
    before = list(_put_aside(keep))
    damaged = list(_damaged(keep))
    findings = [*damaged, *before, *_stray(keep)]
    bad = {finding.what for finding in damaged}  # still there if nothing was moved
    sound = [run for run in keep.ids() if run not in bad]
    chosen = random.Random(seed).sample(sound, min(rerun, len(sound)))
    findings += _rerun(keep, chosen, workers, weights, force) if chosen else []
    wrong = [finding for finding in findings if finding.wrong]
    if as_json:
        told: dict[str, Any] = {"records": len(sound), "rerun": chosen, "wrong": len(wrong)}
        print(json.dumps(told | {"findings": [finding._asdict() for finding in findings]}))
    else:
        for finding in findings:
            out = sys.stderr if finding.wrong else sys.stdout
            word = "error" if finding.wrong else "note"
            print(printable(f"{word}: {finding.what}: {finding.about}"), file=out)
        again = f", {len(chosen)} of them rerun" if chosen else ""
        verdict = counted(len(wrong), "problem") if wrong else "all is well"
        console().print(f"{store}: {counted(len(sound), 'sound record')}{again}; {verdict}")
    if wrong:
        raise typer.Exit(WRONG)


def _damaged(store: Store) -> Iterable[Finding]:
    """Read everything; what is damaged is in quarantine afterwards."""
    for problem in _read(store):
        yield Finding(problem.id, problem.problem)
    for path in disk.listed(store.root / "checkpoints"):
        if not ID.fullmatch(path.stem) or path.suffix != ".npz":
            yield Finding(str(path.relative_to(store.root)), "not a checkpoint")
            continue
        try:
            store.read_checkpoint(path.stem)  # None if its run has just been finished
        except RecordError as fault:
            yield Finding(path.stem, f"its checkpoint: {fault}")


def _read(store: Store) -> list[Problem]:
    """Verify every record, for people to watch if it takes a while."""
    begun = time.monotonic()
    with ExitStack() as stack:
        meter: Meter | None = None

        def report(done: int, total: int) -> None:
            nonlocal meter
            if time.monotonic() - begun < QUIET_SECONDS:
                return
            if meter is None:
                meter = stack.enter_context(Meter("verify", total, "records"))
            meter.update(done)

        return store.verify(report)


def _put_aside(store: Store) -> Iterable[Finding]:
    """Report what is in quarantine; it is no loss where the run was rerun."""
    for item in store.quarantined():
        again = ID.fullmatch(item.id) is not None and item.id in store
        since = "; there is a sound record of this run now" if again else ""
        about = f"in quarantine since it was found damaged ({item.reason}){since}"
        yield Finding(str(item.path.relative_to(store.root)), about, wrong=not again)


def _stray(store: Store) -> Iterable[Finding]:
    for path in disk.listed(store.root):
        if path.name not in PARTS:
            yield Finding(path.name, "no part of a store", wrong=False)
    rubbish = disk.listed(store.root / "tmp")
    if rubbish:
        about = f"{counted(len(rubbish), 'write')} in progress, or left by killed processes"
        yield Finding("tmp", about, wrong=False)


def _rerun(
    store: Store, chosen: list[str], workers: int | None, weights: Path | None, force: bool
) -> list[Finding]:
    """Rerun ``chosen``, with the donors' states that the store has, and compare."""
    from rulescope.engine.local_engine import run_all

    old = {run: store.read(run) for run in chosen}
    with tempfile.TemporaryDirectory(prefix="rulescope-verify-") as folder:
        anew = Store(Path(folder) / "store")
        specs = [record.spec for record in old.values()]
        everything = with_donors(specs)  # what donors inherited from included: it is missed, too
        for donor in everything:
            if donor not in old and donor in store:
                anew.commit_files(donor, store.files(donor))
        with Meter("again", sum(spec.iterations for spec in everything.values())) as meter:
            campaign = run_all(
                specs,
                anew,
                workers=workers,
                report=meter.follow,
                weights=weights,
                name="verify",
                force=force,
            )
        return [
            Finding(run, f"rerun failed: {campaign.failed[run]}")
            if run not in anew
            else _compared(run, record, anew.read(run))
            for run, record in old.items()
        ]


def _compared(run: str, before: Record, again: Record) -> Finding:
    """Say whether two records of a run agree, and if not, what may be the cause."""
    old, new = before.manifest, again.manifest
    if old.science_hash == new.science_hash:
        return Finding(run, "rerun: equal to the bit", wrong=False)
    if agree(before, again):
        left_out = ", ".join(name for name in CARRIER_COLUMNS if name in before.log)
        about = (
            f"rerun: equal to the bit but for {left_out}, which are not compared: the record was "
            "made when these were logged before interventions, not after them"
        )
        return Finding(run, about, wrong=False)
    if old.inherited != new.inherited:  # a donor that was chosen, too: reported by itself
        about = "rerun: differs, as it must: so does what it inherited"
        return Finding(run, about, wrong=False)
    elsewhere = ", ".join(differing_facts(old.runtime, new.runtime))
    if elsewhere:
        about = f"rerun: differs, as it may: it was made with another {elsewhere}"
        return Finding(run, about, wrong=False)
    source = ", ".join(differing_facts(old.source, new.source))
    cause = f"; it was made by another {source} of rulescope" if source else ""
    return Finding(run, f"rerun: differs on the same kind of machine{cause}")
