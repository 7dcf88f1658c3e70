"""The ``table`` markers of pages; tables of our estimates beside the published ones are data.

``NAME`` is one of :data:`TABLES` or of :data:`OTHERS`. ``NAME@AGENT`` is the same table of
lifetimes with another agent than the page's. ``assay ASSAY LABEL`` is a table of an assay as its
analysis makes it. ``measured NAME`` is a table that is kept as it was measured, in
``docs/measured.json``. ``spec GROUP`` is the table of the fields of a part of a specification.
``claims LEVEL`` is the ledger of the claims of a level (or ``all``, or ``agents``: what survives a
change of agent), ``claim-paragraphs LEVEL`` a paragraph for each of them. ``result FOLDER/NAME`` is
a table that ``make results`` wrote into ``replication/results``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from documents import spec_fields
from documents.analyses import Source, printed
from documents.repository import Repository
from documents.spans import DocumentError
from rulescope.assays import ASSAYS, published
from rulescope.assays.open.open_carry import GAMES
from rulescope.assays.plan import Plan
from rulescope.assays.results import Column
from rulescope.core.errors import nearest
from rulescope.engine.branch_plan import count_shared, shared_fraction
from rulescope.render.tables import DASH, MINUS, RANGE_NOTE, cell, number
from rulescope.stats import Estimate

ASSAY, MEASURED, SPEC = "assay ", "measured ", "spec "
CLAIMS, PARAGRAPHS, RESULT = "claims ", "claim-paragraphs ", "result "
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Quantity(NamedTuple):
    """An estimate of every row of a table."""

    heading: str
    """Empty for a table of one quantity."""
    key: str
    """Of its estimates; ``{arm}`` stands for a label of the row."""
    digits: int = 3
    interval: bool = True


@dataclass(frozen=True)
class Comparison:
    """Our estimates beside the published ones: a row for each cell that the first quantity has."""

    assay: str
    quantities: tuple[Quantity, ...]
    seeds: str = ""
    """Of which cell, as in keys, the lifetimes are shown one by one; not shown if empty."""


TABLES: dict[str, Comparison] = {
    "E1-scores": Comparison(
        "E1", (Quantity("", "score/catch/{arm}/{scale}"),), seeds="score/catch/{arm}/{scale}"
    ),
    "E2-scores": Comparison(
        "E2", (Quantity("", "score/{scale}/{arm}"),), seeds="score/{scale}/{arm}"
    ),
    "E2-interaction": Comparison("E2", (Quantity("", "interaction/{scale}"),)),
    "E3-recovery": Comparison(
        "E3",
        (
            Quantity("area", "auc/action-flip/catch/{learner}"),
            Quantity("last tenth", "final/action-flip/catch/{learner}", interval=False),
            Quantity("mean delay", "rmd/action-flip/catch/{learner}/0.8", 0, interval=False),
            Quantity("share at 0.8", "attained/action-flip/catch/{learner}/0.8", 2, interval=False),
        ),
    ),
    "E3-contrasts": Comparison("E3", (Quantity("", "contrast/action-flip/{replay}"),)),
    "E-POP-scores": Comparison("E-POP", (Quantity("", "score/{learner}/{scale}"),)),
    "E-A3c-scores": Comparison("E-A3c", (Quantity("", "score/{learner}"),)),
    "exposure-scores": Comparison("exposure", (Quantity("", "score/natural/{learner}"),)),
    "E-A5-depths": Comparison(
        "E-A5",
        (
            Quantity("solved", "solved/{learner}/{depth}", 2),
            Quantity("return", "return/{learner}/{depth}"),
        ),
    ),
    "discovery-random": Comparison(
        "discovery",
        (Quantity("found", "found/random/{depth}"), Quantity("by chance", "chance/{depth}")),
    ),
    "OPEN-rates": Comparison("OPEN", (Quantity("", "rate/{game}/{arm}/1", 4),)),
    "OPEN-contrasts": Comparison(
        "OPEN", (Quantity("", "{contrast}-minus-{reference}/{game}/1", 4),)
    ),
    "minatar-context": Comparison("minatar-context", (Quantity("", "{contrast}/{game}/1", 4),)),
}
"""Tables of the replication, by name."""

OTHERS: dict[str, Callable[[Repository, str | None], list[list[str]]]] = {
    "coverage": lambda repository, agent: _coverage(repository, agent),
    "shared-prefixes": lambda _, __: _shared_prefixes(),
    "bench": lambda repository, _: repository.measured.worlds(),
    "bench-scaling": lambda repository, _: repository.measured.scaling(),
    "bench-baselines": lambda repository, _: repository.measured.baselines(),
}
"""Other tables: rows, the headings first."""


class Tables:
    """Fills the ``table`` markers of one page."""

    def __init__(self, repository: Repository, agent: str | None) -> None:
        self._repository = repository
        self._agent = agent

    def __call__(self, text: str) -> str:
        """Return the text of a marker."""
        if text.startswith(MEASURED):
            return self._measured(text.removeprefix(MEASURED))
        if text.startswith(ASSAY):
            return self._of_assay(*text.removeprefix(ASSAY).split())
        if text.startswith(SPEC):
            return self._spec(text.removeprefix(SPEC))
        ledger = self._repository.ledger
        if text.startswith(CLAIMS):
            return markdown(ledger.table(text.removeprefix(CLAIMS)))
        if text.startswith(PARAGRAPHS):
            return ledger.paragraphs(text.removeprefix(PARAGRAPHS))
        if text.startswith(RESULT):
            return markdown(ledger.recorded(text.removeprefix(RESULT)))
        name, _, agent = text.partition("@")
        if name in OTHERS:
            return markdown(OTHERS[name](self._repository, agent or self._agent))
        if name not in TABLES:
            raise DocumentError(f"table: no {name!r}{nearest(name, {*TABLES, *OTHERS})}")
        chosen = TABLES[name]
        source = Source.of(f"{chosen.assay}@{agent}" if agent else chosen.assay, self._agent)
        try:
            return _ComparisonTable(self._repository, chosen, source).text()
        except DocumentError as fault:
            raise DocumentError(f"table: {text}: {fault}") from fault

    def _of_assay(self, assay: str, label: str) -> str:
        source = Source.of(assay, self._agent)
        results = self._repository.analyses.results(source)
        tables = {table.label: table for table in results.tables}
        if label not in tables:
            raise DocumentError(f"table: {assay}: no {label!r}{nearest(label, tables)}")
        table = tables[label]
        rows = [
            [cell(one, how) for one, how in zip(r, table.columns, strict=True)] for r in table.rows
        ]
        below = f"Ours: {results.budget}; a page of `rulescope report --store replication/store`."
        return "\n".join([markdown([[c.heading for c in table.columns], *rows]), "", below])

    def _spec(self, name: str) -> str:
        if name not in spec_fields.GROUPS:
            raise DocumentError(f"table: spec: no {name!r}{nearest(name, spec_fields.GROUPS)}")
        return markdown(spec_fields.table(spec_fields.GROUPS[name]))

    def _measured(self, name: str) -> str:
        measured = self._repository.measured
        rows = [measured.get(f"{name}/headings"), *measured.get(f"{name}/rows")]
        return f"{markdown(rows)}\n\nMeasured by {measured.provenance(name)}."


class _ComparisonTable:
    """A comparison as Markdown."""

    def __init__(self, repository: Repository, chosen: Comparison, source: Source) -> None:
        self._analyses = repository.analyses
        self._chosen = chosen
        self._source = source
        self._results = repository.analyses.results(source)
        self._published = published.estimates(source.assay)

    def text(self) -> str:
        """Return the table, then whose lifetimes it shows and the command that prints them."""
        rows = list(self._rows())
        if not rows:
            raise DocumentError(f"no estimate fits {self._chosen.quantities[0].key!r}")
        empty = [i for i in range(len(rows[0])) if all(row[i] == DASH for row in rows[1:])]
        shown = [[one for i, one in enumerate(row) if i not in empty] for row in rows]
        below = f"Ours: {self._results.budget}; printed by `{self._source.command}`."
        lines = [markdown(shown), "", below]
        if any(" to " in one and "(" in one for row in shown[1:] for one in row):
            lines.append(RANGE_NOTE)
        return "\n".join(lines)

    def _rows(self) -> Iterator[list[str]]:
        first, *_ = self._chosen.quantities
        axes = re.findall(r"\{(\w+)\}", first.key)
        every = [labels for key in self._results.estimates if (labels := _labels(first.key, key))]
        known = [labels for labels in every if not self._ours(first, labels).missing]
        if known:
            yield self._headings(axes)
        for labels in known:
            yield [
                *(_shown(axis, labels[axis]) for axis in axes),
                f"{self._ours(first, labels).n}",
                *chain.from_iterable(self._pair(one, labels) for one in self._chosen.quantities),
                self._printed_n(first, labels),
                *([self._seeds(labels)] if self._chosen.seeds else []),
            ]

    def _headings(self, axes: Sequence[str]) -> list[str]:
        names = [quantity.heading for quantity in self._chosen.quantities]
        whose = ("ours", "published")
        pairs = [f"{name}, {one}" if name else one for name in names for one in whose]
        seeds = ["our lifetimes"] if self._chosen.seeds else []
        return [*axes, "n", *pairs, "n published", *seeds]

    def _ours(self, quantity: Quantity, labels: Mapping[str, str]) -> Estimate:
        return self._analyses.ours(self._source, quantity.key.format(**labels))

    def _pair(self, quantity: Quantity, labels: Mapping[str, str]) -> tuple[str, str]:
        column = Column("", quantity.digits, quantity.interval)
        key = quantity.key.format(**labels)
        theirs = cell(printed(self._source, key), column) if key in self._published else DASH
        return cell(self._ours(quantity, labels), column), theirs

    def _printed_n(self, quantity: Quantity, labels: Mapping[str, str]) -> str:
        key = quantity.key.format(**labels)
        return f"{self._published[key].n}" if key in self._published else DASH

    def _seeds(self, labels: Mapping[str, str]) -> str:
        every = self._analyses.seeds(self._source, self._chosen.seeds.format(**labels))
        return " ".join(number(value, 2).replace("0.", ".", 1) for value in every)


def _labels(pattern: str, key: str) -> dict[str, str] | None:
    """Return the labels of ``key`` if it fits ``pattern``.

    >>> _labels("score/{arm}/{scale}", "score/live/0.1")
    {'arm': 'live', 'scale': '0.1'}
    """
    found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern), key)
    return None if found is None else found.groupdict()


def _shown(axis: str, label: str) -> str:
    """Return a label as it is read: reward scales as powers of ten, differences with a minus.

    >>> _shown("scale", "0.001"), _shown("scale", "1"), _shown("contrast", "live-minus-zero")
    ('10⁻³', '1', 'live − zero')
    """
    if axis == "game":
        return GAMES[label]
    if axis != "scale" or label == "1":
        return label.replace("-minus-", f" {MINUS} ")
    exponent = math.log10(float(label))
    if not exponent.is_integer():
        return label
    return f"10{'' if exponent == 1 else str(round(exponent)).translate(SUPERSCRIPTS)}"


def _coverage(repository: Repository, agent: str | None) -> list[list[str]]:
    """Return how many lifetimes of each published grid there are, by agent.

    First with the agent of the assay's cohort, then with that of the page where it is another one.
    """
    rows = [["assay", "question", "its agent", "lifetimes", f"with {agent}", "in the whole grid"]]
    for name, assay in ASSAYS.items():
        own, other = (repository.analyses.plan(Source.of(name, one)) for one in (None, agent))
        title = name if name == assay.name else f"{name} · {assay.name}"
        counts = [len(plan.present & plan.runs.keys()) for plan in (own, other)]
        same = own.budget.agent == other.budget.agent
        rows.append(
            [
                title,
                assay.question,
                own.budget.agent or DASH,
                f"{counts[0]:,}",
                DASH if same else f"{counts[1]:,}",
                f"{len(own.runs):,}",
            ]
        )
    return rows


def _shared_prefixes() -> list[list[str]]:
    """Return the iterations that the published grids save because lifetimes share their beginning.

    Grids that save nothing are left out.
    """
    rows = [["assay", "lifetimes", "of which continue others", "iterations", "saved"]]
    for name, assay in ASSAYS.items():
        plan = Plan.of(assay, assay.budget("paper"))
        specs = [*plan.donors.values(), *plan.runs.values()]
        shared = count_shared(specs)
        if shared:
            title = name if name == assay.name else f"{name} · {assay.name}"
            total = sum(spec.iterations - spec.start for spec in specs)
            share = f"{100 * shared_fraction(specs):.1f} %"
            rows.append([title, f"{len(specs):,}", f"{len(shared):,}", f"{total:,}", share])
    return rows


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table, the first one its headings."""
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
