"""From a store to a folder of pages: read, analyse, draw, write, and only then put in place."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rulescope.core.disk import writing
from rulescope.core.errors import RecordError, RulescopeError
from rulescope.records import Store
from rulescope.render.result_files import stem, write_whole
from rulescope.report.site import (
    explorer_data,
    learning_curves,
    lifetime_rows,
    plan_selection,
    publication,
)
from rulescope.report.site.html import as_json
from rulescope.report.site.learning_curves import Panel
from rulescope.report.site.lifetime_rows import Tell
from rulescope.report.site.pages.assay_page import assay
from rulescope.report.site.pages.explorer_page import explorer as explorer_page
from rulescope.report.site.pages.front_page import front
from rulescope.report.site.pages.mechanism_page import mechanism
from rulescope.report.site.pages.page_layout import Sizes
from rulescope.report.site.pages.provenance_page import provenance
from rulescope.report.site.publication_readme import FILE as OVERVIEW
from rulescope.report.site.publication_readme import overview
from rulescope.report.site.site_model import PUBLICATION, AssayPage, Damaged, Exhibited, Site

if TYPE_CHECKING:
    from rulescope.assays import Assay, Budget
    from rulescope.assays.results import Table
    from rulescope.audit.profile import Profile

MARK = ".rulescope-report"
"""A file by which a folder is known to be a report, and may be replaced by another."""
STATIC = (
    "report.css",
    "theme.js",
    "load.js",
    "chart.js",
    "values.js",
    "curves.js",
    "filters.js",
    "detail.js",
    "runs.js",
)

Panels = Mapping[str, list[Panel]]
"""Learning curves by page name."""
Naming = Callable[["Assay", "Budget"], str]
"""Names a page by its assay and what is unusual about its budget."""
Stage = Callable[[str], Tell]
"""Told what is being done; returns who is told how far it is."""


def silently(_what: str) -> Tell:
    """Tell nobody."""
    return lifetime_rows.quiet


def gather(
    store: Store,
    name: Naming,
    preset: str | None = None,
    profiles: tuple[Mapping[str, Profile], Damaged] = ({}, ()),
    views: tuple[Sequence[Exhibited], Damaged] = ((), ()),
    stage: Stage = silently,
    checks: tuple[Sequence[Table], Damaged] = ((), ()),
) -> Site:
    """Read all of ``store``, and analyse every assay that it has lifetimes of.

    Profiles, mechanism ``views`` and tables of ``checks`` are shown as they are; damaged ones are
    reported.
    """
    found, problems = lifetime_rows.read(store, stage("reading"))
    watched = {run.spec.id for view in views[0] for run in view.shown.runs}
    shown = plan_selection.choose({run: life.spec for run, life in found.items()}, preset, watched)
    tell = stage("analysing")
    pages: list[AssayPage] = []
    failed: list[tuple[str, str]] = []
    for done, each in enumerate(shown):
        asked = each.plan.assay
        tell(done, len(shown), asked.id)
        parts = (name(asked, each.plan.budget), each.tag)
        slug = stem("-".join(part for part in parts if part))
        try:
            results = each.plan.analyse(store)
        except RulescopeError as fault:
            failed.append((slug, str(fault).replace(f"{store.root}/", "")))
            continue
        figures = publication.figures(asked, results)
        pages.append(AssayPage(slug, each.plan, results, figures, each.others))
    tell(len(shown), len(shown), "")
    return Site(
        lives=found,
        pages=tuple(pages),
        profiles=dict(profiles[0]),
        views=tuple(views[0]),
        checks=tuple(checks[0]),
        problems=tuple(problems),
        unanalysed=tuple(failed),
        damaged=(*profiles[1], *views[1], *checks[1]),
    )


def write(site: Site, out: Path, stage: Stage = silently) -> list[Path]:
    """Write ``site`` as the folder ``out``, whole or not at all; return its files, sorted.

    A report that is there already is replaced. Anything else that is there stays, and raises.
    """
    with _replacing(out) as folder:
        sizes = publication.write(site, folder, stage("drawing"))
        panels = {each.name: learning_curves.panels(each, site.lives) for each in site.pages}
        texts = {**_pages(site, panels, sizes), **_data(site, panels), **_static()}
        texts[f"{PUBLICATION}/{OVERVIEW}"] = overview(site)
        tell = stage("writing")
        for done, (name, text) in enumerate(texts.items(), start=1):
            write_whole(folder / name, text.encode())
            tell(done, len(texts), name)
    return sorted(path for path in out.rglob("*") if path.is_file() and path.name != MARK)


def _pages(site: Site, panels: Panels, sizes: Sizes) -> dict[str, str]:
    """Return every page by its file name."""
    return {
        "index.html": front(site, panels),
        "runs.html": explorer_page(site),
        "provenance.html": provenance(site),
        **{each.href: assay(site, each, panels[each.name], sizes) for each in site.pages},
        **({"mechanism.html": mechanism(site, sizes)} if site.views else {}),
    }


def _data(site: Site, panels: Panels) -> dict[str, str]:
    """Return every file of data by its name: a script that hands it over under a key."""
    found: dict[str, Any] = {"runs": explorer_data.rows(site)}
    for part, chunk in explorer_data.chunks(site).items():
        found[f"runs/{part}"] = chunk
    for each in site.pages:
        for turn, panel in enumerate(panels[each.name]):
            found[f"curves/{each.name}-{turn}"] = learning_curves.chunk(panel)
    return {f"data/{key}.js": handed_over(key, content) for key, content in found.items()}


def handed_over(key: str, content: Any) -> str:
    """Return a script that hands ``content`` over: pages on disk may not fetch a file."""
    return f"rulescope.give({as_json(key)},{as_json(content)});\n"


def _static() -> dict[str, str]:
    home = resources.files("rulescope.report.site") / "static"
    return {f"static/{name}": (home / name).read_text(encoding="utf-8") for name in STATIC}


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """Lend an empty folder beside ``out``; when all went well, it takes its place in one step."""
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
            shutil.rmtree(fresh, ignore_errors=True)  # if all went well it is no longer there
    shutil.rmtree(old, ignore_errors=True)


def _swap(fresh: Path, out: Path, old: Path) -> None:
    """Put ``fresh`` in the place of ``out``, which goes to ``old``; if that fails, it stays."""
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
    """Raise if there is something at ``out`` that is no report: it is not ours to remove."""
    if out.is_symlink():
        raise RecordError(f"{out}: a symbolic link, which a report does not replace")
    if out.exists() and not out.is_dir():
        raise RecordError(f"{out}: not a folder; nearest: {out.name}-report")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise RecordError(f"{out}: has files that are no report; choose another folder (--out)")


def summary(site: Site, files: Sequence[Path], out: Path) -> dict[str, Any]:
    """Return what was made, as plain data."""
    return {
        "folder": str(out),
        "front": str(out / "index.html"),
        "runs": len(site.lives),
        "problems": dict(site.problems),
        "unanalysed": dict(site.unanalysed),
        "assays": {
            each.name: {
                "page": each.href,
                "rule": each.plan.budget.rule,
                "agent": each.plan.budget.agent,
                "iterations": each.plan.budget.iterations,
                "runs": len(each.plan.runs),
                "done": each.present,
                "cells": len(each.plan.cells),
                "complete": each.complete,
                "agreement": each.agreement,
                "differs": [row.key for row in each.differing],
            }
            for each in site.pages
        },
        "agreement": site.agreement,
        "profiles": list(site.profiles),
        "views": {
            each.slug: {
                "page": each.href,
                "view": each.shown.name,
                "rule": each.shown.rule,
                "runs": len(each.shown.runs),
            }
            for each in site.views
        },
        "damaged": dict(site.damaged),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
    }
