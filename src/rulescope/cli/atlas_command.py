"""``rulescope atlas``: the profiles of several rules side by side."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rulescope.cli.console import console
from rulescope.cli.options import RESULTS, AsJson
from rulescope.core import disk
from rulescope.core.errors import SpecError, counted
from rulescope.records import Store

if TYPE_CHECKING:
    from rulescope.audit.profile import Profile


def atlas(
    profiles: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PROFILE]...",
            help="Results folders of audits, or a folder with several of them. Default: all audits "
            "below --results.",
        ),
    ] = None,
    results: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the results of audits.")
    ] = RESULTS,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the atlas. Default: atlas, below --results."),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help="The rule that others are compared with. Default: a2c if it is there, else the "
            "first.",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Sort the rows by rule, axis, measure, value, n, difference, worth, result, "
            "verdict or note; numbers from the largest on.",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            metavar="DIR",
            help="Also count how many of the lifetimes behind each profile are in this store, with "
            "equal results.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Lay the profiles of several rules side by side: what is each history worth?

    A table of rules, axes and measures, each entry with its interval and number of lifetimes; what
    the history of each rule is worth, and whether it is an asset or a burden along each axis; and
    the differences from one rule, the reference, within seeds. Rules that were audited with
    different budgets are marked and not compared. Nothing is run. Written are a page (atlas.md), a
    figure, tables (CSV, LaTeX) and data (atlas.json); `rulescope report` has a page that can be
    sorted.

    Examples:

      rulescope atlas

      rulescope atlas results/audit-sprout-quick results/audit-a2c-quick --sort worth

      rulescope atlas --reference sprout
    """
    from rulescope.audit.atlas_folder import read_profiles
    from rulescope.audit.atlas_tables import require_column

    if sort is not None:
        require_column(sort)
    found = read_profiles(profiles or [results])
    folder = out or results / "atlas"
    disk.require_possible(folder)
    screen = console(as_json)
    covered = {} if store is None else _coverage(found, Store(store, read_only=True))
    body = finish_atlas(found, folder.parent, screen, folder.name, reference, sort)
    for name, (present, planned) in covered.items():
        screen.print(
            f"{name}: {present:,} of {counted(planned, 'lifetime')} in {store}, with equal results",
            markup=False,
        )
    body["in_store"] = {name: present for name, (present, _) in covered.items()}
    if as_json:
        print(json.dumps(body))


def finish_atlas(
    profiles: Mapping[str, Profile],
    results: Path,
    screen: Console,
    name: str = "atlas",
    reference: str | None = None,
    sort: str | None = None,
) -> dict[str, Any]:
    """Make, write and print the atlas of ``profiles``, by folder; return it as plain data."""
    from rulescope.audit.atlas import make_atlas
    from rulescope.audit.atlas_folder import summary, write_atlas

    made = make_atlas(profiles, reference)
    folder = results / name
    paths = write_atlas(made, folder, sort)
    screen.print()
    for renderable in summary(made, sort):
        screen.print(renderable)
    rows, rules = counted(len(made.rows), "row"), counted(len(made.rules), "rule")
    screen.print(
        f"written: {paths[0]} ({rows} of {rules}) and {len(paths) - 1} more in {folder}",
        markup=False,
    )
    data: dict[str, Any] = json.loads(made.to_json())
    return data | {"folder": str(folder)}


def _coverage(profiles: Mapping[str, Profile], store: Store) -> dict[str, tuple[int, int]]:
    """Return how many lifetimes of each profile ``store`` has with equal results, and of how many.

    A profile that does not list its lifetimes is an error: nothing could be said about it.
    """
    known = set(store.ids())
    for name, one in profiles.items():
        if not one.runs:
            raise SpecError(f"--store: the profile in {name} does not list its lifetimes")
    return {
        name: (
            sum(
                run in known and store.manifest(run).science_hash == science
                for run, science in one.runs.items()
            ),
            len(one.runs),
        )
        for name, one in profiles.items()
    }
