"""The Markdown page of the publication folder says what the pages say, and shows what is there."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from report.site_samples import ASSAY
from rulescope.assays.comparison import table as comparison_table
from rulescope.assays.results import Column, Table
from rulescope.render.tables import cell
from rulescope.report.publication_readme import FILE, publication_readme
from rulescope.report.site_model import Site


def test_every_picture_of_the_overview_is_beside_it(report: Path) -> None:
    text = (report / "publication" / FILE).read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert pictures
    assert len(set(pictures)) == len(pictures)
    for name in pictures:
        assert (report / "publication" / name).is_file(), name


def test_the_overview_has_the_numbers_of_the_analysis(found: Site) -> None:
    text = publication_readme(found)
    [page] = [each for each in found.pages if each.plan.assay is ASSAY]
    assert f"| {page.present} of {len(page.plan.runs)} |" in text
    assert page.comparisons
    ours = comparison_table(page.results, list(page.comparisons.values())).columns[2]
    for key, row in page.comparisons.items():
        [line] = [line for line in text.splitlines() if line.startswith(f"| {key} |")]
        assert f"| {cell(row.ours, ours)} |" in line


def test_the_overview_ends_with_checks_and_the_design(found: Site) -> None:
    check = Table("tab:numeric", "Numbers", (Column("Family"),), (("Forward",),), "")
    text = publication_readme(replace(found, checks=(check,)))
    places = [text.index(words) for words in ("## Checks", "(`tab:numeric`)", "(`tab:axes`)")]
    assert places == sorted(places)
    assert "## Checks" not in publication_readme(found)
