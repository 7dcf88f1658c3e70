"""``rulescope audit``: what a rule's learning history does, as one command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from rulescope import spec as specs
from rulescope.cli.life import final_score
from rulescope.cli.progress import Meter
from rulescope.learners.disco.config import Disco
from rulescope.records import Record, Store
from rulescope.spec import Intervention, Pin, RunSpec

ARMS: dict[str, tuple[Intervention, ...]] = {
    "live": (),
    "pinned": (Pin(carrier="recurrent"),),
}
"""The two arms differ in one thing only: whether the rule's recurrent state may carry on."""
SOME_FAILED = 3
"""Exit code when lifetimes failed; those that did not are in the store."""


def audit(
    rule: Annotated[
        str, typer.Argument(help="A released rule, or random:SEED for random weights.")
    ] = "disco103",
    scale: Annotated[float, typer.Option(help="Reward multiplier that the learner sees.")] = 0.1,
    seeds: Annotated[int, typer.Option(min=1, help="Lifetimes of each arm.")] = 2,
    iterations: Annotated[int, typer.Option(min=20, help="Of 58 interactions each.")] = 800,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes. Default: one a core.")
    ] = None,
    store: Annotated[Path, typer.Option(metavar="DIR", help="Where records are kept.")] = Path(
        "store"
    ),
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results are written.")] = Path(
        "results"
    ),
    weights: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where the rule's weights are.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object.")] = False,
) -> None:
    """Compare lifetimes that keep the rule's recurrent state with lifetimes whose state is pinned.

    Same rule, same seeds, same world: Catch with small rewards. In the `pinned` arm the state is
    set to zero after every iteration, so a difference between the arms is what that history did.
    Run it again and it picks up where it stopped.
    """
    from rulescope.engine.local import Campaign, run_all
    from rulescope.rules.loading import load

    identity = load(rule, weights)  # before anything runs: is the rule there, and whole?
    cells = {
        arm: [_spec(rule, scale, iterations, seed, interventions) for seed in range(seeds)]
        for arm, interventions in ARMS.items()
    }
    everything = [item for arm in cells.values() for item in arm]
    keep = Store(store)
    with Meter("audit", sum(item.iterations for item in everything)) as meter:

        def report(campaign: Campaign) -> None:
            meter.update(campaign.done, f"{campaign.finished}/{campaign.runs} lifetimes")

        campaign = run_all(everything, keep, workers=workers, report=report, weights=weights)
    if campaign.failed:
        causes = "; ".join(f"{key[:12]}: {cause}" for key, cause in campaign.failed.items())
        failed = f"{len(campaign.failed)} of {campaign.runs} lifetimes failed"
        print(f"error: {failed}: {causes}", file=sys.stderr)
        raise typer.Exit(SOME_FAILED)
    records = {arm: [keep.read(item.id) for item in arms] for arm, arms in cells.items()}
    _write(records, out, identity.name, scale, iterations, as_json)


def _spec(
    rule: str, scale: float, iterations: int, seed: int, interventions: tuple[Intervention, ...]
) -> RunSpec:
    plain = RunSpec(
        learner=Disco(rule=rule),
        scale=scale,
        interventions=interventions,
        iterations=iterations,
        seed=seed,
    )
    return specs.checked(plain, "options")


def _write(
    records: dict[str, list[Record]],
    out: Path,
    rule: str,
    scale: float,
    iterations: int,
    as_json: bool,
) -> None:
    from rulescope.report.figures import arms

    figure, table, data = (out / f"live-versus-pinned.{ending}" for ending in ("png", "md", "json"))
    title = f"{rule} on Catch 8×8, reward ×{scale:g}: recurrent state live or pinned to zero"
    arms(records, figure, title)
    rows = {
        arm: [final_score(record) for record in lifetimes] for arm, lifetimes in records.items()
    }
    result = {
        "rule": rule,
        "scale": scale,
        "iterations": iterations,
        "scores": rows,
        "runs": {arm: [r.manifest.id for r in lifetimes] for arm, lifetimes in records.items()},
    }
    data.write_text(json.dumps(result, indent=2) + "\n")
    table.write_text(_markdown(title, rows, iterations, figure.name))
    if as_json:
        print(json.dumps(result))
        return
    console = Console(highlight=False, soft_wrap=True)
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("arm", "n", "mean score", "per seed"):
        shown.add_column(heading)
    for arm, scores in rows.items():
        shown.add_row(arm, str(len(scores)), _mean(scores), _each(scores))
    console.print(title)
    console.print(shown)
    console.print("score: mean of the last five log rows; 0 is random, 1 is optimal")
    console.print(f"written: {figure}, {table.name}, {data.name}")


def _markdown(title: str, rows: dict[str, list[float | None]], iterations: int, figure: str) -> str:
    lines = [f"# {title}", "", f"![Learning curves of both arms]({figure})", ""]
    lines += ["| arm | n | mean score | per seed |", "|---|---|---|---|"]
    lines += [
        f"| {arm} | {len(scores)} | {_mean(scores)} | {_each(scores)} |"
        for arm, scores in rows.items()
    ]
    lines += [
        "",
        f"{iterations} iterations a lifetime; score: mean of the last five log rows, "
        "0 is a random policy and 1 an optimal one.",
        "",
    ]
    return "\n".join(lines)


def _mean(scores: list[float | None]) -> str:
    known = [score for score in scores if score is not None]
    return f"{np.mean(known):.3f}" if known else "-"


def _each(scores: list[float | None]) -> str:
    return ", ".join("-" if score is None else f"{score:.3f}" for score in scores)
