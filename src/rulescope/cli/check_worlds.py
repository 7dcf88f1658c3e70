"""``rulescope check worlds``: do the worlds do what their references take for granted?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rulescope.cli import selection_options
from rulescope.cli.console import console
from rulescope.cli.progress import Meter


def worlds(
    episodes: Annotated[
        int | None, typer.Option(min=2, help="Episodes of each policy and world. Default: 40,000.")
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=2, help="Steps of each lane in a world without episodes. Default: 21,000."
        ),
    ] = None,
    out: selection_options.Out = selection_options.RESULTS,
    as_json: selection_options.AsJson = False,
) -> None:
    """Check the worlds without a learner, and record the result.

    CatchStream must never reset: 200 steps from seed 0 without drift, with the paddle left off
    centre, and masked Catch as the control that does reset. Random and optimal play in 64 lanes
    must earn what the exact references say, within 4 standard errors. Exits with 1 otherwise.

    Examples:

      rulescope check worlds

      rulescope check worlds --out replication/results
    """
    from rulescope.assays.streams import world_checks as checks
    from rulescope.core.runtime import runtime_identity
    from rulescope.render.result_files import require_writable, write_whole
    from rulescope.render.table_formats import terminal, write_table

    folder = out / checks.FOLDER
    require_writable(folder)
    episodes, steps = episodes or checks.EPISODES, steps or checks.STEP_CAP
    usual = (episodes, steps) == (checks.EPISODES, checks.STEP_CAP)
    sizes = "" if usual else f" --episodes {episodes} --steps {steps}"
    with Meter("worlds", len(checks.SAMPLED), unit="world") as meter:
        found = checks.WorldCheck(
            f"rulescope check worlds{sizes}",
            checks.structures(),
            checks.references(episodes, steps, lambda done, _, name: meter.update(done, name)),
            runtime_identity(),
        )
    tables = checks.tables(found)
    paths = [write_whole(folder / checks.FILE, found.to_json())]
    paths += [path for table in tables for path in write_table(table, folder)]
    if as_json:
        print(json.dumps({"passed": found.passed, "files": [str(path) for path in paths]}))
    else:
        screen = console()
        for table in tables:
            screen.print(terminal(table))
            screen.print()
        screen.print(f"{'passed' if found.passed else 'FAILED'}; written: {folder}", markup=False)
    if not found.passed:
        raise typer.Exit(1)
