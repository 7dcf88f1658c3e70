"""``rulescope check``: the numerical table, against what the original programs computed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from rulescope.cli import selection_options
from rulescope.cli.check_worlds import worlds

if TYPE_CHECKING:
    from rulescope.numerics.tolerances import Comparison

app = typer.Typer(invoke_without_command=True)
app.command("worlds")(worlds)


@app.callback()
def check(
    context: typer.Context,
    golden: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of golden arrays. Default: those that come with the package, which "
            "need no released weights.",
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Also run the original `disco_rl` (JAX) beside ours.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="List every comparison, not only the families.")
    ] = False,
    out: selection_options.Out = selection_options.RESULTS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Compare our numbers with the original's: is this really the same rule?

    Conventions are those of the `reference` agent. Both forms of the update are checked: the
    readable definition and the closed form that lifetimes run. The published numerical table,
    with our numbers in it, is written to `check` below --out. Exits with 1 if any error is larger
    than its tolerance and larger than rounding alone explains. `rulescope check worlds` checks the
    worlds instead.
    """
    if context.invoked_subcommand is not None:
        return
    from rulescope.numerics.golden import Golden, default_directory
    from rulescope.numerics.parity_summary import FOLDER
    from rulescope.numerics.parity_table import compare_all
    from rulescope.numerics.tolerances import summarise
    from rulescope.render.result_files import require_writable

    folder = out / FOLDER
    require_writable(folder)
    arrays = Golden(golden or default_directory())
    found: list[Comparison] = []
    with Console(stderr=True).status("comparing"):
        if live:  # first, because it fails at once where the original is not installed
            from rulescope.numerics.jax_reference import compare_with_original

            found += compare_with_original()
        found += compare_all(arrays)
    paths = _record(found, list(arrays.rules().values()), folder)
    lines = summarise(found)
    left_out = arrays.skipped()
    if as_json:
        body = {
            "passed": all(line.passed for line in lines),
            "golden": str(arrays.directory),
            "rules": list(arrays.rules().values()),
            "left_out": left_out,
            "files": [str(path) for path in paths],
            "families": [line._asdict() for line in lines],
        }
        if every:
            body["comparisons"] = [item._asdict() | {"passed": item.passed} for item in found]
        print(json.dumps(body, indent=2))
    else:
        screen = Console()
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("family", "precision"):
            table.add_column(heading, no_wrap=True)
        for heading in ("outputs", "n", "max abs", "max rel", "tolerance"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("", no_wrap=True)
        rows = found if every else lines
        for row in rows:
            table.add_row(*_cells(row, every))
        screen.print(table)
        screen.print(f"rules: {', '.join(arrays.rules().values())}; arrays: {arrays.directory}")
        for reason in left_out:
            screen.print(f"left out: {reason}")
        screen.print(f"written: {paths[0]} and {len(paths) - 1} more in {paths[0].parent}")
    if not all(line.passed for line in lines):
        raise typer.Exit(1)


def _record(found: Sequence[Comparison], rules: Sequence[str], folder: Path) -> list[Path]:
    """Write the published table with our numbers in it, and its data; return the paths."""
    from rulescope.core.runtime import runtime_identity
    from rulescope.numerics.parity_summary import FILE, numeric_table, summarise_check
    from rulescope.render.result_files import write_whole
    from rulescope.render.table_formats import write_table

    summary = summarise_check(found, rules, runtime_identity())
    data = write_whole(folder / FILE, summary.to_json())
    return [data, *write_table(numeric_table(summary), folder)]


def _cells(row: object, every: bool) -> list[str]:
    from rulescope.numerics.tolerances import Comparison, Summary

    if every:
        assert isinstance(row, Comparison)
        label, outputs, compared = f"{row.family}: {row.output}", "", ""
    else:
        assert isinstance(row, Summary)
        label, outputs, compared = row.family, str(row.outputs), str(row.comparisons)
    verdict = "[green]ok[/]" if row.passed else "[bold red]FAIL[/]"
    errors = [f"{row.absolute:.1e}", f"{row.relative:.1e}", f"{row.tolerance:.0e}"]
    return [label, row.precision, outputs, compared, *errors, verdict]
