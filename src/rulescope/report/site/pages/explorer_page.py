"""The page on which every lifetime can be found and looked at."""

from __future__ import annotations

from rulescope.assays.results import counted
from rulescope.report.site.explorer_data import words
from rulescope.report.site.html import data, el
from rulescope.report.site.pages.page_layout import navigation, page
from rulescope.report.site.site_model import Site

HERE = "runs.html"
SCRIPTS = ("load.js", "chart.js", "values.js", "filters.js", "detail.js", "runs.js")


def explorer(site: Site) -> str:
    """Return the page; its rows are data that the script reads."""
    lead = (
        f"{counted(len(site.lives), 'lifetime')}. Narrow them down by any field of their "
        "specification; choose one to see what it did and where it comes from."
    )
    without = el(
        "noscript", el("p", "This page needs its script to show the data.", class_="empty")
    )
    return page(
        "Lifetimes",
        HERE,
        el("div", without, id="runs"),
        data("run-words", words()),
        nav=navigation(site),
        scripts=SCRIPTS,
        lead=el("p", lead, class_="lede"),
    )
