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
from rich.table import Table

from rulescope.core.errors import WeightsError
from rulescope.rules import loading, locate, registry
from rulescope.rules.embedded import EMBEDDED
from rulescope.rules.registry import Rule

app = typer.Typer(
    name="weights",
    no_args_is_help=True,
    help="Find, download and check the weights of released rules.\n\n"
    "The weights are not part of this package. Each is looked for in $RULESCOPE_WEIGHTS (a file "
    "or a folder), the user's cache, ./weights and ../shared/weights, and its sha256 is compared "
    "with the released one. Start with `rulescope weights list`.",
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
From = Annotated[
    Path | None,
    typer.Option(
        "--from", metavar="PATH", help="Look only at this file, or in this folder.", exists=True
    ),
]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Rules, as `weights list` calls them."),
]


@app.command("list")
def list_rules(source: From = None, as_json: Json = False) -> None:
    """Show every released rule, and where its weights are on this machine."""
    rows = [_described(rule, source) for rule in registry.RULES.values()]
    if as_json:
        _print_json(rows)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "family"):
        table.add_column(heading, no_wrap=True)
    for heading in ("parameters", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("licence", no_wrap=True)
    table.add_column("where", overflow="fold")
    for row in rows:
        table.add_row(
            row["name"],
            row["family"],
            f"{row['parameters']:,}",
            f"{row['size']:,} B",
            row["licence"],
            row["problem"] or row["path"] or "not here",
        )
    # A pipe has no width of its own; paths should come through it unbroken.
    width = None if Console().is_terminal else 1000
    Console(width=width, markup=False, highlight=False).print(table)
    typer.echo(f"\nPart of this package: {', '.join(EMBEDDED)}.")
    if any(row["path"] is None for row in rows):
        typer.echo("Get what is not here with `rulescope weights fetch NAME`, or --all.")


@app.command(
    help="Bring weights into the user's cache, from the network or from a local copy.\n\n"
    "A good copy that is already in the cache is kept; a damaged one is replaced. A file is stored "
    "only when it is complete and its sha256 is right."
)
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
    as_json: Json = False,
) -> None:
    """Fetch the named rules, or all of them."""
    rules = list(registry.RULES.values()) if everything else _rules(names)
    if not rules:
        raise WeightsError(
            f"say which rules to fetch, or --all; valid: {', '.join(registry.RULES)}"
        )
    rows = []
    for rule in rules:
        with _progress(rule, quiet=as_json) as report:
            path = locate.fetch(rule, source, report)
        rows.append({"name": rule.name, "path": str(path), "sha256": rule.sha256})
        if not as_json:
            typer.echo(f"{rule.name}: {path}")
    if as_json:
        _print_json(rows)


@app.command(
    help="Print where the weights of one rule are, and nothing else. Nothing is downloaded.\n\n"
    "The file's sha256 is checked first, so what is printed can be used, for instance in "
    '`cp "$(rulescope weights path disco103)" somewhere`.'
)
def path(
    name: Annotated[str, typer.Argument(help="A rule, as `weights list` calls it.")],
    source: From = None,
    as_json: Json = False,
) -> None:
    """Print the path of one rule's weights."""
    rule = registry.get(name)
    found = locate.ensure(rule, source, download=False)
    if as_json:
        _print_json({"name": rule.name, "path": str(found), "sha256": rule.sha256})
    else:
        typer.echo(str(found))


@app.command(
    help="Hash and parse every copy of the weights that can be found; exit 1 if one is wrong.\n\n"
    "All copies are checked, not only the one that would be used. Without names, rules that are "
    "not here are passed over; a rule that is named must be here."
)
def verify(names: Names = None, source: From = None, as_json: Json = False) -> None:
    """Check all copies of the named rules, or of every rule."""
    rules = _rules(names) or list(registry.RULES.values())
    rows = [row for rule in rules for row in _checked(rule, source, required=bool(names))]
    if as_json:
        _print_json(rows)
    else:
        for row in rows:
            verdict = "ok" if row["problem"] is None else "WRONG"
            typer.echo(f"{verdict:5}  {row['name']}: {row['problem'] or row['path']}")
        if not rows:
            typer.echo("no weights are here yet: nothing to verify (`rulescope weights fetch`)")
    if any(row["problem"] for row in rows):
        raise typer.Exit(1)


def _rules(names: list[str] | None) -> list[Rule]:
    """Look all names up before anything is done with the first."""
    return [registry.get(name) for name in dict.fromkeys(names or [])]


def _copies(rule: Rule, source: Path | None) -> list[Path]:
    """Return all files of ``rule``, or the one that ``source`` has; hashes are not checked."""
    return list(locate.copies(rule) if source is None else locate.copies_in(rule, source))


def _described(rule: Rule, source: Path | None) -> dict[str, Any]:
    """Return one row of the list; a damaged file is shown as such and does not end the list."""
    found: Path | None = None
    problem: str | None = None
    try:
        found = next(iter(_copies(rule, source)), None)
        if found is not None:
            locate.verified(rule, found)
    except WeightsError as fault:
        problem = str(fault)
    return {
        "name": rule.name,
        "family": rule.family,
        "description": rule.description,
        "parameters": rule.parameters,
        "size": rule.size,
        "licence": rule.licence,
        "url": rule.url,
        "sha256": rule.sha256,
        "path": None if found is None else str(found),
        "problem": problem,
    }


def _checked(rule: Rule, source: Path | None, *, required: bool) -> Iterator[dict[str, Any]]:
    """Yield one row for each copy of ``rule``, with what is wrong with it or None."""
    copies = _copies(rule, source)
    for copy in copies:
        problem: str | None = None
        try:
            loading.read(rule.family, locate.verified(rule, copy))
        except WeightsError as fault:
            problem = str(fault)
        yield {"name": rule.name, "path": str(copy), "problem": problem}
    if required and not copies:
        missing = f"not here; get it with `rulescope weights fetch {rule.name}`"
        yield {"name": rule.name, "path": None, "problem": missing}


@contextmanager
def _progress(rule: Rule, *, quiet: bool) -> Iterator[locate.Progress | None]:
    """Draw a bar on standard error if a person is watching; else report to nobody."""
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
