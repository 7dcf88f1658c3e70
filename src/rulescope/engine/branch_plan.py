"""Which runs of a campaign start from the state of another one, and where they branch off.

Runs with equal first iterations form a tree. One of them, the trunk, starts from the beginning;
each other one starts from the last state that it has in common with a run before it. Which one is
the trunk makes no difference to the iterations in total, so the order of the runs is kept, with one
exception: a run never waits for one that needs donors which it does not need itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rulescope.records.branch_checkpoints import Branch
from rulescope.run_spec import RunSpec
from rulescope.shared_prefix import branch_of, can_share, list_branch_points

LEAST = 10
"""Shared iterations that are worth a file."""


@dataclass
class BranchPlan:
    """The branches of a set of runs."""

    starts: dict[str, Branch] = field(default_factory=dict)
    """Run id to the branch that it starts from; others start from the beginning."""
    parents: dict[str, str] = field(default_factory=dict)
    """Run id to the run that saves this branch; none if its checkpoint exists already."""
    groups: list[list[str]] = field(default_factory=list)
    """Ids of runs that have their first iterations in common."""
    _users: dict[str, dict[int, tuple[str, ...]]] = field(default_factory=dict)

    def users(self, run: str) -> dict[int, tuple[str, ...]]:
        """Return the iterations after which ``run`` saves a branch, with the runs that need it."""
        return self._users.get(run, {})

    def add(self, run: str, branch: Branch, parent: str | None) -> None:
        """Let ``run`` start from ``branch``, which ``parent`` saves, or which exists (None)."""
        self.starts[run] = branch
        if parent is not None:
            self.parents[run] = parent
            users = self._users.setdefault(parent, {})
            users[branch.iteration] = (*users.get(branch.iteration, ()), run)


def plan_branches(missing: Mapping[str, RunSpec], existing: Collection[Branch] = ()) -> BranchPlan:
    """Plan the branches of the runs ``missing``, by id, in the order of their priority.

    ``existing`` are branches whose checkpoints were left by an earlier campaign.
    """
    plan = BranchPlan()
    for group in _group_runs(missing):
        if len(group) > 1 or existing:
            _plan_group(plan, group, existing)
        plan.groups.append(list(group))
    return plan


def count_shared(specs: Iterable[RunSpec]) -> dict[str, int]:
    """Return the iterations that each of ``specs`` has in common with a run before it, by run id.

    Runs that share nothing are left out.
    """
    missing = {spec.id: spec for spec in specs}
    starts = plan_branches(missing).starts
    return {run: branch.iteration - missing[run].start for run, branch in starts.items()}


def shared_fraction(specs: Iterable[RunSpec]) -> float:
    """Return the fraction of the iterations of ``specs`` that need not be executed."""
    specs = list(specs)
    total = sum(spec.iterations - spec.start for spec in specs)
    return sum(count_shared(specs).values()) / total if total else 0.0


def _group_runs(missing: Mapping[str, RunSpec]) -> list[dict[str, RunSpec]]:
    """Return the runs that are equal for long enough to share anything, group by group."""
    groups: defaultdict[Branch, dict[str, RunSpec]] = defaultdict(dict)
    for run, spec in missing.items():
        first = spec.start + LEAST
        if can_share(spec) and first < spec.iterations:
            groups[branch_of(spec, first)][run] = spec
    return list(groups.values())


def _plan_group(
    plan: BranchPlan, group: Mapping[str, RunSpec], existing: Collection[Branch]
) -> None:
    points = {point for spec in group.values() for point in list_branch_points(spec)}
    points |= {branch.iteration for branch in existing}
    donors = {run: set(spec.donors) for run, spec in group.items()}
    passing: dict[Branch, str] = {}  # the first run that passes each branch
    for run in sorted(group, key=lambda run: len(donors[run])):
        spec = group[run]
        own = [point for point in points if spec.start + LEAST <= point < spec.iterations]
        branches = [branch_of(spec, point) for point in sorted(own, reverse=True)]
        for branch in branches:
            parent = passing.get(branch)
            if branch in existing:
                plan.add(run, branch, None)
            elif parent is not None and donors[parent] <= donors[run]:
                plan.add(run, branch, parent)
            else:
                passing.setdefault(branch, run)
                continue
            break
