"""The options of verbs that run assays: budget, part of the grid, rule under audit, engine."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from rulescope.assays import ASSAYS, PRESETS, Assay, Budget, Selection, find, narrowed
from rulescope.assays.subject import find_subject, locate_weights, name_with_options
from rulescope.cli.options import Device, Force, Weights, Workers, split_names, split_numbers
from rulescope.core.errors import SpecError, nearest
from rulescope.engine.execution import Execution
from rulescope.learners.disco_config import AGENTS

_NAMES = ", ".join(f"{assay.id} ({assay.name})" for assay in ASSAYS.values())
_AGENTS = ", ".join(AGENTS)
PRESET_HELP = f"Budget: {', '.join(PRESETS)} (seconds, minutes, hours, as published)."

AssayName = Annotated[str, typer.Argument(metavar="ASSAY", help=f"Id or name: {_NAMES}.")]
OptionalAssay = Annotated[
    str | None, typer.Argument(metavar="[ASSAY]", help=f"Id or name: {_NAMES}. Default: all.")
]
Preset = Annotated[str, typer.Option(help=PRESET_HELP)]
OptionalPreset = Annotated[
    str | None,
    typer.Option(
        help=f"{PRESET_HELP} Default: for each assay the one with the most runs in the store.",
    ),
]
Seeds = Annotated[int | None, typer.Option(help="Runs per cell, with seeds 0, 1, ...")]
Agent = Annotated[str | None, typer.Option(help=f"Conventions of the rule's learner: {_AGENTS}.")]
RuleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="An option of DPO, LPO, LPG or a plug-in; repeatable. The same as RULE:NAME=VALUE.",
    ),
]
ReferenceBest = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="Return (or reward per interaction) that counts as a score of 1 in a world whose "
        "upper reference is not known.",
    ),
]
SaveDraws = Annotated[
    bool,
    typer.Option(
        "--save-draws",
        help="Also write draws.npz: the bootstrap draws of every estimate (curves, windows, "
        "contrasts), and the seeds of each draw.",
    ),
]


@dataclass(frozen=True)
class SelectionOptions:
    """The part of an assay that a user selects, as typed."""

    preset: Preset = "quick"
    seeds: Seeds = None
    iterations: Annotated[int | None, typer.Option(help="Length of a run.")] = None
    episodes: Annotated[int | None, typer.Option(help="Length of a run in DeepSea.")] = None
    arms: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these arms (see `list`).")
    ] = None
    scales: Annotated[str | None, typer.Option(metavar="X,Y", help="Only these reward scales.")] = (
        None
    )
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Only these tasks; in scale, inheritance, exposure and change also any world, "
            "such as gymnasium:CartPole-v1 or a plug-in (docs/worlds.md).",
        ),
    ] = None
    reference_best: ReferenceBest = None
    conditions: Annotated[
        str | None, typer.Option(metavar="A,B", help="Only these conditions (see `list`).")
    ] = None
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help=f"Conventions of the rule's learner: {_AGENTS}; several are run in turn.",
        ),
    ] = None
    rule: Annotated[
        str | None,
        typer.Option(
            help="sprout, a released rule, random:SEED, a file of weights, the folder of a "
            "discovery, or a plug-in. Default: disco103.",
        ),
    ] = None
    option: RuleOption = None
    weights: Weights = None

    @property
    def named_rule(self) -> str | None:
        """The rule with its options in its name."""
        if not self.option:
            return self.rule
        if self.rule is None:
            raise SpecError("--option: give the plug-in whose option it is, with --rule")
        return name_with_options(self.rule, self.option)

    def budgets(self, assay: str, preset: str | None = None) -> list[tuple[Assay, Budget]]:
        """Return the assay with its budget, once for each agent."""
        found, rule = find(assay), self.named_rule
        agents: list[str | None] = [*split_names("--agent", self.agent)] or [None]
        selection = Selection(
            seeds=self.seeds,
            iterations=self.iterations,
            episodes=self.episodes,
            arms=split_names("--arms", self.arms),
            scales=split_numbers("--scales", self.scales),
            tasks=split_names("--tasks", self.tasks),
            reference_best=self.reference_best,
            conditions=split_names("--conditions", self.conditions),
            subject=None if rule is None else find_subject(rule, self.weights)[0],
        )
        budget = found.budget(preset or self.preset)
        return [(found, narrowed(found, budget, replace(selection, agent=each))) for each in agents]

    @property
    def located_weights(self) -> Path | None:
        """Where the rule's weights are, if not in the usual places."""
        return locate_weights(self.named_rule, self.weights)


@dataclass(frozen=True)
class PublishedSelectionOptions(SelectionOptions):
    """The same, with the published budget unless another is named."""

    preset: Preset = "paper"


def require_preset(preset: str) -> str:
    """Return ``preset`` if there is one of that name."""
    if preset not in PRESETS:
        raise SpecError(f"--preset: no {preset!r}{nearest(preset, PRESETS)}")
    return preset


@dataclass(frozen=True)
class EngineOptions:
    """Where and how runs are executed; fields as of :class:`Execution`."""

    workers: Workers = None
    device: Device = "cpu"
    engine: Annotated[
        str, typer.Option(help="Where to run: local (processes), or ray (a cluster).")
    ] = "local"
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Of the Ray cluster, or auto. Default: a Ray of this machine alone.",
        ),
    ] = None
    cpus_per_run: Annotated[
        float | None,
        typer.Option(min=0.01, metavar="X", help="Cores of a Ray node per run. Default: 1."),
    ] = None
    gpus_per_run: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            metavar="X",
            help="GPUs of a Ray node per run, which then computes on cuda. Default: none.",
        ),
    ] = None
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            metavar="SECONDS",
            help="Longest time of one run; one that takes longer fails, and can be resumed.",
        ),
    ] = None
    force: Force = False

    def execution(self, weights: Path | None = None) -> Execution:
        """Return the execution that the options describe."""
        return Execution(**asdict(self), weights=weights)
