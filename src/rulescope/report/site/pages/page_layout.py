"""What all pages have in common: head, navigation, foot, tables, and words for numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rulescope.assays.results import Table, Value
from rulescope.core.version import __version__
from rulescope.render.table_formats import cell, note
from rulescope.report.site.html import Child, Markup, el, join, script
from rulescope.report.site.site_model import Site
from rulescope.stats import Estimate

Links = Sequence[tuple[str, str]]
"""Pages: address, and what it is called."""
Sizes = Mapping[str, tuple[int, int]]
"""Width and height of pictures by their file."""
ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Ccircle cx='8' cy='8' r='6' fill='none' stroke='%230a6c74' stroke-width='2'/%3E"
    "%3Cpath d='M4.5 9.5 7 7l2 2 3-4' fill='none' stroke='%230a6c74' stroke-width='1.6'/%3E"
    "%3C/svg%3E"
)
THEME = (
    "try{var t=localStorage.getItem('rulescope-theme');"
    "if(t)document.documentElement.dataset.theme=t}catch(e){}"
)
"""Before anything is drawn, or a dark page would flash up light."""


def navigation(site: Site) -> Links:
    """Return the pages that are linked from every page."""
    inside = [("mechanism.html", "Mechanism")] if site.views else []
    return [
        ("index.html", "Overview"),
        *inside,
        ("runs.html", "Lifetimes"),
        ("provenance.html", "Provenance"),
    ]


def page(
    title: str,
    here: str,
    *content: Child,
    nav: Links,
    scripts: Sequence[str] = (),
    lead: Child = None,
) -> str:
    """Return a whole page. ``here`` is its file; ``lead`` stands below the heading."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="generator", content=f"rulescope {__version__}"),
        el("title", f"{title} · Rulescope" if title != "Rulescope" else title),
        el("link", rel="icon", href=Markup(ICON)),
        el("link", rel="stylesheet", href="static/report.css"),
        el("script", Markup(THEME)),
        (script(f"static/{name}") for name in ("theme.js", *scripts)),
    )
    body = el(
        "body",
        el("a", "Skip to the content", href="#content", class_="skip"),
        _header(here, nav),
        el("main", el("h1", title), lead, content, id="content", tabindex="-1"),
        _footer(),
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _header(here: str, nav: Links) -> Markup:
    links = [
        el("a", words, href=href, aria_current="page" if href == here else None)
        for href, words in nav
    ]
    brand = el("a", el("span", "rule"), "scope", href="index.html", class_="brand")
    toggle = el(
        "button",
        el("span", "Theme", class_="visually-hidden"),
        el("span", aria_hidden="true", class_="theme-icon"),
        type="button",
        id="theme",
        hidden=True,
    )
    return el("header", el("div", brand, el("nav", links, aria_label="Report"), toggle))


def _footer() -> Markup:
    words = f"Made by rulescope {__version__} from the records of one store. Opens from disk."
    return el("footer", el("p", words))


def section(title: Child, *content: Child, id_: str | None = None, lead: Child = None) -> Markup:
    """Return a part of a page under a heading of its own."""
    heading = el("h2", title, id=id_)
    below = None if lead is None else el("p", lead, class_="lead")
    return el("section", heading, below, content, aria_labelledby=id_)


def scrolling(content: Child, label: str) -> Markup:
    """Return ``content`` in a box that scrolls sideways, also by keyboard."""
    return el("div", content, class_="scroll", role="region", aria_label=label, tabindex="0")


def tabular(
    table: Table,
    *,
    caption: Child = None,
    last: tuple[str, Callable[[int], Child]] | None = None,
) -> Markup:
    """Return ``table`` as HTML with its note below; its cells as in every other form of it.

    An empty ``caption`` is there for who does not see the page. ``last`` is the heading of one more
    column, and what stands in it in each row.
    """
    numeric = [
        any(isinstance(row[i], int | float | Estimate) for row in table.rows)
        for i in range(len(table.columns))
    ]
    headings = [
        el("th", column.heading, scope="col", class_="num" if number else None)
        for column, number in zip(table.columns, numeric, strict=True)
    ]
    if last is not None:
        headings.append(el("th", el("span", last[0], class_="visually-hidden"), scope="col"))
    body = [
        el("tr", _cells(row, table, numeric), None if last is None else el("td", last[1](turn)))
        for turn, row in enumerate(table.rows)
    ]
    above = table.title if caption is None else caption
    hidden = el("span", table.title, class_="visually-hidden")
    head = el("caption", hidden if caption == "" else el("span", above))
    whole = el("table", head, el("thead", el("tr", headings)), el("tbody", body))
    words = note(table)
    return join([scrolling(whole, table.title), el("p", words, class_="note") if words else None])


def _cells(row: Sequence[Value], table: Table, numeric: Sequence[bool]) -> list[Markup]:
    shown = [cell(value, column) for value, column in zip(row, table.columns, strict=True)]
    first = el("th", shown[0], scope="row", class_="num" if numeric[0] else None)
    rest = [
        el("td", text, class_="num" if number else None)
        for text, number in zip(shown[1:], numeric[1:], strict=True)
    ]
    return [first, *rest]


def plain_table(
    caption: str,
    headings: Sequence[str],
    rows: Sequence[Sequence[Child]],
    numbers: int = 0,
    *,
    titled: bool = True,
) -> Markup:
    """Return a table of texts; the last ``numbers`` columns are of numbers.

    Where a heading says the same, the caption is for who does not see the page (not ``titled``).
    """
    sides = ["num" if i >= len(headings) - numbers else None for i in range(len(headings))]
    head = [el("th", h, scope="col", class_=s) for h, s in zip(headings, sides, strict=True)]
    body = [
        el(
            "tr",
            el("th", row[0], scope="row", class_=sides[0]),
            (el("td", each, class_=side) for each, side in zip(row[1:], sides[1:], strict=True)),
        )
        for row in rows
    ]
    above = el("caption", el("span", caption, class_=None if titled else "visually-hidden"))
    whole = el("table", above, el("thead", el("tr", head)), el("tbody", body))
    return scrolling(whole, caption)


def figure(base: str, alt: str, words: Child, label: str, sizes: Sizes) -> Markup:
    """Return a figure of which there are a PDF, an SVG and a PNG file at ``base``."""
    width, height = sizes.get(f"{base}.svg", (None, None))
    picture = el(
        "img",
        src=f"{base}.svg",
        alt=alt,
        width=width,
        height=height,
        loading="lazy",
        class_="paper",
    )
    caption = el("figcaption", words, " ", files(base, ("pdf", "svg", "png"), label))
    return el("figure", el("a", picture, href=f"{base}.svg"), caption, class_="figure")


def files(base: str, endings: Sequence[str], label: str) -> Markup:
    """Return links to the files at ``base``, behind the label that they have in print."""
    links = [
        el("a", ending.upper(), href=f"{base}.{ending}", aria_label=f"{label} as {ending.upper()}")
        for ending in endings
    ]
    return el("span", el("code", label), links, class_="files")


def facts(pairs: Sequence[tuple[str, Child]]) -> Markup:
    """Return names and what they stand for."""
    return el("dl", ((el("dt", name), el("dd", said)) for name, said in pairs), class_="facts")


def meter(done: int, planned: int, label: str) -> Markup:
    """Return a bar of how much there is of what was planned."""
    share = 100 * done / planned if planned else 0.0
    return el(
        "div",
        el("span", style=f"width:{share:.1f}%"),
        class_="meter",
        role="img",
        aria_label=f"{done:,} of {planned:,} {label}",
    )
