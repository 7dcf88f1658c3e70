"""Context of the provenance page: coverage of the assays, and identities of the records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rulescope.assays import Cell
from rulescope.assays.estimates import label_text
from rulescope.core.runtime import Identity
from rulescope.report.page_templates import render_page
from rulescope.report.site_model import AssayPage, RecordedRun, Site

IDENTITY_NAMES = {
    "blas": "BLAS",
    "cpu": "CPU",
    "device": "device",
    "isa": "instruction set",
    "numpy": "NumPy",
    "onednn": "oneDNN",
    "os": "operating system",
    "python": "Python",
    "threads": "threads",
    "torch": "PyTorch",
    "commit": "commit",
    "dirty": "uncommitted changes",
    "version": "version",
    "name": "rule",
    "sha256": "sha256 of the file",
    "digest": "sha256 of the arrays",
}
"""Names of the parts of an identity, for people."""


@dataclass(frozen=True)
class Origin:
    """One identity that records have in common."""

    name: str
    """Short, such as ``R1``."""
    facts: Identity
    runs: frozenset[str]


def provenance_page(site: Site) -> str:
    """Return the page."""
    machines = _origins("R", site.runs, lambda run: run.manifest.runtime)
    sources = _origins("S", site.runs, lambda run: run.manifest.source)
    ruled = {key: run for key, run in site.runs.items() if run.manifest.rule is not None}
    weights = _origins("W", ruled, _rule_identity)
    return render_page(
        "provenance",
        site,
        title="Coverage and provenance",
        here="provenance.html",
        coverage=[_coverage(page, machines, sources, weights) for page in site.pages],
        identities=[
            _identity_table("Runtimes", machines),
            _identity_table("Sources", sources),
            _identity_table("Rule weights", weights),
        ],
        grids=[_grid(page) for page in site.pages],
        others=[run for run in site.runs if run not in site.cells and run not in site.observed],
    )


def _rule_identity(run: RecordedRun) -> Identity:
    rule = run.manifest.rule
    if rule is None:
        return {}
    return {"name": rule.name, "sha256": rule.sha256, "digest": rule.digest}


def _origins(
    letter: str, runs: Mapping[str, RecordedRun], facts: Callable[[RecordedRun], Identity]
) -> list[Origin]:
    """Return the distinct identities of ``runs``, the most frequent first."""
    found: dict[str, list[str]] = {}
    for key, run in runs.items():
        found.setdefault(json.dumps(facts(run), sort_keys=True), []).append(key)
    order = sorted(found, key=lambda key: (-len(found[key]), key))
    return [
        Origin(f"{letter}{number}", json.loads(key), frozenset(found[key]))
        for number, key in enumerate(order, start=1)
    ]


def _shares(page: AssayPage, origins: Iterable[Origin]) -> dict[str, int]:
    """Return the number of runs of a page that have each of ``origins``, by its name."""
    held = page.plan.present
    return dict(+Counter({origin.name: len(origin.runs & held) for origin in origins}))


def _coverage(
    page: AssayPage,
    machines: Sequence[Origin],
    sources: Sequence[Origin],
    weights: Sequence[Origin],
) -> dict[str, Any]:
    donors = page.plan.donors
    here = sum(donor in page.plan.present for donor in donors)
    by_weights = _shares(page, weights)
    # An assay may compare rules, but each should have one version.
    rules = [str(origin.facts["name"]) for origin in weights if origin.name in by_weights]
    return {
        "page": page,
        "origins": [
            *(
                (_counts(counts), len(counts) > 1)
                for counts in (_shares(page, machines), _shares(page, sources))
            ),
            (_counts(by_weights), len(set(rules)) < len(rules)),
        ],
        "cells": f"{page.complete:,}/{len(page.plan.cells):,}",
        "runs": f"{page.present:,}/{len(page.plan.runs):,}",
        "donors": f"{here:,}/{len(donors):,}" if donors else "—",
    }


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in counts.items()) or "—"


def _identity_table(title: str, found: Sequence[Origin]) -> dict[str, Any]:
    keys = list(dict.fromkeys(key for origin in found for key in origin.facts))
    headings = ["Name", *(IDENTITY_NAMES.get(key, key) for key in keys), "Lifetimes"]
    rows = [
        [origin.name, *(_fact(origin.facts.get(key)) for key in keys), f"{len(origin.runs):,}"]
        for origin in found
    ]
    numbers = 1
    if found and len(found) < len(keys):  # transposed: a page is longer than it is wide
        headings, *rows = (list(line) for line in zip(headings, *rows, strict=True))
        numbers = 0
    return {"title": title, "headings": headings, "rows": rows, "numbers": numbers}


def _fact(value: object) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _grid(page: AssayPage) -> dict[str, Any]:
    return {
        "page": page,
        "title": f"{page.title} {page.group}".strip(),
        "axes": list(page.plan.cells[0].labels),
        "cells": [_cell(page, cell) for cell in page.plan.cells],
        "donors": sum(key in page.plan.missing for key in page.plan.donors),
    }


def _cell(page: AssayPage, cell: Cell) -> dict[str, Any]:
    done = page.plan.done(cell)
    missing = [run.seed for run in cell.runs if run.id not in page.plan.present]
    return {
        "labels": [label_text(label) for label in cell.labels.values()],
        "count": f"{done}/{len(cell.runs)}",
        "missing": f"seeds {seed_ranges(missing)}" if missing else "",
        "state": "complete" if not missing else "partial" if done else "none",
    }


def seed_ranges(seeds: Sequence[int]) -> str:
    """Return seeds in words, consecutive ones as a range.

    >>> seed_ranges([0, 1, 2, 5, 7, 8])
    '0–2, 5, 7–8'
    """
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and seed == ranges[-1][-1] + 1:
            ranges[-1].append(seed)
        else:
            ranges.append([seed])
    return ", ".join(f"{one[0]}–{one[-1]}" if len(one) > 1 else f"{one[0]}" for one in ranges)
