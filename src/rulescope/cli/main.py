"""The program ``rulescope``: the table of its verbs, each imported when it is used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from rulescope.core.errors import RulescopeError
from rulescope.core.source_hash import __version__

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


class Verb(NamedTuple):
    """Where a verb is defined, and the first line of its help."""

    name: str
    place: str
    """``module:attribute`` in this package: a function, or the Typer of a group of verbs."""
    summary: str

    def load(self) -> typer.Typer:
        """Import the verb."""
        module, attribute = self.place.split(":")
        found = getattr(import_module(f"rulescope.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            found.info.name = self.name
            return found
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(self.name)(found)
        return alone


VERBS = (
    Verb(
        "audit",
        "audit:audit",
        "Audit a rule along five axes: is its learning history an asset or a burden?",
    ),
    Verb(
        "atlas",
        "atlas_command:atlas",
        "Lay the profiles of several rules side by side: what is each history worth?",
    ),
    Verb(
        "run",
        "run:run",
        "Run an assay: plan it, run what is missing, analyse, print and write the tables.",
    ),
    Verb(
        "status",
        "status:status",
        "Show how much of an assay is in the store, cell by cell; or of all assays and presets.",
    ),
    Verb(
        "list",
        "assay_list:list_assays",
        "List the assays: the question of each, its arms, and the cost of each preset.",
    ),
    Verb(
        "verify",
        "verify:verify",
        "Verify a store: every record and checkpoint must match its own checksums.",
    ),
    Verb(
        "compare",
        "compare:compare",
        "Compare our estimates with the published ones, disagreements first.",
    ),
    Verb(
        "claims",
        "claims:claims",
        "Show which published claims the records reproduce, contradict or leave open.",
    ),
    Verb(
        "replicate",
        "replicate:replicate",
        "Spend compute where it decides a claim of the published audit.",
    ),
    Verb(
        "life",
        "life:life",
        "Run one lifetime: a fresh learner, from its first iteration to its last.",
    ),
    Verb(
        "discover",
        "discover:discover",
        "Discover an update rule: by gradients through the learning of its agents or by evolution.",
    ),
    Verb(
        "mechanism",
        "mechanism:mechanism",
        "Observe the internal state of runs: a figure, a table and the data of a view.",
    ),
    Verb(
        "report",
        "report:report",
        "Write a report of a store: pages that any browser opens from disk.",
    ),
    Verb("check", "check:app", "Check our numbers against those of the original programs."),
    Verb("records", "records:app", "Show, query, copy and delete the records of a store."),
    Verb("weights", "weights:app", "Find, download and check the weights of released rules."),
)
"""In the order of the help."""


class _LazyGroup(TyperGroup):
    """The group of all verbs: their summaries are known, and the one that is called is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        verb = next(verb for verb in VERBS if verb.name == name)
        return name, typer.main.get_command(verb.load()), rest


def _summary_only() -> None:
    """Stand for a verb in the list of the help."""


app = typer.Typer(
    name="rulescope",
    cls=_LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Audit a learned reinforcement-learning update rule: what does its history do?\n\n"
    "Start with `rulescope audit`, or with one lifetime: `rulescope life --iterations 600`.",
)
for _verb in VERBS:
    app.command(_verb.name, help=_verb.summary)(_summary_only)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"rulescope {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Hold the options that come before the verb."""


def run() -> None:
    """Run the program; an error that the user can correct is one line and exit code 2.

    Typer turns an interrupt into an exit with code 130.
    """
    try:
        app()
    except RulescopeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print("interrupted; finished work is kept", file=sys.stderr)
        raise
