"""``rulescope check``: our numbers beside the original programs', and the worlds by themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from rulescope.cli.console import Meter, console, make_table
from rulescope.cli.options import RESULTS, AsJson, Device, Out
from rulescope.core import runtime

if TYPE_CHECKING:
    from rulescope.numerics.tolerances import Comparison

app = typer.Typer(invoke_without_command=True)


@app.callback()
def check(
    context: typer.Context,
    golden: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory of golden arrays. Default: those of the package, which need no "
            "released weights.",
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Also run the original `disco_rl` (JAX) and compare.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="List every comparison, not only the kinds.")
    ] = False,
    device: Device = "cpu",
    out: Out = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Check our numbers against those of the original programs.

    Conventions are those of the `reference` agent. Both forms of the update are checked: the
    readable definition and the closed form that runs use. The published numerical table, with our
    numbers in it, is written to `check` below --out. Exits with 1 if any error is larger than its
    tolerance and larger than rounding explains. With --device our numbers are computed there, and
    tolerances are wider. `rulescope check rules` checks DPO, LPO and LPG instead, `rulescope check
    worlds` the worlds, and `rulescope check verdicts` the error rates of verdicts on claims.
    """
    if context.invoked_subcommand is not None:
        return
    from rulescope.core.disk import require_writable
    from rulescope.numerics.golden import Golden, default_directory
    from rulescope.numerics.parity_checks import compare_all
    from rulescope.numerics.parity_table import FOLDER
    from rulescope.numerics.tolerances import summarise

    runtime.require_device(device)
    if device != "cpu":
        runtime.single_threaded(device)  # the mode in which lifetimes run
    folder = out / FOLDER
    require_writable(folder)
    arrays = Golden(golden or default_directory(), device)
    found: list[Comparison] = []
    with Console(stderr=True).status("comparing"):
        if live:  # first, because it fails at once where the original is not installed
            from rulescope.numerics.jax_reference import compare_with_original

            found += compare_with_original(device=device)
        found += compare_all(arrays)
    paths = _write(found, list(arrays.rules().values()), device, folder)
    lines = summarise(found)
    left_out = arrays.skipped()
    if as_json:
        body = {
            "passed": all(line.passed for line in lines),
            "golden": str(arrays.directory),
            "rules": list(arrays.rules().values()),
            "left_out": left_out,
            "files": [str(path) for path in paths],
            "kinds": [line._asdict() for line in lines],
        }
        if every:
            body["comparisons"] = [item._asdict() | {"passed": item.passed} for item in found]
        print(json.dumps(body, indent=2))
    else:
        screen = Console()
        numbers = (">outputs", ">n", ">max abs", ">max rel", ">tolerance")
        table = make_table("kind", "precision", *numbers, "", no_wrap=True)
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


def _write(
    found: Sequence[Comparison], rules: Sequence[str], device: str, folder: Path
) -> list[Path]:
    """Write the published table with our numbers in it, and its data; return the paths."""
    from rulescope.core.disk import write_whole
    from rulescope.numerics.parity_table import FILE, numeric_table, summarise_check
    from rulescope.render.tables import write_table

    summary = summarise_check(found, rules, runtime.runtime_identity(device))
    data = write_whole(folder / FILE, summary.to_json())
    return [data, *write_table(numeric_table(summary), folder)]


def _cells(row: object, every: bool) -> list[str]:
    from rulescope.numerics.tolerances import Comparison, Summary

    if every:
        assert isinstance(row, Comparison)
        label, outputs, compared = f"{row.kind}: {row.output}", "", ""
    else:
        assert isinstance(row, Summary)
        label, outputs, compared = row.kind, str(row.outputs), str(row.comparisons)
    verdict = "[green]ok[/]" if row.passed else "[bold red]FAIL[/]"
    errors = [f"{row.absolute:.1e}", f"{row.relative:.1e}", f"{row.tolerance:.0e}"]
    return [label, row.precision, outputs, compared, *errors, verdict]


@app.command("rules")
def rules(out: Out = RESULTS, as_json: AsJson = False) -> None:
    """Check DPO, LPO and LPG against their original programs, and write the result.

    Values, gradients and updates are compared with arrays that the original functions computed
    (see docs/further_rules.md). Exits with 1 if any error is larger than its tolerance and larger
    than rounding explains.

    Examples:

      rulescope check rules
    """
    from rulescope.core.disk import require_writable
    from rulescope.numerics.further_parity import compare_further
    from rulescope.numerics.further_table import FOLDER, further_table
    from rulescope.render.tables import terminal, write_table

    folder = out / FOLDER
    require_writable(folder)
    with Console(stderr=True).status("comparing"):
        found = list(compare_further())
    table = further_table(found)
    paths = write_table(table, folder)
    passed = all(item.passed for item in found)
    if as_json:
        rows = [item._asdict() | {"passed": item.passed} for item in found]
        files = [str(path) for path in paths]
        print(json.dumps({"passed": passed, "comparisons": rows, "files": files}))
    else:
        screen = console()
        screen.print(terminal(table))
        screen.print(f"{'passed' if passed else 'FAILED'}; written: {folder}", markup=False)
    if not passed:
        raise typer.Exit(1)


@app.command("worlds")
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
    out: Out = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Check the worlds without a learner, and write the result.

    CatchStream must never reset: 200 steps from seed 0 without drift, with the paddle left off
    centre, and masked Catch as the control that does reset. Random and optimal play in 64 lanes
    must match the exact references within 4 standard errors. Exits with 1 otherwise.

    Examples:

      rulescope check worlds

      rulescope check worlds --out replication/results
    """
    from rulescope.assays.streams import world_checks as checks
    from rulescope.core.disk import require_writable, write_whole
    from rulescope.render.tables import terminal, write_table

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
            runtime.runtime_identity(),
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


@app.command("verdicts")
def verdicts(
    campaigns: Annotated[
        int, typer.Option(min=10, help="Simulated campaigns for each truth.")
    ] = 10_000,
    out: Out = RESULTS,
    as_json: AsJson = False,
) -> None:
    """Check the error rates of verdicts on claims by simulation, and write the result.

    Campaigns of known truth are simulated with all their looks. Exits with 1 if a wrong verdict
    is more frequent than its level and three standard errors of the simulation.

    Examples:

      rulescope check verdicts

      rulescope check verdicts --campaigns 1000
    """
    from rulescope.claims import calibration
    from rulescope.core.disk import require_writable
    from rulescope.render.tables import terminal, write_table

    folder = out / "verdicts"
    require_writable(folder)
    with Console(stderr=True).status("simulating"):
        errors = calibration.simulate_errors(campaigns)
        tables = [calibration.error_table(errors), calibration.power_table(max(campaigns // 5, 1))]
    paths = [path for table in tables for path in write_table(table, folder)]
    passed = all(one.passed for one in errors)
    if as_json:
        rows = [
            {
                "truth": one.scenario.name,
                "wrong": one.scenario.wrong,
                "rate": one.rates.of(one.scenario.wrong),
                "level": one.scenario.bound,
                "passed": one.passed,
            }
            for one in errors
        ]
        files = [str(path) for path in paths]
        print(json.dumps({"passed": passed, "errors": rows, "files": files}))
    else:
        screen = console()
        for table in tables:
            screen.print(terminal(table))
            screen.print()
        screen.print(f"{'passed' if passed else 'FAILED'}; written: {folder}", markup=False)
    if not passed:
        raise typer.Exit(1)
