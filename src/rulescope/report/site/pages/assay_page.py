"""The page of one assay: its question and design, curves, figures, tables, every estimate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any
from urllib.parse import quote

import rulescope.assays
from rulescope.assays import Assay
from rulescope.assays.comparison import remarks
from rulescope.assays.figure_data import arm_words
from rulescope.assays.figures import FIGURES
from rulescope.assays.plan import interactions
from rulescope.assays.results import Table, counted
from rulescope.render.result_files import stem
from rulescope.render.style import Look
from rulescope.report.site.arm_colours import swatch
from rulescope.report.site.estimate_tables import Kind, kinds
from rulescope.report.site.html import Child, Markup, data, el
from rulescope.report.site.learning_curves import Panel, arms_of, index
from rulescope.report.site.pages.page_layout import (
    Sizes,
    facts,
    figure,
    files,
    meter,
    navigation,
    page,
    section,
    tabular,
)
from rulescope.report.site.publication import feeding
from rulescope.report.site.site_model import PUBLICATION, AssayPage, Site, shown
from rulescope.report.site.svg import Mark, span, strip

SCRIPTS = ("load.js", "chart.js", "values.js", "curves.js")


def assay(site: Site, each: AssayPage, panels: Sequence[Panel], sizes: Sizes) -> str:
    """Return the page of ``each``; ``sizes`` are those of the figures."""
    asked = each.plan.assay
    title = each.title + (f" · {each.group}" if each.group else "")
    parts = [
        _curves(each, panels),
        _figures(each, sizes),
        _tables(each),
        _estimates(each),
        _around(neighbours(site.pages, each)),
    ]
    return page(
        title,
        each.href,
        _contents(),
        _design(each),
        parts,
        nav=navigation(site),
        scripts=SCRIPTS,
        lead=el("p", asked.question, class_="lede"),
    )


def _contents() -> Markup:
    parts = ("Design", "Learning curves", "Figures", "Tables", "Estimates")
    links = [el("li", el("a", words, href=f"#{_id(words)}")) for words in parts]
    return el("nav", el("ul", links), class_="contents", aria_label="On this page")


def _id(words: str) -> str:
    return words.lower().replace(" ", "-")


def _design(each: AssayPage) -> Markup:
    plan, results = each.plan, each.results
    paragraphs = [el("p", text) for text in explained(plan.assay)]
    arms = arms_of(each)
    rows: list[tuple[str, Child]] = [("Arms", _legend(arms))]
    meaning = arm_words(arms)
    rows += [("", meaning[:1].upper() + meaning[1:])] if meaning else []
    for axis in plan.cells[0].labels:
        if axis != "arm":
            labels = dict.fromkeys(shown(cell.labels[axis]) for cell in plan.cells)
            rows.append((f"{axis.capitalize()}s", ", ".join(labels)))
    lengths = sorted({run.iterations for run in plan.runs.values()})
    seeds = sorted({len(cell.runs) for cell in plan.cells})
    rows += [
        ("Seeds of a cell", " to ".join(dict.fromkeys(f"{n}" for n in (seeds[0], seeds[-1])))),
        ("Iterations", " to ".join(dict.fromkeys(f"{n:,}" for n in (lengths[0], lengths[-1])))),
        ("Planned", _planned(each)),
        ("Present", _present(each)),
        ("Analysed", f"{results.budget}."),
        ("Intervals", _intervals(results.estimates.values())),
    ]
    rows += [("Not run", _unplanned(results.notes))] if _unplanned(results.notes) else []
    others = [f"{count:,} at {length:,} iterations" for length, count in each.others]
    rows += [("Other lengths", f"The store also has {', '.join(others)}.")] if others else []
    told = [note for note in results.notes if not note.startswith(NOT_RUN)]
    notes = [el("li", f"{note[:1].upper()}{note[1:]}.") for note in told]
    below = el("ul", notes, class_="notes") if notes else None
    return section(
        "Design", el("div", paragraphs, class_="prose"), facts(rows), below, id_="design"
    )


NOT_RUN = "not run: "


def _unplanned(notes: Sequence[str]) -> str:
    return "; ".join(note.removeprefix(NOT_RUN) for note in notes if note.startswith(NOT_RUN))


def explained(asked: Assay) -> list[str]:
    """Return what the assay's own source says about it, below its question."""
    modules = (part for part in vars(rulescope.assays).values() if isinstance(part, ModuleType))
    home = next((part for part in modules if getattr(part, "ASSAY", None) is asked), None)
    paragraphs = (getattr(home, "__doc__", None) or "").strip().split("\n\n")[1:]
    return [_unmarked(" ".join(text.split())) for text in paragraphs]


def _unmarked(text: str) -> str:
    """Return a docstring as plain prose."""
    return re.sub(r"\s*\(see :\w+:`[^`]*`\)|:\w+:|`+", "", text)


def _legend(arms: Mapping[str, Look]) -> Markup:
    return el(
        "ul",
        (
            el("li", swatch(how), how.name, None if how.name == arm else el("code", arm))
            for arm, how in arms.items()
        ),
        class_="legend",
    )


def _planned(each: AssayPage) -> str:
    plan = each.plan
    lived = interactions([*plan.runs.values(), *plan.donors.values()])
    donors = f" and {counted(len(plan.donors), 'donor')}" if plan.donors else ""
    return (
        f"{counted(len(plan.cells), 'cell')}, {counted(len(plan.runs), 'lifetime')}{donors}: "
        f"{lived:,} interactions"
    )


