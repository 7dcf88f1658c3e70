"""``rulescope records clean``: what dead processes have left in a store, given back."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.table import Table

from rulescope.assays.results import counted
from rulescope.cli import selection_options
from rulescope.cli.console import console
from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.records import Store, cleanup
from rulescope.records.cleanup import Leftover
from rulescope.records.sizes import readable


def clean(
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Also what failed verification, for good.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be removed.")
    ] = False,
    store: selection_options.StoreFolder = selection_options.STORE,
    as_json: selection_options.AsJson = False,
) -> None:
    """Remove what nobody needs any more: unfinished writes of dead processes and old notes.

    That is: folders in tmp/ whose process on this machine is dead, or which nobody has touched for
    a day; and checkpoints and failures of runs that have a record by now. No record is touched.
    """
    keep = Store(store)
    if not disk.is_folder(keep.root):
        raise RecordError(f"{keep.root}: no such store")
    found = cleanup.find(keep, quarantine=quarantine)
    if not dry_run:
        cleanup.remove(found)
    room = sum(each.bytes for each in found)
    if as_json:
        items = [
            {**each._asdict(), "path": str(each.path.relative_to(keep.root))} for each in found
        ]
        print(json.dumps({"removed": not dry_run, "bytes": room, "leftovers": items}))
        return
    screen = console()
    if found:
        screen.print(_table(found))
    done = "would be removed" if dry_run else "removed"
    screen.print(f"{store}: {counted(len(found), 'leftover')} of {readable(room)} {done}")


def _table(found: list[Leftover]) -> Table:
    """Return how many there are of each kind, and how large."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("part", "why"):
        table.add_column(heading)
    for heading in ("entries", "size"):
        table.add_column(heading, justify="right")
    kinds = dict.fromkeys((each.part, each.why) for each in found)
    for part, why in kinds:
        some = [each.bytes for each in found if (each.part, each.why) == (part, why)]
        table.add_row(part, why, f"{len(some):,}", readable(sum(some)))
    return table
