"""From a store to a folder of pages: read, analyse, draw, write, then replace the old folder."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rulescope.assays.recorded_plans import recorded_budgets
from rulescope.claims.judged_ledger import JudgedLedger, has_records, judge_ledger
from rulescope.claims.ledger import claims
from rulescope.claims.ledger_tables import ORDER
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.core.disk import stem, write_whole, writing
from rulescope.core.errors import RecordError, RulescopeError
from rulescope.learners.disco_config import AGENTS
from rulescope.records import Store
from rulescope.report import (
    explorer_data,
    learning_curves,
    plan_selection,
    publication,
    report_inputs,
)
from rulescope.report.assay_page import assay_page
from rulescope.report.atlas_page import HREF, atlas_page
from rulescope.report.claims_page import claims_page
from rulescope.report.front_page import front_page
from rulescope.report.learning_curves import Panel
from rulescope.report.mechanism_page import mechanism_page
from rulescope.report.page_templates import Sizes, render_page, script_json
from rulescope.report.provenance_page import provenance_page
from rulescope.report.publication_readme import FILE as README
from rulescope.report.publication_readme import publication_readme
from rulescope.report.site_model import (
    PUBLICATION,
    AssayPage,
    MechanismView,
    Progress,
    Site,
    Unreadable,
    ignore_progress,
)

if TYPE_CHECKING:
    from rulescope.assays import Assay, Budget
    from rulescope.assays.results import Table
    from rulescope.audit.profile import Profile

MARK = ".rulescope-report"
"""A file that marks a folder as a report, which another report may replace."""
STATIC = (
    "report.css",
    "theme.js",
    "load.js",
    "chart.js",
    "values.js",
    "curves.js",
    "atlas.js",
    "filters.js",
    "lifetime_page.js",
    "runs.js",
)
EXPLORER_SCRIPTS = ("load.js", "chart.js", "values.js", "filters.js", "lifetime_page.js", "runs.js")

Panels = Mapping[str, list[Panel]]
"""Learning curves by page name."""
PageName = Callable[["Assay", "Budget"], str]
"""Returns the name of a page: its assay, and the rule and agent if they are unusual."""
Stage = Callable[[str], Progress]
"""Starts a stage of the work, by its name; returns the callback for its progress."""


def ignore_stages(_name: str) -> Progress:
    """Report nothing."""
    return ignore_progress


def gather(
    store: Store,
    page_name: PageName,
    preset: str | None = None,
    profiles: tuple[Mapping[str, Profile], Unreadable] = ({}, ()),
    views: tuple[Sequence[MechanismView], Unreadable] = ((), ()),
    stage: Stage = ignore_stages,
    checks: tuple[Sequence[Table], Unreadable] = ((), ()),
    check_exact: bool = False,
) -> Site:
    """Read all of ``store``, analyse every assay that it has runs of, and judge the claims.

    Profiles, mechanism ``views`` and tables of ``checks`` are shown as they are; unreadable ones
    are listed. With ``check_exact`` the programs that decide exact claims are run.
    """
    runs, problems = report_inputs.read_runs(store, stage("reading"))
    observed = {run.spec.id for view in views[0] for run in view.exhibit.runs}
    chosen = plan_selection.select_plans(
        {key: run.spec for key, run in runs.items()}, preset, observed, recorded_budgets(store)
    )
    report = stage("analysing")
    pages: list[AssayPage] = []
    failed: list[tuple[str, str]] = []
    for done, each in enumerate(chosen):
        assay, budget = each.plan.assay, each.plan.budget
        report(done, len(chosen), assay.id)
        name = stem("-".join(part for part in (page_name(assay, budget), each.tag) if part))
        try:
            results = each.plan.analyse(store)
        except RulescopeError as fault:
            failed.append((name, str(fault).replace(f"{store.root}/", "")))
            continue
        figures = publication.figures(assay, results)
        pages.append(AssayPage(name, each.plan, results, figures, each.others))
    report(len(chosen), len(chosen), "")
    report = stage("judging")
    report(0, 1, "claims")
    try:
        lengths = {run.spec.iterations for run in runs.values()}
        ledger = _judge_claims(store, pages, lengths, check_exact=check_exact)
    except RulescopeError as fault:
        ledger = None
        failed.append(("claims", str(fault).replace(f"{store.root}/", "")))
    report(1, 1, "")
    return Site(
        runs=runs,
        pages=tuple(pages),
        profiles=dict(profiles[0]),
        views=tuple(views[0]),
        checks=tuple(checks[0]),
        ledger=ledger,
        problems=tuple(problems),
        unanalysed=tuple(failed),
        unreadable=(*profiles[1], *views[1], *checks[1]),
    )


def _judge_claims(
    store: Store, pages: Sequence[AssayPage], lengths: Set[int], *, check_exact: bool
) -> JudgedLedger | None:
    """Return the verdicts on all claims; None without a lifetime of any of their cells.

    ``lengths`` are the iterations of the lifetimes in the store: where none has the published
    length of an assay, its grid need not be expanded.
    """
    full = {page.plan.assay.id for page in pages if _at_published_length(page, lengths)}
    touched = [one for one in claims() if any(cells.assay in full for cells in one.cells)]
    if not has_records(touched, RecordEvidence(store)):
        return None
    used = {page.plan.budget.agent for page in pages}
    agents = [agent for agent in AGENTS if agent in used]
    return judge_ledger(claims(), store, agents, check=check_exact)


def _at_published_length(page: AssayPage, lengths: Set[int]) -> bool:
    paper = page.plan.assay.budget("paper")
    published = {paper.length(task) for task in paper.tasks}
    return page.plan.budget.iterations == paper.iterations or not lengths.isdisjoint(published)


def write(site: Site, out: Path, stage: Stage = ignore_stages) -> list[Path]:
    """Write ``site`` as the folder ``out``, whole or not at all; return its files, sorted.

    An earlier report at ``out`` is replaced. Anything else there stays, and raises.
    """
    with _replacing(out) as folder:
        sizes = publication.write(site, folder, stage("drawing"))
        panels = {each.name: learning_curves.panels(each, site.runs) for each in site.pages}
        texts = {**_pages(site, panels, sizes), **_data(site, panels), **_static()}
        texts[f"{PUBLICATION}/{README}"] = publication_readme(site)
        report = stage("writing")
        for done, (name, text) in enumerate(texts.items(), start=1):
            write_whole(folder / name, text.encode())
            report(done, len(texts), name)
    return sorted(path for path in out.rglob("*") if path.is_file() and path.name != MARK)


def _pages(site: Site, panels: Panels, sizes: Sizes) -> dict[str, str]:
    """Return every page by its file name."""
    return {
        "index.html": front_page(site, panels),
        **({HREF: atlas_page(site, site.atlas, sizes)} if site.atlas else {}),
        "runs.html": explorer_page(site),
        "provenance.html": provenance_page(site),
        **{each.href: assay_page(site, each, panels[each.name], sizes) for each in site.pages},
        **({"claims.html": claims_page(site, site.ledger)} if site.ledger else {}),
        **({"mechanism.html": mechanism_page(site, sizes)} if site.views else {}),
    }


def explorer_page(site: Site) -> str:
    """Return the page of all runs; a script reads its rows from data files."""
    return render_page(
        "runs",
        site,
        title="Lifetimes",
        here="runs.html",
        scripts=EXPLORER_SCRIPTS,
        column_names=explorer_data.column_names(),
    )


def _data(site: Site, panels: Panels) -> dict[str, str]:
    """Return every data file by its name."""
    found: dict[str, Any] = {"runs": explorer_data.rows(site)}
    for part, chunk in explorer_data.chunks(site).items():
        found[f"runs/{part}"] = chunk
    for each in site.pages:
        for index, panel in enumerate(panels[each.name]):
            found[f"curves/{each.name}-{index}"] = learning_curves.panel_data(panel)
    return {f"data/{key}.js": data_script(key, content) for key, content in found.items()}


def data_script(key: str, content: Any) -> str:
    """Return a script that holds ``content``: pages opened from disk may not fetch a file."""
    return f"rulescope.give({script_json(key)},{script_json(content)});\n"


def _static() -> dict[str, str]:
    home = resources.files("rulescope.report") / "static"
    return {f"static/{name}": (home / name).read_text(encoding="utf-8") for name in STATIC}


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """Lend an empty folder beside ``out``; without an error it replaces ``out`` in one step."""
    out = out.absolute()
    require_replaceable(out)
    tag = uuid.uuid4().hex[:8]
    fresh, old = (out.with_name(f".{out.name}.{tag}.{what}") for what in ("new", "old"))
    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
        try:
            yield fresh
            (fresh / MARK).touch()
            _swap(fresh, out, old)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)  # after success it is no longer there
    shutil.rmtree(old, ignore_errors=True)


def _swap(fresh: Path, out: Path, old: Path) -> None:
    """Move ``out`` to ``old`` and ``fresh`` to ``out``; undo the first move if the second fails."""
    if not out.exists():
        fresh.rename(out)
        return
    out.rename(old)
    try:
        fresh.rename(out)
    except BaseException:
        old.rename(out)
        raise


def require_replaceable(out: Path) -> None:
    """Raise if ``out`` exists and is not a report: only reports are replaced."""
    if out.is_symlink():
        raise RecordError(f"{out}: a symbolic link, which a report does not replace")
    if out.exists() and not out.is_dir():
        raise RecordError(f"{out}: not a folder; nearest: {out.name}-report")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise RecordError(f"{out}: has files that are no report; choose another folder (--out)")


def summary(site: Site, files: Sequence[Path], out: Path) -> dict[str, Any]:
    """Return the contents of the report as plain data, for ``--json``."""
    return {
        "folder": str(out),
        "front": str(out / "index.html"),
        "runs": len(site.runs),
        "problems": dict(site.problems),
        "unanalysed": dict(site.unanalysed),
        "assays": {
            each.name: {
                "page": each.href,
                "rule": each.plan.budget.subject.rule,
                "agent": each.plan.budget.agent,
                "iterations": each.plan.budget.iterations,
                "runs": len(each.plan.runs),
                "done": each.present,
                "cells": len(each.plan.cells),
                "complete": each.complete,
                "agreement": each.agreement,
                "contradicted": [row.key for row in each.contradicted],
            }
            for each in site.pages
        },
        "agreement": site.agreement,
        "claims": _verdict_counts(site),
        "profiles": list(site.profiles),
        "atlas": HREF if site.atlas else None,
        "views": {
            each.slug: {
                "page": each.href,
                "view": each.exhibit.name,
                "rule": each.exhibit.rule,
                "runs": len(each.exhibit.runs),
            }
            for each in site.views
        },
        "damaged": dict(site.unreadable),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
    }


def _verdict_counts(site: Site) -> dict[str, int]:
    """Return how many claims have each verdict, disagreements first."""
    words = [entry.verdict.word for entry in site.ledger.entries] if site.ledger else []
    return {word: words.count(word) for word in ORDER if word in words}
