"""Figures and tables for print, and the list of the runs behind each of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from rulescope.assays import ASSAYS, Assay, Results, design_tables
from rulescope.assays.figures import (
    ENDINGS,
    FIGURES,
    SCHEMATICS,
    figures_in_worlds,
    write_figure,
)
from rulescope.assays.published_agreement import AGREEMENT_RULE, JUDGED
from rulescope.assays.results import Table
from rulescope.audit import atlas_folder
from rulescope.audit.atlas_rows import Atlas
from rulescope.claims.ledger_tables import agents_table, ledger_table
from rulescope.core.disk import write_whole
from rulescope.render.tables import write_table
from rulescope.report.site_model import (
    PUBLICATION,
    AssayPage,
    MechanismView,
    Progress,
    Site,
    ignore_progress,
)

INDEX = "figures.json"
PUBLISHED = "published"
"""Name of the group of the published rule and agent in the list."""
CHECK, CATALOGUE, CLAIMS = "rulescope check", "catalogue", "rulescope claims"
AUDITS = "rulescope audit"
"""Sources of tables of no single assay: recorded checks, the catalogue, the ledger of claims."""
TABLES: dict[str, str] = {
    **{label: assay.id for assay in ASSAYS.values() for label in assay.tables},
    "tab:numeric": CHECK,
    **dict.fromkeys(design_tables.LABELS, CATALOGUE),
}
"""The published tables, and the source of each."""

Entry = dict[str, Any]

AUDITED = {"scale-audit": ("E1", ("live", "pin"))}
"""Figures that are not published: the assay of each, and the arms that it compares."""


def figures(assay: Assay, results: Results) -> tuple[str, ...]:
    """Return the labels of the figures that ``results`` have data for, the simplest first."""
    if results.worlds:
        return figures_in_worlds(results)
    arms = results.axes.get("arm", ())
    own = [
        label
        for label, (name, needed) in AUDITED.items()
        if name == assay.id and all(arm in arms for arm in needed)
    ]
    known = {assay.id: results}
    listed = (*own, *(label for label in assay.figures if label in FIGURES))
    return tuple(label for label in listed if FIGURES[label].has_data(known))


def write(site: Site, root: Path, report: Progress = ignore_progress) -> dict[str, tuple[int, int]]:
    """Write all figures and tables of ``site`` below ``root``, and the list of them.

    Return width and height of the figures on a screen, by the names of their SVG files.
    """
    groups = sorted({"", *(each.group for each in site.pages)})
    total, made = sum(len(_drawn(_pages(site, group), group)) for group in groups), count()
    listed = {
        group or PUBLISHED: _group(
            site, group, root, lambda label: report(next(made), total, label)
        )
        for group in groups
    }
    listed |= {view.slug: _view(view, root) for view in site.views}
    if site.atlas:
        listed[atlas_folder.NAME] = _atlas(site, site.atlas, root)
    report(total, total, "")
    text = json.dumps({"schema": 1, "agreement": _agreement(site), **listed}, indent=1)
    write_whole(root / PUBLICATION / INDEX, f"{text}\n".encode())
    found = sorted((root / PUBLICATION).rglob("*.svg"))
    return {path.relative_to(root).as_posix(): _size(path) for path in found}


def _agreement(site: Site) -> dict[str, Any]:
    """Return the estimates of each verdict, their counts, and the rule of comparison."""
    pages: dict[str, Any] = {}
    for each in site.pages:
        found: dict[str, list[str]] = {verdict: [] for verdict in JUDGED}
        for row in each.comparisons.values():
            found.setdefault(row.verdict, []).append(row.key)
        if each.comparisons:
            pages[each.name] = found
    return {"rule": AGREEMENT_RULE, "counts": site.agreement, "assays": pages}


def _group(
    site: Site, group: str, root: Path, report: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    """Write the figures and tables of one rule and agent; return the list of them."""
    folder = root / PUBLICATION / group if group else root / PUBLICATION
    pages, beside = _pages(site, group), _beside(site, group)
    results = {each.plan.assay.id: each.results for each in beside}
    figures = {
        label: _absent(figure_assays(label), beside, group)
        for label in FIGURES
        if figure_assays(label)
    }
    for label in _drawn(pages, group):
        report(label)
        paths = write_figure(label, results, folder)
        figures[label] = _entry(figure_assays(label), results, paths, root)
    tables = {label: _absent([name], beside, group) for label, name in TABLES.items()}
    for each in pages:
        for table in _tables(each):
            paths = write_table(table, folder)
            tables[table.label] = _entry([each.plan.assay.id], results, paths, root)
    if not group:
        tables |= _of_no_assay(site, folder, root)
    return {
        "figures": dict(sorted(figures.items())),
        "tables": dict(sorted(tables.items())),
        "runs": {each.plan.assay.id: _runs(site, each) for each in beside},
    }


def _of_no_assay(site: Site, folder: Path, root: Path) -> dict[str, Entry]:
    """Write the tables of the design, recorded checks and claims; return the list of them."""
    design = design_tables.tables(list(ASSAYS.values()))
    made = {table.label: (table, CATALOGUE) for table in design}
    made |= {table.label: (table, CHECK) for table in site.checks}
    made |= {table.label: (table, CLAIMS) for table in claims_tables(site)}
    return {
        label: _entry([], {}, write_table(table, folder), root) | {"made_from": [source]}
        for label, (table, source) in made.items()
    }


def claims_tables(site: Site) -> list[Table]:
    """Return the ledger of claims and what survives a change of agent, as far as there are any."""
    if site.ledger is None:
        return []
    entries, by_agent = site.ledger
    return [ledger_table(entries), *([agents_table(by_agent)] if by_agent else [])]


def _view(view: MechanismView, root: Path) -> dict[str, dict[str, Any]]:
    """Copy the files of a mechanism view; return the list of them."""
    exhibit = view.exhibit
    paths = [write_whole(root / view.folder / name, view.files[name]) for name in view.files]
    drawn = {path.name for path in exhibit.figures}

    def entry(chosen: Iterable[Path]) -> Entry:
        return _entry([], {}, chosen, root) | {"made_from": [exhibit.label]}

    return {
        "figures": {exhibit.label: entry(path for path in paths if path.name in drawn)},
        "tables": {exhibit.label: entry(path for path in paths if path.name not in drawn)},
        "runs": {
            exhibit.label: dict(sorted((run.spec.id, run.science_hash) for run in exhibit.runs))
        },
    }


def _atlas(site: Site, atlas: Atlas, root: Path) -> dict[str, dict[str, Any]]:
    """Write the files of the atlas; return the list of them."""
    name = atlas_folder.NAME
    paths = atlas_folder.write_atlas(atlas, root / PUBLICATION / name)
    drawn = {path for path in paths if path.suffix.removeprefix(".") in ENDINGS}

    def entry(chosen: Iterable[Path]) -> Entry:
        return _entry([], {}, chosen, root) | {"made_from": [AUDITS]}

    runs = {run: science for one in site.profiles.values() for run, science in one.runs.items()}
    return {
        "figures": {name: entry(path for path in paths if path in drawn)},
        "tables": {name: entry(path for path in paths if path not in drawn)},
        "runs": {name: dict(sorted(runs.items()))},
    }


def _tables(each: AssayPage) -> list[Table]:
    """Return the tables of an assay, and that of its estimates beside the published ones."""
    return [*each.results.tables, *([each.compared] if each.compared else [])]


def _pages(site: Site, group: str) -> list[AssayPage]:
    return [each for each in site.pages if each.group == group]


def _beside(site: Site, group: str) -> list[AssayPage]:
    """Return the pages of a group, and those without a rule, which belong to all groups."""
    own = _pages(site, group)
    if any(each.plan.budget.worlds for each in own):  # no other page is of that world
        return own
    ids = {each.plan.assay.id for each in own}
    without_rule = [
        each
        for each in site.pages
        if each.plan.assay.id not in ids
        and not each.plan.budget.worlds
        and not any(
            hasattr(run.learner, "rule")
            for key, run in each.plan.runs.items()
            if key in each.plan.present
        )
    ]
    return [*own, *without_rule]


def _drawn(pages: Sequence[AssayPage], group: str) -> list[str]:
    """Return the labels of the figures of a group; schematics belong to the published one."""
    return [*(() if group else SCHEMATICS), *_labels(pages)]


def _labels(pages: Sequence[AssayPage]) -> list[str]:
    """Return the labels of the figures that are drawn from any of ``pages``."""
    fed = {label for each in pages for label in each.figures}
    return [label for label in FIGURES if label in fed]


def figure_assays(label: str) -> list[str]:
    """Return the ids of the assays that a figure is drawn from."""
    if label in AUDITED:
        return [AUDITED[label][0]]
    return [assay.id for assay in ASSAYS.values() if label in assay.figures]


def _entry(
    assays: Sequence[str], results: Mapping[str, Results], paths: Iterable[Path], root: Path
) -> Entry:
    """Return the files of a figure or table, their hashes, and the assays it was made from."""
    return {
        "assays": list(assays),
        "made_from": [name for name in assays if name in results],
        "status": "made",
        "files": {path.relative_to(root).as_posix(): _sha256(path) for path in paths},
    }


def _absent(assays: Sequence[str], beside: Sequence[AssayPage], group: str) -> Entry:
    """Return why a figure or table of ``group`` was not made.

    ``beside`` are the pages that the group draws from, some of which belong to all groups.
    """
    pages = [each for each in beside if each.plan.assay.id in assays]
    if any(each.group == group for each in pages):
        status = "cells not run"
    elif pages:  # without a rule: made once, for all groups
        status = f"see {pages[0].group or PUBLISHED}"
    elif any(name in ASSAYS for name in assays):
        status = "not run"
    else:
        status = f"see {PUBLISHED}" if group else f"made by {', '.join(assays)}"
    ids = {each.plan.assay.id for each in pages}
    return {
        "assays": list(assays),
        "made_from": [name for name in assays if name in ids],
        "status": status,
        "files": {},
    }


def _runs(site: Site, each: AssayPage) -> dict[str, str]:
    """Return the science hashes of the runs behind an assay's figures and tables, by run id."""
    held = sorted(each.plan.present & site.runs.keys())
    return {run: site.runs[run].manifest.science_hash for run in held}


def _size(path: Path) -> tuple[int, int]:
    """Return width and height of an SVG file of ours."""
    box = re.search(rb'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', path.read_bytes()[:2000])
    return (round(float(box[1])), round(float(box[2]))) if box else (600, 400)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
