"""The options by which a person chooses an assay, a budget and a part of the grid."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rulescope.assays import ASSAYS, PRESETS, Assay, Budget, find, narrowed
from rulescope.assays.subject import named
from rulescope.audit import subjects
from rulescope.core.errors import SpecError, nearest
from rulescope.render.result_files import stem
from rulescope.rules.loading import short
from rulescope.spec.disco_config import AGENTS, Disco
from rulescope.spec.open_config import Open

_NAMES = ", ".join(f"{assay.id} ({assay.name})" for assay in ASSAYS.values())

AssayName = Annotated[str, typer.Argument(metavar="ASSAY", help=f"By id or name: {_NAMES}.")]
OptionalAssay = Annotated[
    str | None, typer.Argument(metavar="[ASSAY]", help=f"By id or name: {_NAMES}. Default: all.")
]
Preset = Annotated[
    str, typer.Option(help=f"Budget: {', '.join(PRESETS)} (seconds, minutes, hours, published).")
]
Seeds = Annotated[int | None, typer.Option(help="Lifetimes of each cell, seeds 0, 1, ...")]
Iterations = Annotated[int | None, typer.Option(help="Length of a lifetime.")]
Episodes = Annotated[int | None, typer.Option(help="Length of a lifetime in DeepSea.")]
Arms = Annotated[str | None, typer.Option(metavar="A,B", help="Only these arms (see `list`).")]
Scales = Annotated[str | None, typer.Option(metavar="X,Y", help="Only these reward scales.")]
Tasks = Annotated[str | None, typer.Option(metavar="A,B", help="Only these tasks.")]
Conditions = Annotated[
    str | None, typer.Option(metavar="A,B", help="Only these conditions (see `list`).")
]
Agent = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help=f"Conventions of the learner: {', '.join(AGENTS)}; several are run one by one.",
    ),
]
RuleName = Annotated[
    str | None,
    typer.Option(
        "--rule",
        help="sprout, a released rule, random:SEED, a file of weights, the folder of a discovery, "
        "or a plug-in. Default: disco103.",
    ),
]
StoreFolder = Annotated[Path, typer.Option("--store", metavar="DIR", help="Where records are.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes. Default: one a core.")]
Weights = Annotated[Path | None, typer.Option(metavar="PATH", help="Where the rule's weights are.")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="Where results are written.")]
SaveDraws = Annotated[
    bool,
    typer.Option(
        "--save-draws",
        help="Also write draws.npz: the bootstrap draws of every estimate (curves, windows, "
        "contrasts), and the seeds of each draw.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="End with one JSON object.")]

STORE = Path("store")
RESULTS = Path("results")


def choose(
    name: str,
    preset: str,
    *,
    seeds: int | None = None,
    iterations: int | None = None,
    episodes: int | None = None,
    arms: str | None = None,
    scales: str | None = None,
    tasks: str | None = None,
    conditions: str | None = None,
    agent: str | None = None,
    rule: str | None = None,
    weights: Path | None = None,
) -> list[tuple[Assay, Budget]]:
    """Return the assay with the budget asked for, once for each agent."""
    assay = find(name)
    audited = None if rule is None else subjects.find(rule, weights)[0]
    chosen = [
        (
            assay,
            narrowed(
                assay,
                assay.budget(preset),
                seeds=seeds,
                iterations=iterations,
                episodes=episodes,
                arms=words("--arms", arms),
                scales=numbers(scales),
                tasks=words("--tasks", tasks),
                conditions=words("--conditions", conditions),
                agent=each,
                rule=None if audited is None else audited.rule,
                subject=None if audited is None else audited.subject,
            ),
        )
        for each in words("--agent", agent) or (None,)
    ]
    if audited is not None and audited.family == "open":
        _require_open(audited.rule, chosen)
    return chosen


def _require_open(rule: str, chosen: list[tuple[Assay, Budget]]) -> None:
    """Raise unless ``rule`` drives OPEN in every assay; Disco, which would get it too, has none."""
    for assay, budget in chosen:
        learners = [cell.runs[0].learner for cell in assay.grid(budget)]
        driven = any(isinstance(who, Open) and rule in ("open", who.rule) for who in learners)
        if not driven or any(isinstance(who, Disco) for who in learners):
            raise SpecError(
                f"--rule: {rule!r} is a rule of OPEN, and does not drive this part of {assay.id}"
            )


def agent_of(rule: str, agent: str | None) -> str | None:
    """Return ``agent``, or raise an error that names the option if ``rule`` cannot have it."""
    if agent is not None and agent not in AGENTS:
        raise SpecError(f"--agent: no {agent!r}{nearest(agent, AGENTS)}")
    if agent is not None:
        named(rule).require_agents()
    return agent


def weights_of(rule: str | None, weights: Path | None) -> Path | None:
    """Return where the weights of what ``--rule`` names are: itself, if it is a file or folder."""
    return weights if rule is None else subjects.find(rule, weights)[1]


def folder_name(assay: Assay, budget: Budget) -> str:
    """Return the name of a results folder: the assay, and what is unusual about it."""
    parts, usual = [assay.id], assay.budget("paper")
    parts += [budget.agent] if budget.agent not in ("", usual.agent) else []
    parts += [stem(short(budget.rule))] if budget.rule != usual.rule else []
    return "-".join(parts)


def words(option: str, text: str | None) -> list[str]:
    """Return the names in a list that was typed with commas."""
    words = [word.strip() for word in (text or "").split(",")]
    if text is not None and not all(words):
        raise SpecError(f"{option}: {text!r} has an empty name in it; separate names by one comma")
    return [word for word in words if word]


def numbers(text: str | None) -> list[float]:
    """Return the reward scales in a list that was typed with commas."""
    found = []
    for word in words("--scales", text):
        try:
            found.append(float(word))
        except ValueError:
            raise SpecError(f"--scales: {word!r} is not a number, such as 1e-3") from None
    return found
