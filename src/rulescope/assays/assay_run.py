"""Running the part of an assay that a store lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rulescope import run_packages, run_spec
from rulescope.assays import Assay, Budget
from rulescope.core import disk
from rulescope.core.disk import stem
from rulescope.engine.execution import Execution
from rulescope.learners.disco_config import Disco
from rulescope.learners.open_config import Open
from rulescope.records import Store
from rulescope.rules import rule_weights
from rulescope.run_spec import RunSpec

if TYPE_CHECKING:
    from rulescope.engine.scheduler import Report


def folder_name(assay: Assay, budget: Budget) -> str:
    """Return the name of a results folder: the assay, agent, rule and worlds.

    Agent and rule are left out if they are those of the published budget. Worlds that the user
    named come last.
    """
    parts, usual = [assay.id], assay.budget("paper")
    rule = budget.subject.rule
    parts += [budget.agent] if budget.agent not in ("", usual.agent) else []
    parts += [stem(rule_weights.short(rule))] if rule != usual.subject.rule else []
    parts += [f"in-{stem(each.name)}" for each in budget.worlds]
    return "-".join(parts)


def require_rules(specs: Iterable[RunSpec], weights: Path | None = None) -> None:
    """Raise unless the weights of every rule in ``specs`` can be loaded."""
    learners = (spec.learner for spec in specs)
    for name in dict.fromkeys(each.rule for each in learners if isinstance(each, Disco | Open)):
        rule_weights.load(name, weights)


def require_runnable(
    missing: Collection[RunSpec],
    store: Store,
    execution: Execution,
    folder: Path | None = None,
) -> None:
    """Raise the error that running ``missing`` would raise before its first run.

    Nothing is written: a plan calls this too, so that it refuses what the run would refuse, in
    the same words. ``folder`` is where the results would be written.
    """
    if folder is not None:
        disk.require_possible(folder.parent)
        disk.require_possible(folder)
    if missing:
        for spec in missing:
            run_spec.checked(spec)
        require_rules(missing, execution.weights)
        run_packages.require_plugins(missing)
        disk.require_possible(store.root)
        execution.require_possible(missing, store)


def run_missing(
    missing: Collection[RunSpec],
    store: Store,
    execution: Execution,
    *,
    name: str = "",
    report: Report | None = None,
) -> dict[str, str]:
    """Run ``missing`` into ``store``; return the causes of failures by run id."""
    if not missing:
        return {}
    store.require_writable()
    return execution.run_all(missing, store, name=name, report=report).failed
