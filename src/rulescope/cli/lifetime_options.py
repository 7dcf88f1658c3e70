"""The options that describe one run: its learner, its world, and its interventions."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from rulescope.audit.lifetime_spec import make_spec, pick
from rulescope.core.errors import SpecError, nearest
from rulescope.envs.world_config import CHANGES, WORLDS, Boundary, Change
from rulescope.learners.disco_config import AGENTS, INTERFACES
from rulescope.learners.learner_config import VARIANTS
from rulescope.learners.plugin_options import parse_assignments
from rulescope.run_spec import Evaluation, Pin, PinSteps, RunSpec

OPTIONS = {
    "boundary.truncation": "truncation",
    "boundary": "terminals",
    "environment": "env",
    "interventions": "pin",
    "learner.learning_rate": "learning_rate",
    "evaluation": "evaluate",
}
"""Options by the key of a specification, where they are not named alike."""


@dataclass(frozen=True)
class LifetimeOptions:
    """One run as typed; None (or nothing) where an option was not given."""

    learner: Annotated[
        str | None,
        typer.Option(
            help=f"One of: {', '.join(VARIANTS)}; or a plug-in rule (see `list`). Default: disco."
        ),
    ] = None
    rule: Annotated[
        str | None,
        typer.Option(
            help="A rule instead of the learner's own (Disco: disco103, OPEN: that of the game): "
            "sprout, a released one, a file of weights, or random:SEED (of OPEN, LPO and LPG: "
            "open-random:SEED, lpo-random:SEED, lpg-random:SEED)."
        ),
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="An option of DPO, LPO, LPG or a plug-in; repeatable."
        ),
    ] = None
    env: Annotated[
        str | None,
        typer.Option(
            help=f"One of: {', '.join(WORLDS)}; a plug-in world (see `list`); or a Gymnasium "
            "world, such as gymnasium:CartPole-v1 or 'gymnasium:FrozenLake-v1?is_slippery=false' "
            "(docs/worlds.md). Default: catch."
        ),
    ] = None
    scale: Annotated[
        float | None, typer.Option(help="Reward multiplier seen by the learner. Default: 1.")
    ] = None
    terminals: Annotated[
        str | None,
        typer.Option(
            help="Which episode ends are signalled: episodic (the default), masked, or a number k "
            "for a false end every k steps."
        ),
    ] = None
    truncation: Annotated[
        str | None,
        typer.Option(
            help="What an episode's end by a limit of the world is to the learner: terminal (the "
            "default), or bootstrap (it estimates what would have followed)."
        ),
    ] = None
    change: Annotated[
        str | None,
        typer.Option(
            metavar="KIND@T",
            help=f"A change of the world after iteration T: {', '.join(CHANGES)}.",
        ),
    ] = None
    pin: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CARRIER",
            help="Set this carrier to zero after every iteration (CARRIER:step: after every step "
            "of the optimiser).",
        ),
    ] = None
    iterations: Annotated[
        int | None,
        typer.Option(help="Default: 2000 of 58 interactions each; OPEN: 56 of 8192."),
    ] = None
    lanes: Annotated[
        int | None, typer.Option(help="Parallel copies of the world. Default: 2; OPEN: 64.")
    ] = None
    steps: Annotated[
        int | None, typer.Option(help="Steps of a lane per iteration. Default: 29; OPEN: 128.")
    ] = None
    log_every: Annotated[
        int | None, typer.Option(help="Iterations per log row. Default: 20; OPEN: 1.")
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of every random stream. Default: 0.")] = (
        None
    )
    agent: Annotated[
        str | None,
        typer.Option(
            help=f"Conventions of the rule's learner: {', '.join(AGENTS)}. Default: published."
        ),
    ] = None
    interface: Annotated[
        str | None,
        typer.Option(help=f"Value interface: {', '.join(INTERFACES)}. Default: default."),
    ] = None
    learning_rate: Annotated[float | None, typer.Option(help="Default: the learner's own.")] = None
    evaluate: Annotated[
        bool,
        typer.Option(
            "--evaluate",
            help="At the end, evaluate the final policy, the initial one and random actions.",
        ),
    ] = False

    @property
    def given(self) -> list[str]:
        """The options that were given, as typed."""
        return [
            f"--{name.replace('_', '-')}"
            for name, value in asdict(self).items()
            if not (value is None or value is False or value == [])  # but 0 was given
        ]

    def spec(self, weights: Path | None) -> RunSpec:
        """Return the spec that the options describe."""
        values = {
            **asdict(self),
            "options": parse_assignments(self.option) if self.option else None,
            "boundary": self._boundary(),
            "change": None if self.change is None else parse_change(self.change),
            "interventions": tuple(map(parse_pin, self.pin or ())),
            "evaluation": Evaluation() if self.evaluate else None,
        }
        described = ("terminals", "truncation", "pin", "evaluate", "option")
        named = {
            name: value
            for name, value in values.items()
            if value is not None and name not in described
        }
        try:
            return make_spec(**named, weights=weights)
        except SpecError as fault:
            raise SpecError(name_option(str(fault))) from None

    def _boundary(self) -> Boundary | None:
        """Return the boundary that ``--terminals`` and ``--truncation`` describe."""
        if self.terminals is None and self.truncation is None:
            return None
        boundary = parse_boundary(self.terminals or "episodic")
        if self.truncation in (None, "terminal"):
            return boundary
        if self.truncation == "bootstrap":
            return replace(boundary, truncation="bootstrap")
        known = ("terminal", "bootstrap")
        raise SpecError(f"--truncation: no {self.truncation!r}{nearest(self.truncation, known)}")


def name_option(problem: str) -> str:
    """Return ``problem`` of a made-up spec with the option instead of the key that has it.

    >>> name_option("options: log_every: 20 is more than iterations (5)")
    '--log-every: 20 is more than iterations (5)'
    """
    found = re.match(r"options: ([a-z_]+(?:\.[a-z_]+)?)", problem)
    if found is None:
        return problem
    key = found.group(1)
    option = OPTIONS.get(key) or OPTIONS.get(key.partition(".")[0], key.partition(".")[0])
    reason = problem[found.end() :].partition(": ")[2]
    return f"--{option.replace('_', '-')}: {reason}"


def parse_pin(text: str) -> Pin:
    """Return the intervention that ``--pin`` describes."""
    carrier, _, every = text.partition(":")
    if every not in ("", "iteration", "step"):
        raise SpecError(f"--pin: no {every!r}{nearest(every, ('iteration', 'step'))}")
    return (PinSteps if every == "step" else Pin)(carrier=carrier)


def parse_boundary(text: str) -> Boundary:
    """Return the boundary that ``--terminals`` describes."""
    if text.isdecimal():
        return Boundary(terminals="synthetic", interval=int(text))
    if text == "episodic":
        return Boundary()
    if text == "masked":
        return Boundary(terminals="masked")
    raise SpecError(f"--terminals: no {text!r}{nearest(text, ('episodic', 'masked', '29'))}")


def parse_change(text: str) -> Change:
    """Return the change that ``--change`` describes, such as ``action-flip@1500``."""
    kind, _, at = text.partition("@")
    make = pick("change", kind, CHANGES)
    if not at.isdecimal():
        raise SpecError(f"--change: {text!r} does not name an iteration; try {kind}@1500")
    return make(at=int(at))
