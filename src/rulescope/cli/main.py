"""The command line: one file a verb, put together here."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rulescope.cli import (
    audit,
    check,
    compare,
    discover,
    life,
    mechanism,
    records,
    report,
    status,
    verify,
    weights,
)
from rulescope.cli.run import run as run_assay
from rulescope.core.errors import RulescopeError
from rulescope.core.version import __version__

app = typer.Typer(
    name="rulescope",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Audit a learned reinforcement-learning update rule: what does its history do?\n\n"
    "Start with `rulescope audit`, or with one lifetime: `rulescope life --iterations 600`.",
)
app.command("audit")(audit.audit)
app.command("run")(run_assay)
app.command("status")(status.status)
app.command("list")(status.list_)
app.command("verify")(verify.verify)
app.command("compare")(compare.compare)
app.command("life")(life.life)
app.command("discover")(discover.discover)
app.command("mechanism")(mechanism.mechanism)
app.command("report")(report.report)
app.add_typer(check.app, name="check")
app.add_typer(records.app, name="records")
app.add_typer(weights.app, name="weights")


INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def _version(wanted: bool) -> None:
    if wanted:
        print(f"rulescope {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Hold the options that come before the verb."""


def run() -> None:
    """Run the program; errors that a person can put right are one line and exit code 2.

    An interrupt reaches us as typer's own exit with code 130.
    """
    try:
        app()
    except RulescopeError as fault:
        print(f"error: {fault}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            print("interrupted; what was done is kept", file=sys.stderr)
        raise
