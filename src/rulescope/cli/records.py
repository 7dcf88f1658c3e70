"""``rulescope records``: looking at what a store holds."""

from __future__ import annotations

import json

import typer

from rulescope.cli import choosing
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
    found = {run: keep.read(run).manifest.science_hash for run in keep.ids()}
    if as_json:
        print(json.dumps(found))
        return
    for run, science in found.items():
        print(run, science)
