"""Context of the page of one assay: design, curves, figures, tables, every estimate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import rulescope.assays
from rulescope.assays import Assay
from rulescope.assays.comparison import remarks
from rulescope.assays.estimates import label_text
from rulescope.assays.figure_data import explain_arms
from rulescope.assays.figures import FIGURES
from rulescope.assays.plan import interactions
from rulescope.assays.results import counted
from rulescope.core.disk import stem
from rulescope.render.arm_styles import naming
from rulescope.render.display_names import subject_name
from rulescope.report.css_styles import style_data
from rulescope.report.estimate_tables import Kind, estimate_kinds, interval_methods
from rulescope.report.learning_curves import Panel, page_styles, panel_index
from rulescope.report.page_templates import (
    FigureView,
    Sizes,
    figure_view,
    render_page,
    table_view,
)
from rulescope.report.publication import figure_assays
from rulescope.report.site_model import AssayPage, Site
from rulescope.report.svg import Mark, shared_axis, strip

SCRIPTS = ("load.js", "chart.js", "values.js", "curves.js")
NOT_RUN = "not run: "
"""Beginning of notes of the analysis that name conditions without lifetimes."""


def assay_page(site: Site, page: AssayPage, panels: Sequence[Panel], sizes: Sizes) -> str:
    """Return the page; ``sizes`` are those of the figures."""
    notes = [note for note in page.results.notes if not note.startswith(NOT_RUN)]
    kinds = estimate_kinds(page)
    open_kind = next((kind for kind in kinds if kind.published), kinds[0] if kinds else None)
    return render_page(
        "assay",
        site,
        title=page.title + (f" · {page.group}" if page.group else ""),
        here=page.href,
        scripts=SCRIPTS,
        page=page,
        explanation=explanation(page.plan.assay),
        arms=[style_data(arm, style) for arm, style in page_styles(page).items()],
        design=_design(page),
        notes=[f"{_capitalised(note)}." for note in notes],
        curves=panel_index(page, panels),
        figures=_figures(page, sizes),
        tables=[
            (table_view(table), table.label, f"{page.folder}/{stem(table.label)}")
            for table in page.results.tables
            if table.rows
        ],
        estimates_lead=_estimates_lead(page),
        kinds=[_kind(kind, is_open=kind is open_kind) for kind in kinds],
        neighbours=_neighbours(site.pages, page),
    )


def _design(page: AssayPage) -> list[tuple[str, str]]:
    """Return name and text of the settings below the legend of the arms."""
    plan, results = page.plan, page.results
    with naming(subject_name(results.rule)):
        meaning = explain_arms([plan.assay.id], page_styles(page))
    rows = [("", _capitalised(meaning))] if meaning else []
    for axis in plan.cells[0].labels:
        if axis != "arm":
            labels = dict.fromkeys(label_text(cell.labels[axis]) for cell in plan.cells)
            rows.append((f"{axis.capitalize()}s", ", ".join(labels)))
    rows += [
        ("Seeds of a cell", _range(len(cell.runs) for cell in plan.cells)),
        ("Iterations", _range(run.iterations for run in plan.runs.values())),
        ("Planned", _planned(page)),
        (
            "Present",
            f"{page.present:,} of {counted(len(plan.runs), 'lifetime')}; {page.complete} of "
            f"{counted(len(plan.cells), 'cell')} complete.",
        ),
        ("Analysed", f"{results.budget}."),
        ("Intervals", f"{_capitalised(interval_methods(page))}."),
    ]
    absent = [note.removeprefix(NOT_RUN) for note in results.notes if note.startswith(NOT_RUN)]
    rows += [("Not run", "; ".join(absent))] if absent else []
    others = [f"{count:,} at {length:,} iterations" for length, count in page.others]
    rows += [("Other lengths", f"The store also has {', '.join(others)}.")] if others else []
    return rows


def _range(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    return " to ".join(dict.fromkeys(f"{n:,}" for n in (found[0], found[-1])))


def _capitalised(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _planned(page: AssayPage) -> str:
    plan = page.plan
    total = interactions([*plan.runs.values(), *plan.donors.values()])
    donors = f" and {counted(len(plan.donors), 'donor')}" if plan.donors else ""
    return (
        f"{counted(len(plan.cells), 'cell')}, {counted(len(plan.runs), 'lifetime')}{donors}: "
        f"{total:,} interactions"
    )


def explanation(assay: Assay) -> list[str]:
    """Return the paragraphs of the docstring of the assay's module below its first line."""
    modules = (part for part in vars(rulescope.assays).values() if isinstance(part, ModuleType))
    home = next((part for part in modules if getattr(part, "ASSAY", None) is assay), None)
    paragraphs = (getattr(home, "__doc__", None) or "").strip().split("\n\n")[1:]
    return [_without_markup(" ".join(text.split())) for text in paragraphs]


def _without_markup(text: str) -> str:
    """Return a docstring as plain prose."""
    return re.sub(r"\s*\(see :\w+:`[^`]*`\)|:\w+:|`+", "", text)


def _figures(page: AssayPage, sizes: Sizes) -> list[FigureView]:
    # Some are printed under two labels; the second is in the publication folder only.
    first = {FIGURES[label]: label for label in reversed(page.figures)}
    return [_figure(page, label, sizes) for label in page.figures if label in first.values()]


def _figure(page: AssayPage, label: str, sizes: Sizes) -> FigureView:
    caption = figure_caption(label)
    several = len(figure_assays(label)) > 1
    where = "tables of the assays it is made from" if several else "the tables below"
    alt = f"{caption} The numbers are in {where}."
    return figure_view(f"{page.folder}/{stem(label)}", alt, caption, label, sizes)


def figure_caption(label: str) -> str:
    """Return what a figure shows, from the docstring of the function that draws it."""
    line = FIGURES[label].caption or label
    return _without_markup(_capitalised(line.partition(": ")[2] or line))


def _estimates_lead(page: AssayPage) -> str:
    text = "Every estimate of the analysis, with its number of seeds and its interval."
    if not page.comparisons:
        return text
    found = remarks(page.results, list(page.comparisons.values()))
    return " ".join([text, *found, "Filled: ours; hollow: published."])


def _kind(kind: Kind, *, is_open: bool) -> dict[str, Any]:
    pairs = [kind.pair(row) for row in range(len(kind.table.rows))]
    axis = shared_axis(one for pair in pairs for one in pair if one is not None)
    marks = [
        [
            Mark(one, css)
            for one, css in zip(pair, ("ours", "theirs"), strict=True)
            if one is not None
        ]
        for pair in pairs
    ]
    return {
        "name": kind.name,
        "table": table_view(kind.table),
        "strips": [strip(row, axis, 0.0) for row in marks],
        "open": is_open,
    }


def _neighbours(pages: Sequence[AssayPage], page: AssayPage) -> list[AssayPage]:
    """Return the pages before and after ``page``."""
    at = pages.index(page)
    return [pages[i] for i in (at - 1, at + 1) if 0 <= i < len(pages)]
