"""What a report is made from: a store, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.comparison import Comparison, compare, tally
from rulescope.assays.comparison import table as comparison_table
from rulescope.assays.plan import Plan
from rulescope.assays.published_agreement import JUDGED, Verdict
from rulescope.assays.results import Results, Table
from rulescope.records import Manifest
from rulescope.spec.run_spec import RunSpec
from rulescope.stats import Estimate

if TYPE_CHECKING:
    from rulescope.audit.profile import Profile
    from rulescope.mechanism.view_folder import StoredView

Floats = NDArray[np.float64]
Plain = str | int | float | bool | None
Damaged = tuple[tuple[str, str], ...]
"""Folders of results that are left out: name, reason."""
PUBLICATION = "publication"
"""The folder of what is for print, inside of a report."""


class Kept(NamedTuple):
    """A terminal array of a carrier: its name, shape, and Euclidean norm."""

    name: str
    shape: tuple[int, ...]
    norm: float | None
    """None if it is not of floating point."""


class Trial(NamedTuple):
    """How a frozen policy fared when the lifetime was over."""

    policy: str
    lanes: int
    steps: int
    rate: float
    """Reward per interaction, unscaled."""


@dataclass(frozen=True, eq=False)
class Life:
    """One lifetime, as much of it as a report shows."""

    spec: RunSpec
    manifest: Manifest
    fields: Mapping[str, Plain]
    """What can be asked about it: every field of its specification, and of where it was lived."""
    log: Mapping[str, Floats]
    """Columns of numbers, each [rows]; of long logs, every so many rows (see ``every``). Steps are
    counted from birth, those before a fork too."""
    every: int
    """Of how many rows of the log one is here."""
    kept: tuple[Kept, ...]
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, eq=False)
class AssayPage:
    """An assay, what was planned and what its lifetimes say."""

    name: str
    """Of its file, and of its results folder: ``E1``, ``E1-reference``."""
    plan: Plan
    results: Results
    figures: tuple[str, ...]
    """Labels of the figures that it feeds."""
    others: tuple[tuple[int, int], ...] = ()
    """Lengths at which the store has lifetimes of the assay as well: iterations, how many."""

    @property
    def group(self) -> str:
        """What is unusual about its rule or conventions; empty for the published ones."""
        return self.name.removeprefix(self.plan.assay.id).removeprefix("-")

    @property
    def title(self) -> str:
        """Its assay: id and name, once if they are the same."""
        asked = self.plan.assay
        return asked.id if asked.id == asked.name else f"{asked.id} · {asked.name}"

    @property
    def href(self) -> str:
        """Its page."""
        return f"assay-{self.name}.html"

    @cached_property
    def present(self) -> int:
        """How many of its planned lifetimes there are."""
        return sum(key in self.plan.present for key in self.plan.runs)

    @cached_property
    def complete(self) -> int:
        """How many of its cells have every lifetime."""
        return sum(self.plan.done(cell) == len(cell.runs) for cell in self.plan.cells)

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """Our estimates that have a published value, by key; disagreements first."""
        return {row.key: row for row in compare(self.results)}

    @cached_property
    def compared(self) -> Table | None:
        """Our estimates beside the published ones, if there are any of these."""
        rows = list(self.comparisons.values())
        return comparison_table(self.results, rows) if rows else None

    @property
    def agreement(self) -> dict[Verdict, int]:
        """How many of its comparisons have each verdict, disagreements first."""
        return tally(self.comparisons.values())

    @property
    def differing(self) -> list[Comparison]:
        """Its estimates that differ from the published."""
        return [row for row in self.comparisons.values() if row.verdict == "differs"]


@dataclass(frozen=True, eq=False)
class Exhibited:
    """A mechanism view, and its files."""

    slug: str
    """Its own in a report: ``mechanism-targets``, ``mechanism-targets-random-0``."""
    shown: StoredView
    files: Mapping[str, bytes]
    """Figures and tables by name, as the view wrote them."""

    @property
    def href(self) -> str:
        """Its place."""
        return f"mechanism.html#{self.slug}"

    @property
    def folder(self) -> str:
        """Where its files are in the report."""
        return f"{PUBLICATION}/{self.slug}"


@dataclass(frozen=True, eq=False)
class Site:
    """All of a report."""

    lives: Mapping[str, Life]
    """By run id, sorted."""
    pages: tuple[AssayPage, ...]
    """In the order of the catalogue."""
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    """Profiles of audits by the folder that holds them."""
    views: tuple[Exhibited, ...] = ()
    """Mechanism views, in the order in which they are told about."""
    checks: tuple[Table, ...] = ()
    """Tables of the recorded checks: numerics and worlds."""
    problems: tuple[tuple[str, str], ...] = ()
    """Records that could not be read: run id, reason."""
    unanalysed: tuple[tuple[str, str], ...] = ()
    """Assays whose lifetimes could not be analysed: page name, reason."""
    damaged: Damaged = ()
    """Profiles and mechanism views that could not be read."""

    @cached_property
    def interactions(self) -> int:
        """How many were lived in all."""
        return sum(life.spec.interactions for life in self.lives.values())

    @cached_property
    def begun(self) -> int:
        """How many assays there are lifetimes of."""
        return len({page.plan.assay.id for page in self.pages})

    @cached_property
    def agreement(self) -> dict[Verdict, int]:
        """How many comparisons with published values have each verdict, disagreements first."""
        return tally(row for _, row in self.comparisons)

    @cached_property
    def comparisons(self) -> list[tuple[AssayPage, Comparison]]:
        """Every comparison with a published value, with its page.

        Baselines stand on the pages of several agents and rules; the same estimate counts once.
        """
        found: dict[tuple[str, str, Estimate], tuple[AssayPage, Comparison]] = {}
        for page in self.pages:
            for row in page.comparisons.values():
                if row.verdict in JUDGED:
                    found.setdefault((page.plan.assay.id, row.key, row.ours), (page, row))
        return list(found.values())

    @cached_property
    def recipients(self) -> dict[str, list[str]]:
        """Who began with something of a lifetime, by the id of that lifetime."""
        found: dict[str, list[str]] = {}
        for run, life in self.lives.items():
            for parent in life.manifest.parents:
                found.setdefault(parent, []).append(run)
        return found

    @cached_property
    def places(self) -> dict[str, list[tuple[AssayPage, str]]]:
        """The cells that a lifetime belongs to, in words, by run id."""
        found: dict[str, list[tuple[AssayPage, str]]] = {}
        for page in self.pages:
            for donor in page.plan.donors:
                found.setdefault(donor, []).append((page, "donor"))
            for cell in page.plan.cells:
                words = ", ".join(shown(label) for label in cell.labels.values())
                for run in cell.runs:
                    found.setdefault(run.id, []).append((page, words))
        return found

    @cached_property
    def watched(self) -> dict[str, list[tuple[Exhibited, str]]]:
        """The views that looked at a lifetime, and what they call it, by run id."""
        found: dict[str, list[tuple[Exhibited, str]]] = {}
        for view in self.views:
            for run in view.shown.runs:
                found.setdefault(run.spec.id, []).append((view, run.name))
        return found


def shown(label: str | float) -> str:
    """Return a label of a grid as it is printed."""
    return f"{label:g}" if isinstance(label, float) else label