def _present(each: AssayPage) -> Child:
    planned = len(each.plan.runs)
    words = (
        f"{each.present:,} of {counted(planned, 'lifetime')}; {each.complete} of "
        f"{counted(len(each.plan.cells), 'cell')} complete. "
    )
    cells = el("a", "Cell by cell", href=f"provenance.html#cells-{each.name}")
    lives = el("a", "life by life", href=f"runs.html#assay={quote(each.name)}")
    return [meter(each.present, planned, "lifetimes"), words, cells, ", ", lives]


def _intervals(found: Any) -> str:
    """Return in words which intervals and families the estimates have."""
    known = [one for one in found if not one.missing]
    draws = sorted({one.draws for one in known if one.method == "bootstrap" and one.draws})
    said = [f"95% percentile intervals of {draws[-1]:,} seed-block draws"] if draws else []
    said += ["95% Wilson intervals"] if any(one.method == "wilson" for one in known) else []
    said += (
        ["the range over the seeds where there are fewer than three"]
        if any(one.method == "range" and one.n > 1 for one in known)
        else []
    )
    families = sorted({one.family for one in known if one.family > 1})
    adjusted = [
        f"{counted(sum(one.family == family for one in known), 'estimate')} adjusted for a family "
        f"of {family}"
        for family in families
    ]
    words = "; ".join([*said, *adjusted]) or "none"
    return f"{words[:1].upper()}{words[1:]}."


def _curves(each: AssayPage, panels: Sequence[Panel]) -> Markup:
    """Return the place where the script draws, and what it must know."""
    words = (
        "Trimmed mean over the seeds, and the range from the lowest to the highest. Point at a "
        "line, or move along with the arrow keys, to read its values."
    )
    without = el(
        "noscript", el("p", "The curves are drawn by a script; the figures below need none.")
    )
    place = el("div", without, id="curves", class_="chart-panel", data_page=each.name)
    return section(
        "Learning curves",
        place,
        data("curves-index", index(each, panels)),
        id_="learning-curves",
        lead=words,
    )


def _figures(each: AssayPage, sizes: Sizes) -> Markup:
    # Some are printed twice under two labels; the second is in the publication folder.
    drawn = {FIGURES[label]: label for label in reversed(each.figures)}
    shown_ = [_figure(each, label, sizes) for label in each.figures if label in drawn.values()]
    none = el("p", "This assay feeds no figure.", class_="empty")
    return section("Figures", shown_ or none, id_="figures")


def described(label: str) -> str:
    """Return what a figure shows, from the function that draws it."""
    said = (FIGURES[label].__doc__ or label).strip().split("\n")[0]
    text = said.partition(": ")[2] or said
    return _unmarked(f"{text[:1].upper()}{text[1:]}")


def folder(each: AssayPage) -> str:
    """Return where the publication files of a page are."""
    return f"{PUBLICATION}/{each.group}" if each.group else PUBLICATION


def _figure(each: AssayPage, label: str, sizes: Sizes) -> Markup:
    base = f"{folder(each)}/{stem(label)}"
    words = described(label)
    several = len(feeding(label)) > 1
    where = "tables of the assays it is made from" if several else "the tables below"
    alt = f"{words} The numbers are in {where}."
    return figure(base, alt, words, label, sizes)


def _tables(each: AssayPage) -> Markup:
    shown_ = [_table(each, table) for table in each.results.tables if table.rows]
    none = el("p", "Nothing to tabulate yet.", class_="empty")
    return section("Tables", shown_ or none, id_="tables")


def _table(each: AssayPage, table: Table) -> Markup:
    links = files(f"{folder(each)}/{stem(table.label)}", ("csv", "md", "tex"), table.label)
    return el("div", tabular(table, caption=(table.title, " ", links)), class_="block")


def _estimates(each: AssayPage) -> Markup:
    found = kinds(each)
    first = next((kind for kind in found if kind.published), found[0] if found else None)
    words = "Every number that the analysis returns, with what it rests on."
    if each.comparisons:
        said = remarks(each.results, list(each.comparisons.values()))
        words = " ".join([words, *said, "Filled: ours; hollow: published."])
    return section(
        "Estimates",
        (_kind(kind, open_=kind is first) for kind in found),
        id_="estimates",
        lead=words,
    )


def _kind(kind: Kind, open_: bool) -> Markup:
    table = kind.table
    pairs = [kind.pair(turn) for turn in range(len(table.rows))]
    axis = span(one for pair in pairs for one in pair if one is not None)

    def drawn(turn: int) -> Child:
        marks = [
            Mark(one, kind_)
            for one, kind_ in zip(pairs[turn], ("ours", "theirs"), strict=True)
            if one is not None
        ]
        return strip(marks, axis, 0.0) if axis is not None and marks else None

    count = el("span", counted(len(table.rows), "estimate"), class_="faint")
    return el(
        "details",
        el("summary", el("code", kind.name), " ", count),
        tabular(table, caption="", last=("Drawn", drawn)),
        open=open_,
    )


def _around(around: Sequence[AssayPage]) -> Markup | None:
    if not around:
        return None
    links = [el("a", p.title, href=p.href) for p in around]
    return el("nav", links, class_="around", aria_label="Other assays")


def neighbours(pages: Sequence[AssayPage], each: AssayPage) -> list[AssayPage]:
    """Return the pages before and after ``each``."""
    at = pages.index(each)
    return [pages[i] for i in (at - 1, at + 1) if 0 <= i < len(pages)]
