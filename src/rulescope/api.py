"""The functions of ``import rulescope``: one run, one assay, one audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.assays import Assay, Results, Selection, find, narrowed
from rulescope.assays.assay_run import require_runnable, run_missing
from rulescope.assays.plan import Plan
from rulescope.assays.recorded_plans import record_plan
from rulescope.assays.subject import find_subject
from rulescope.audit.audit_plan import analyse_audit, plan_audit
from rulescope.audit.profile import Profile
from rulescope.core.errors import RulescopeError
from rulescope.engine.campaign import Campaign
from rulescope.engine.execution import Execution
from rulescope.records import Record, Store
from rulescope.rules import rule_weights
from rulescope.rules.rule_weights import RuleWeights
from rulescope.run_spec import RunSpec

if TYPE_CHECKING:
    from rulescope.lifetime import Progress

STORE = Path("store")


def run(
    spec: RunSpec,
    store: Store | Path | str = STORE,
    *,
    weights: Path | None = None,
    device: str = "cpu",
    report: Callable[[Progress], None] | None = None,
) -> Record:
    """Return the record of one run, from ``store`` if it is there.

    Donors are run first. An interrupted run continues from its checkpoint, bit-identically.
    ``weights`` is where the rule's weights are, if not in the usual places; ``report`` is called
    after every iteration.
    """
    from rulescope.runner import find_or_make  # here, because torch takes seconds to import

    keep = _open(store)
    if spec.id not in keep:
        keep.require_writable()
    return find_or_make(spec, keep, report=report, weights=weights, device=device)


def run_assay(
    assay: str | Assay,
    *,
    preset: str = "quick",
    seeds: int | None = None,
    iterations: int | None = None,
    episodes: int | None = None,
    arms: Sequence[str] = (),
    scales: Sequence[float] = (),
    tasks: Sequence[str] = (),
    reference_best: float | None = None,
    conditions: Sequence[str] = (),
    agent: str | None = None,
    rule: str | None = None,
    store: Store | Path | str = STORE,
    weights: Path | None = None,
    workers: int | None = None,
    report: Callable[[Campaign], None] | None = None,
) -> Results:
    """Return the results of an assay, having run what ``store`` lacks.

    ``assay`` is an id or a name. ``preset`` is its budget: smoke, quick, standard or paper; the
    options after it narrow that. ``rule`` is the rule under audit: a name, a file of weights, the
    folder of a discovery, or a plug-in. Runs are executed by ``workers`` processes (one per core
    if None), so a script that calls this needs ``if __name__ == "__main__":``. If runs fail, the
    others are finished first; then the causes are raised.
    """
    keep, found = _open(store), find(assay) if isinstance(assay, str) else assay
    subject = None
    if rule is not None:
        subject, weights = find_subject(rule, weights)
    selection = Selection(
        seeds=seeds,
        iterations=iterations,
        episodes=episodes,
        arms=arms,
        scales=scales,
        tasks=tasks,
        reference_best=reference_best,
        conditions=conditions,
        agent=agent,
        subject=subject,
    )
    budget = narrowed(found, found.budget(preset), selection)
    plan = Plan.of(found, budget, keep)
    _run_all([plan], keep, rule, weights, workers, found.id, report)
    return Plan.of(found, budget, keep).analyse(keep)


def audit_rule(
    rule: str = "sprout",
    *,
    preset: str = "quick",
    seeds: int | None = None,
    only: Sequence[str] = (),
    agent: str | None = None,
    env: str | None = None,
    reference_best: float | None = None,
    store: Store | Path | str = STORE,
    weights: Path | None = None,
    workers: int | None = None,
    report: Callable[[Campaign], None] | None = None,
) -> Profile:
    """Return the profile of a rule: the effects of its learning history along five axes.

    ``only`` names assays of the audit (all if empty). ``env`` is the world to audit in, if not
    those of the assays. Other options are as of :func:`run_assay`.
    """
    keep = _open(store)
    audit = plan_audit(
        rule,
        keep,
        preset=preset,
        seeds=seeds,
        only=only,
        agent=agent,
        weights=weights,
        env=env,
        reference_best=reference_best,
    )
    _run_all(audit.plans, keep, rule, audit.weights, workers, "audit", report)
    return analyse_audit(audit, keep).profile


def load_rule(rule: str | Path, weights: Path | None = None) -> RuleWeights:
    """Return the weights of a rule: by its name, such as ``sprout``, or from a file (a path).

    ``weights`` is where the file of a released rule is, if not in the usual places.
    """
    return (
        rule_weights.read_any(rule) if isinstance(rule, Path) else rule_weights.load(rule, weights)
    )


def _open(store: Store | Path | str) -> Store:
    return store if isinstance(store, Store) else Store(Path(store))


def _run_all(
    plans: Sequence[Plan],
    store: Store,
    rule: str | None,
    weights: Path | None,
    workers: int | None,
    name: str,
    report: Callable[[Campaign], None] | None,
) -> None:
    """Run what ``plans`` lack; raise an error with the causes if any run fails."""
    missing = list({key: run for plan in plans for key, run in plan.missing.items()}.values())
    execution = Execution(workers=workers, weights=weights)
    require_runnable(missing, store, execution)
    for plan in plans:
        record_plan(store, plan.assay, plan.budget, rule)
    failed = run_missing(missing, store, execution, name=name, report=report)
    if failed:
        causes = "\n".join(f"run {key[:12]}: {cause}" for key, cause in failed.items())
        raise RulescopeError(f"{len(failed)} of {len(missing)} runs failed\n{causes}")
