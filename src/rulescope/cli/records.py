"""``rulescope records``: looking at what a store holds."""

from __future__ import annotations

import json
import sys

import typer

from rulescope.cli import choosing
from rulescope.errors import RecordError
from rulescope.records import Store

app = typer.Typer(no_args_is_help=True, help="Look at the records in a store.")


@app.callback()
def records() -> None:
    """Hold the verbs below together."""


@app.command("hashes")
def hashes(store: choosing.StoreFolder = choosing.STORE, as_json: choosing.AsJson = False) -> None:
    """Print the science hash of every record, having verified it.

    The science hash covers what was measured, and neither times nor machines: two records of one
    run agree exactly if their hashes do.
    """
    keep = Store(store)
    found, faults = {}, []
    for run in keep.ids():
        try:
            found[run] = keep.read(run).manifest.science_hash
        except RecordError as fault:
            faults.append(str(fault))
    if as_json:
        print(json.dumps(found))
    else:
        for run, science in found.items():
            print(run, science)
    for problem in faults:
        print(f"error: {problem}", file=sys.stderr)
    if faults:
        raise typer.Exit(1)
