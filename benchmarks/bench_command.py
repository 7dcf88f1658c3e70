"""``python -m benchmarks``: the speed of a lifetime against peers and the arithmetic limit."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from rulescope.cli.console import Meter, duration

if TYPE_CHECKING:
    from benchmarks.disco_comparison import Comparison, Results
    from benchmarks.measurement import Spread
    from benchmarks.sb3_comparison import BaselineResults

BUSY = 0.5
"""A load average of at least this means that something else is running."""


class MeasuredLearner(StrEnum):
    """The learner of the measured lifetime."""

    DISCO = "disco"
    A2C = "a2c"
    PPO = "ppo"
    DQN = "dqn"


def bench(
    learner: Annotated[
        MeasuredLearner,
        typer.Option(
            help="The learner. Disco is compared with disco-torch and the arithmetic limit, a "
            "baseline with Stable-Baselines3."
        ),
    ] = MeasuredLearner.DISCO,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds of the main comparison. Default: 40, or 5 if quick."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure less: half a minute instead of some three.")
    ] = False,
    no_peer: Annotated[
        bool, typer.Option("--no-peer", help="Do not measure the peer, even if it is installed.")
    ] = False,
    no_scaling: Annotated[
        bool, typer.Option("--no-scaling", help="Do not measure other sizes (Disco only).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Measure the speed of a lifetime on one thread. The machine must be otherwise idle.

    Ours, the peer (`pip install rulescope[bench]`) and plain matrix products take turns, round by
    round. The arithmetic limit, for Disco, is the time of the products that an update needs: a
    lower bound for the same arithmetic. Medians are shown with their quartiles; where those are
    far apart, something else was running.
    """
    import msgspec

    from benchmarks import disco_comparison, measurement, sb3_comparison

    plan = measurement.QUICK if quick else measurement.Plan()
    plan = msgspec.structs.replace(
        plan,
        rounds=rounds or plan.rounds,
        peer=not no_peer,
        scaling_rounds=0 if no_scaling else plan.scaling_rounds,
    )
    disco = learner is MeasuredLearner.DISCO
    with Meter("bench", plan.total if disco else plan.rounds, unit="rounds") as meter:
        done = 0

        def progress(stage: str) -> None:
            nonlocal done
            done += 1
            meter.update(done, stage)

        results = (
            disco_comparison.measure_disco(plan, progress)
            if disco
            else sb3_comparison.measure_baseline(learner, plan, progress)
        )
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(results), indent=2).decode())
    elif isinstance(results, disco_comparison.Results):
        _show_disco(results)
    else:
        _show_baseline(results)


def _show_disco(results: Results) -> None:
    out = _print_heading(results.load_average)
    for note in results.notes:
        out.print(f"Note: {note}", markup=False)
    out.print()
    out.print(_comparison_table(results))
    out.print(
        "\nBoth sides: 2 lanes x 29 steps, batch 64, replay 1024, rule "
        f"{results.rule}; ours in the agent `{results.catch.agent}`, which does the same work."
    )
    if results.scaling:
        out.print()
        out.print(_scaling_table(results.scaling))
    out.print(f"\npeak memory of a lifetime: {results.memory_mb:.0f} MB")
    _print_machine(out, results)


def _show_baseline(results: BaselineResults) -> None:
    out = _print_heading(results.load_average)
    peer = "peer" if results.peer is None else " ".join(results.peer.values())
    table = _table(f"{results.learner}, catch 8x8", "ms an iteration", "iterations/s")
    rows = (
        ("ours", results.ours_ms, results.ours_iterations_per_second),
        (peer, results.peer_ms, results.peer_iterations_per_second),
    )
    for name, milliseconds, rate in rows:
        table.add_row(name, _spread(milliseconds), _spread(rate))
    out.print()
    out.print(table)
    out.print(f"\n[bold]{peer} / ours: {_spread(results.ratio_to_peer, digits=2)}[/]")
    out.print("Both sides: 2 lanes x 29 steps, the same networks, updates and batches.")
    _print_machine(out, results)


def _print_heading(load: float | None) -> Console:
    # A pipe has no width; the tables should not be broken there.
    out = Console(width=None if Console().is_terminal else 160, highlight=False)
    out.print("One thread; medians with quartiles. The machine must be otherwise idle.")
    if load is not None and load >= BUSY:
        out.print(f"[bold]It was not idle: the load average was {load:.1f} at the start.[/]")
    return out


def _print_machine(out: Console, results: Results | BaselineResults) -> None:
    machine = results.runtime
    out.print(
        f"{machine['cpu']} ({machine['isa']}), torch {machine['torch']}, {machine['blas']}; "
        f"measured in {duration(results.seconds)}",
        markup=False,
    )


def _comparison_table(results: Results) -> Table:
    """Return a table with one column for each world."""
    table = _table("per iteration", "catch 8x8", "catch 24x24")
    peer = "disco-torch" + ("" if results.peer is None else f" {results.peer['version']}")
    pair = (results.catch, results.catch_big)
    rows: list[tuple[str, list[str]]] = [
        ("ours, ms", [_spread(one.ours_ms) for one in pair]),
        ("ours, iterations/s", [_spread(one.iterations_per_second) for one in pair]),
        ("  of it acting, %", [_spread(one.acting_share, 100.0) for one in pair]),
        (f"{peer}, ms", [_spread(one.peer_ms) for one in pair]),
        ("arithmetic limit, ms", [_spread(one.limit_ms) for one in pair]),
        ("  distinct observations", [f"{one.distinct_rows:.0f}" for one in pair]),
        ("  multiply-adds, 10^9", [f"{one.multiply_adds / 1e9:.2f}" for one in pair]),
        ("  products, GFLOP/s", [_spread(one.gflops) for one in pair]),
        ("disco-torch / ours", [_spread(one.ratio_to_peer, digits=2) for one in pair]),
        ("ours / limit", [_spread(one.ratio_to_limit, digits=2) for one in pair]),
        ("  at a square product's rate", [_spread(one.ratio_to_square, digits=2) for one in pair]),
    ]
    for name, cells in rows:
        table.add_row(name, *cells, style="bold" if "/ " in name else None)
    return table


def _scaling_table(rows: list[Comparison]) -> Table:
    table = _table("batch", "grid", "actions", "distinct", "ms", "limit, ms", "ours / limit")
    for row in rows:
        table.add_row(
            str(row.batch),
            f"{row.grid}x{row.grid}",
            str(row.actions),
            f"{row.distinct_rows:.0f}",
            _spread(row.ours_ms),
            _spread(row.limit_ms),
            _spread(row.ratio_to_limit, digits=2),
        )
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _spread(spread: Spread | None, factor: float = 1.0, digits: int = 1) -> str:
    """Return ``median (q1 to q3)``; a dash without measurements, no quartiles of a single one."""
    if spread is None:
        return "-"
    values = (spread.median, spread.q1, spread.q3)
    median, q1, q3 = (f"{factor * value:.{digits}f}" for value in values)
    return median if spread.q1 == spread.q3 else f"{median} ({q1} to {q3})"
