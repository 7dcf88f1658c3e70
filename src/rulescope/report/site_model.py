"""Data that a report is made from: runs, assay pages, profiles and mechanism views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.comparison import Comparison, compare, tally
from rulescope.assays.comparison import table as comparison_table
from rulescope.assays.estimates import label_text
from rulescope.assays.plan import Plan
from rulescope.assays.published_agreement import JUDGED, Verdict
from rulescope.assays.results import Results, Table
from rulescope.audit.atlas import make_atlas
from rulescope.audit.atlas_rows import Atlas
from rulescope.core.disk import stem
from rulescope.records import Manifest
from rulescope.run_spec import RunSpec
from rulescope.stats import Estimate

if TYPE_CHECKING:
    from rulescope.audit.profile import Profile
    from rulescope.claims.judged_ledger import JudgedLedger
    from rulescope.mechanism.view_folder import StoredView

Floats = NDArray[np.float64]
Plain = str | int | float | bool | None
Unreadable = tuple[tuple[str, str], ...]
"""Folders of results that are left out: name, reason."""
Progress = Callable[[int, int, str], None]
"""Callback: steps done, steps in all, the present step."""
PUBLICATION = "publication"
"""Folder of figures and tables for print, inside of a report."""


def ignore_progress(_done: int, _total: int, _step: str) -> None:
    """Report nothing."""


class TerminalArray(NamedTuple):
    """An array of a carrier at the end of a run: name, shape, Euclidean norm."""

    name: str
    shape: tuple[int, ...]
    norm: float | None
    """None unless the array is of floating point."""


class Evaluation(NamedTuple):
    """Reward of a frozen policy after the end of a run."""

    policy: str
    lanes: int
    steps: int
    rate: float
    """Reward per interaction, unscaled."""


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """One recorded run, as much of it as a report shows."""

    spec: RunSpec
    manifest: Manifest
    fields: Mapping[str, Plain]
    """Columns to filter by: every field of the specification and of the provenance."""
    log: Mapping[str, Floats]
    """Numeric columns, each [rows]. A long log is thinned (see ``every``). Steps count from the
    start of the lifetime; those before a fork are included."""
    every: int
    """One of this many rows of the log is in ``log``."""
    terminal: tuple[TerminalArray, ...]
    evaluations: tuple[Evaluation, ...] = ()


@dataclass(frozen=True, eq=False)
class AssayPage:
    """One assay under one rule and agent: the plan, and the results of the runs in the store."""

    name: str
    """Of its file and of its results folder: ``E1``, ``E1-reference``."""
    plan: Plan
    results: Results
    figures: tuple[str, ...]
    """Labels of the figures that are drawn from it."""
    others: tuple[tuple[int, int], ...] = ()
    """Other lengths at which the store has runs of the assay: iterations, number of runs."""

    @property
    def group(self) -> str:
        """Suffix that names an unusual rule or agent; empty for the published ones."""
        return self.name.removeprefix(self.plan.assay.id).removeprefix("-")

    @property
    def title(self) -> str:
        """Id and name of the assay, once if they are the same."""
        assay = self.plan.assay
        return assay.id if assay.id == assay.name else f"{assay.id} · {assay.name}"

    @property
    def href(self) -> str:
        """File of the page."""
        return f"assay-{self.name}.html"

    @property
    def folder(self) -> str:
        """Folder of its figures and tables for print."""
        return f"{PUBLICATION}/{self.group}" if self.group else PUBLICATION

    @cached_property
    def present(self) -> int:
        """Number of planned runs that the store has."""
        return sum(key in self.plan.present for key in self.plan.runs)

    @cached_property
    def complete(self) -> int:
        """Number of cells that have every run."""
        return sum(self.plan.done(cell) == len(cell.runs) for cell in self.plan.cells)

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Our estimates that have a published value, by key; disagreements first."""
        return {row.key: row for row in compare(self.results)}

    @cached_property
    def compared(self) -> Table | None:
        """Table of our estimates beside the published ones, if there are any of these."""
        rows = list(self.comparisons.values())
        return comparison_table(self.results, rows) if rows else None

    @property
    def agreement(self) -> dict[Verdict, int]:
        """Number of comparisons by verdict, disagreements first."""
        return tally(self.comparisons.values())

    @property
    def contradicted(self) -> list[Comparison]:
        """Comparisons in which ours contradicts the published value."""
        return [row for row in self.comparisons.values() if row.verdict == "contradicted"]


