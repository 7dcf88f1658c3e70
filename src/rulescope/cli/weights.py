"""``rulescope weights``: list, fetch, locate and verify the files of released rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from rulescope.cli.console import make_table
from rulescope.cli.options import AsJson
from rulescope.core.errors import WeightsError
from rulescope.rules import released_rules, rule_weights, weight_files
from rulescope.rules.embedded import EMBEDDED
from rulescope.rules.released_rules import Rule

app = typer.Typer(
    name="weights",
    no_args_is_help=True,
    help="Find, download and check the weights of released rules.\n\n"
    "The weights are not part of this package. Each is looked for in $RULESCOPE_WEIGHTS (a file "
    "or a folder), the user's cache, ./weights and ../shared/weights, and its sha256 is compared "
    "with the released one. Start with `rulescope weights list`.",
)

From = Annotated[
    Path | None,
    typer.Option("--from", metavar="PATH", help="Search only this file or folder.", exists=True),
]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Names of rules (see `weights list`)."),
]


@app.command("list")
def list_rules(source: From = None, as_json: AsJson = False) -> None:
    """List the released rules, and the paths of their weights on this machine."""
    rows = [_describe(rule, source) for rule in released_rules.RULES.values()]
    if as_json:
        _print_json(rows)
        return
    headings = ("name", "architecture", ">parameters", ">size", "licence")
    table = make_table(*headings, no_wrap=True)
    table.add_column("path", overflow="fold")
    for row in rows:
        table.add_row(
            row["name"],
            row["architecture"],
            f"{row['parameters']:,}",
            f"{row['size']:,} B",
            row["licence"],
            row["problem"] or row["path"] or "missing",
        )
    # A pipe has no width; paths must not be wrapped in it.
    width = None if Console().is_terminal else 1000
    Console(width=width, markup=False, highlight=False).print(table)
    typer.echo(f"\nPart of this package: {', '.join(EMBEDDED)}.")
    if any(row["path"] is None for row in rows):
        typer.echo("Download missing weights with `rulescope weights fetch NAME`, or --all.")


@app.command()
def fetch(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="Fetch every released rule.")] = False,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="PATH",
            help="Copy from this file or folder instead of the network.",
            exists=True,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copy weights into the user's cache, from the network or from a local copy.

    A good copy in the cache is kept; a damaged one is replaced. A file is stored only when it is
    complete and its sha256 is right.
    """
    rules = list(released_rules.RULES.values()) if everything else _find_rules(names)
    if not rules:
        raise WeightsError(
            f"fetch: name the rules, or give --all; valid: {', '.join(released_rules.RULES)}"
        )
    rows = []
    for rule in rules:
        with _progress(rule, quiet=as_json) as report:
            path = weight_files.fetch(rule, source, report)
        rows.append({"name": rule.name, "path": str(path), "sha256": rule.sha256})
        if not as_json:
            typer.echo(f"{rule.name}: {path}")
    if as_json:
        _print_json(rows)


@app.command()
def path(
    name: Annotated[str, typer.Argument(help="Name of a rule (see `weights list`).")],
    source: From = None,
    as_json: AsJson = False,
) -> None:
    """Print the path of one rule's weights; nothing is downloaded.

    The file's sha256 is checked first, so the path can be used, for instance in
    `cp "$(rulescope weights path disco103)" somewhere`.
    """
    rule = released_rules.get(name)
    found = weight_files.ensure(rule, source, download=False)
    if as_json:
        _print_json({"name": rule.name, "path": str(found), "sha256": rule.sha256})
    else:
        typer.echo(str(found))


@app.command()
def verify(names: Names = None, source: From = None, as_json: AsJson = False) -> None:
    """Verify every copy of the weights: its sha256 and its content; exit 1 if one is wrong.

    All copies are checked, not only the one that would be used. Without names, missing rules are
    skipped; a rule that is named must be there.
    """
    rules = _find_rules(names) or list(released_rules.RULES.values())
    rows = [row for rule in rules for row in _check_copies(rule, source, required=bool(names))]
    if as_json:
        _print_json(rows)
    else:
        for row in rows:
            verdict = "ok" if row["problem"] is None else "WRONG"
            typer.echo(f"{verdict:5}  {row['name']}: {row['problem'] or row['path']}")
        if not rows:
            typer.echo("no weights found; download them with `rulescope weights fetch`")
    if any(row["problem"] for row in rows):
        raise typer.Exit(1)


def _find_rules(names: list[str] | None) -> list[Rule]:
    """Return the rules called so; an unknown name is an error before the first is used."""
    return [released_rules.get(name) for name in dict.fromkeys(names or [])]


def _copies(rule: Rule, source: Path | None) -> list[Path]:
    """Return all files of ``rule``, or the one that ``source`` has; hashes are not checked."""
    return list(
        weight_files.copies(rule) if source is None else weight_files.copies_in(rule, source)
    )


def _describe(rule: Rule, source: Path | None) -> dict[str, Any]:
    """Return one row of the list; a damaged file is a problem in its row, not an error."""
    found: Path | None = None
    problem: str | None = None
    try:
        found = next(iter(_copies(rule, source)), None)
        if found is not None:
            weight_files.verified(rule, found)
    except WeightsError as fault:
        problem = str(fault)
    return {
        "name": rule.name,
        "architecture": rule.architecture,
        "description": rule.description,
        "parameters": rule.parameters,
        "size": rule.size,
        "licence": rule.licence,
        "url": rule.url,
        "sha256": rule.sha256,
        "path": None if found is None else str(found),
        "problem": problem,
    }


def _check_copies(rule: Rule, source: Path | None, *, required: bool) -> Iterator[dict[str, Any]]:
    """Yield one row for each copy of ``rule``, with its problem or None."""
    copies = _copies(rule, source)
    for copy in copies:
        problem: str | None = None
        try:
            rule_weights.read(rule.architecture, weight_files.verified(rule, copy))
        except WeightsError as fault:
            problem = str(fault)
        yield {"name": rule.name, "path": str(copy), "problem": problem}
    if required and not copies:
        missing = f"missing; download it with `rulescope weights fetch {rule.name}`"
        yield {"name": rule.name, "path": None, "problem": missing}


@contextmanager
def _progress(rule: Rule, *, quiet: bool) -> Iterator[weight_files.Progress | None]:
    """Yield a callback that draws a bar on standard error, or None if it is not a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(rule.name, total=rule.size)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2))
