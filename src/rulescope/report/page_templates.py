"""Jinja2 templates of the pages: escaping, shared context, and tables as all pages show them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rulescope.assays.results import Table, counted
from rulescope.core.source_hash import __version__
from rulescope.render.tables import cell, note
from rulescope.report.site_model import Site
from rulescope.stats import Estimate

Sizes = Mapping[str, tuple[int, int]]
"""Width and height of pictures by file name."""


def render_page(
    template: str,
    site: Site,
    *,
    title: str,
    here: str,
    scripts: Sequence[str] = (),
    **context: Any,
) -> str:
    """Return the page ``here`` (a file name); its template reads ``context``."""
    nav = [
        ("index.html", "Overview"),
        *([("atlas.html", "Atlas")] if site.atlas else []),
        *([("claims.html", "Claims")] if site.ledger else []),
        *([("mechanism.html", "Mechanism")] if site.views else []),
        ("runs.html", "Lifetimes"),
        ("provenance.html", "Provenance"),
    ]
    page = ENVIRONMENT.get_template(f"{template}.html.j2")
    return page.render(
        context,
        site=site,
        title=title,
        here=here,
        nav=nav,
        scripts=("theme.js", *scripts),
        version=__version__,
    )


def script_json(content: Any) -> Markup:
    """Return JSON that is safe inside of a script element; keys keep their order.

    >>> script_json({"a": "</script>"})
    Markup('{"a":"\\\\u003c/script>"}')
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)  # ASCII: no line separators
    return Markup(text.replace("<", "\\u003c"))


def _printable(value: Any) -> Any:
    """Return text without characters that HTML cannot hold, and nothing for None."""
    if value is None:
        return ""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(mark if mark.isprintable() or mark in "\n\t" else "\ufffd" for mark in value)


def _is_hex_digest(text: str) -> bool:
    """Return whether ``text`` is a commit or a sha256."""
    return len(text) in (40, 64) and all(mark in "0123456789abcdef" for mark in text)


ENVIRONMENT = Environment(
    loader=PackageLoader("rulescope.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    finalize=_printable,
)
ENVIRONMENT.filters |= {"script_json": script_json, "counted": counted}
ENVIRONMENT.tests["hex_digest"] = _is_hex_digest


class TableView(NamedTuple):
    """A table as text."""

    title: str
    headings: list[tuple[str, bool]]
    """Text of each column's heading, and whether the column is numeric."""
    rows: list[list[str]]
    note: str


def table_view(table: Table) -> TableView:
    """Return ``table`` with its cells printed as in every other format of it."""
    numeric = [
        any(isinstance(row[i], int | float | Estimate) for row in table.rows)
        for i in range(len(table.columns))
    ]
    return TableView(
        table.title,
        [(column.heading, number) for column, number in zip(table.columns, numeric, strict=True)],
        [
            [cell(value, column) for value, column in zip(row, table.columns, strict=True)]
            for row in table.rows
        ],
        note(table),
    )


class FigureView(NamedTuple):
    """A figure of which there are a PDF, an SVG and a PNG file."""

    base: str
    """Path of its files without the ending."""
    alt: str
    caption: str
    label: str
    size: tuple[int, int] | None
    """Width and height, if known."""


def figure_view(base: str, alt: str, caption: str, label: str, sizes: Sizes) -> FigureView:
    """Return the figure whose files are at ``base``."""
    return FigureView(base, alt, caption, label, sizes.get(f"{base}.svg"))