@dataclass(frozen=True, eq=False)
class MechanismView:
    """A mechanism view and its files."""

    slug: str
    """Unique in a report: ``mechanism-targets``, ``mechanism-targets-random-0``."""
    exhibit: StoredView
    files: Mapping[str, bytes]
    """Figures and tables by name, as the view wrote them."""

    @property
    def href(self) -> str:
        """Address of the view on its page."""
        return f"mechanism.html#{self.slug}"

    @property
    def folder(self) -> str:
        """Folder of its files in the report."""
        return f"{PUBLICATION}/{self.slug}"


@dataclass(frozen=True, eq=False)
class Site:
    """All data of a report."""

    runs: Mapping[str, RecordedRun]
    """By run id, sorted."""
    pages: tuple[AssayPage, ...]
    """In the order of the catalogue."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """Profiles of audits by the folder that holds them."""
    views: tuple[MechanismView, ...] = ()
    checks: tuple[Table, ...] = ()
    """Tables of the recorded checks: numerics and worlds."""
    ledger: JudgedLedger | None = None
    """The claims of the published audit, if the store has a lifetime of any of their cells."""
    problems: tuple[tuple[str, str], ...] = ()
    """Records that could not be read: run id, reason."""
    unanalysed: tuple[tuple[str, str], ...] = ()
    """Assays whose analysis failed: page name, reason."""
    unreadable: Unreadable = ()
    """Profiles, mechanism views and checks that could not be read."""

    @cached_property
    def atlas(self) -> Atlas | None:
        """The profiles side by side, if there are two or more."""
        return make_atlas(self.profiles) if len(self.profiles) > 1 else None

    @cached_property
    def interactions(self) -> int:
        """Interactions of all runs together."""
        return sum(run.spec.interactions for run in self.runs.values())

    @cached_property
    def started(self) -> int:
        """Number of assays that have a page."""
        return len({page.plan.assay.id for page in self.pages})

    @cached_property
    def agreement(self) -> dict[Verdict, int]:
        """Number of comparisons with published values by verdict, disagreements first."""
        return tally(row for _, row in self.comparisons)

    @cached_property
    def comparisons(self) -> list[tuple[AssayPage, Comparison]]:
        """Every comparison with a published value, with its page.

        Baselines are on the pages of several agents and rules; the same estimate counts once.
        """
        found: dict[tuple[str, str, Estimate], tuple[AssayPage, Comparison]] = {}
        for page in self.pages:
            for row in page.comparisons.values():
                if row.verdict in JUDGED:
                    found.setdefault((page.plan.assay.id, row.key, row.ours), (page, row))
        return list(found.values())

    @cached_property
    def recipients(self) -> dict[str, list[str]]:
        """Ids of the runs that start with state of a run, by the id of that donor."""
        found: dict[str, list[str]] = {}
        for key, run in self.runs.items():
            for parent in run.manifest.parents:
                found.setdefault(parent, []).append(key)
        return found

    @cached_property
    def cells(self) -> dict[str, list[tuple[AssayPage, str]]]:
        """Page and labels of every cell that a run belongs to, by run id."""
        found: dict[str, list[tuple[AssayPage, str]]] = {}
        for page in self.pages:
            for donor in page.plan.donors:
                found.setdefault(donor, []).append((page, "donor"))
            for cell in page.plan.cells:
                labels = ", ".join(label_text(label) for label in cell.labels.values())
                for run in cell.runs:
                    found.setdefault(run.id, []).append((page, labels))
        return found

    @cached_property
    def observed(self) -> dict[str, list[tuple[MechanismView, str]]]:
        """Views that observed a run, and its name in each, by run id."""
        found: dict[str, list[tuple[MechanismView, str]]] = {}
        for view in self.views:
            for run in view.exhibit.runs:
                found.setdefault(run.spec.id, []).append((view, run.name))
        return found


def distinct_slugs(names: Iterable[str]) -> list[str]:
    """Return a name for each that can be part of an address, all different.

    >>> distinct_slugs(["a/b", "a-b"])
    ['a-b', 'a-b-2']
    """
    slugs: list[str] = []
    for name in names:
        slug, number = stem(name), 2
        while slug in slugs:
            slug, number = f"{stem(name)}-{number}", number + 1
        slugs.append(slug)
    return slugs
