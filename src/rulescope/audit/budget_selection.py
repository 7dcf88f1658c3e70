"""The budget of an assay for a rule that a person names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rulescope.assays import Assay, Budget, narrowed
from rulescope.assays.subject import find_subject
from rulescope.core.errors import SpecError
from rulescope.learners.disco_config import Disco
from rulescope.learners.open_config import Open


def select_budget(
    assay: Assay,
    preset: str,
    *,
    seeds: int | None = None,
    iterations: int | None = None,
    episodes: int | None = None,
    arms: Sequence[str] = (),
    scales: Sequence[float] = (),
    tasks: Sequence[str] = (),
    conditions: Sequence[str] = (),
    agent: str | None = None,
    rule: str | None = None,
    weights: Path | None = None,
) -> Budget:
    """Return the budget ``preset`` of ``assay``, narrowed to what is given.

    ``rule`` is anything that :func:`find_subject` knows; the assay's own if None.
    """
    found = None if rule is None else find_subject(rule, weights)[0]
    budget = narrowed(
        assay,
        assay.budget(preset),
        seeds=seeds,
        iterations=iterations,
        episodes=episodes,
        arms=arms,
        scales=scales,
        tasks=tasks,
        conditions=conditions,
        agent=agent,
        rule=None if found is None else found.rule,
        subject=None if found is None else found.subject,
    )
    if found is not None and found.family == "open":
        _require_open(assay, budget, found.rule)
    return budget


def _require_open(assay: Assay, budget: Budget, rule: str) -> None:
    """Raise unless ``rule`` drives OPEN in the assay, and no Disco learner would get it too."""
    learners = [cell.runs[0].learner for cell in assay.grid(budget)]
    drives = any(isinstance(each, Open) and rule in ("open", each.rule) for each in learners)
    if not drives or any(isinstance(each, Disco) for each in learners):
        raise SpecError(
            f"--rule: {rule!r} is a rule of OPEN, and does not drive this part of {assay.id}"
        )


def locate_weights(rule: str | None, weights: Path | None) -> Path | None:
    """Return where the weights of ``rule`` are: the rule itself, if it is a file or a folder."""
    return weights if rule is None else find_subject(rule, weights)[1]
