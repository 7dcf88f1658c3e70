"""A contradicted value comes first on every page, with the rule that judges it."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest

from named_rows import rows
from rulescope.assays import ASSAYS
from rulescope.assays.plan import Plan
from rulescope.assays.published_agreement import AGREEMENT_RULE
from rulescope.assays.results import Results
from rulescope.report import publication, site_builder
from rulescope.report.assay_page import assay_page
from rulescope.report.estimate_tables import estimate_kinds
from rulescope.report.front_page import front_page
from rulescope.report.publication_readme import publication_readme
from rulescope.report.site_model import AssayPage, Site
from rulescope.stats import Estimate

E1 = ASSAYS["E1"]
FAR, NEAR, WIDE = "score/catch/pin/1", "score/catch/live/1", "score/catch/live/0.001"
RESULTS = Results(
    assay="E1",
    budget="somebody's",
    axes={"arm": ("live", "pin")},
    seeds=12,
    estimates=rows(
        "E1",
        {
            NEAR: Estimate(0.994, 0.985, 0.999, 12, 10_000),
            WIDE: Estimate(0.8, 0.2, 0.99, 12, 10_000),
            FAR: Estimate(0.2, 0.1, 0.3, 12, 10_000),
            "displacement/catch/live/1/h": Estimate(0.0, 0.0, 0.0, 12, 10_000),
        },
    ),
    tables=(),
    iterations=E1.budget("paper").iterations,
)


@pytest.fixture
def judged(found: Site) -> Site:
    page = AssayPage("E1", Plan.of(E1, E1.budget("paper")), RESULTS, ())
    return replace(found, pages=(page,), profiles={}, views=(), ledger=None)


def test_the_front_page_counts_by_word_and_lists_what_is_contradicted(judged: Site) -> None:
    text = front_page(judged, {"E1": []})
    assert "Of 3 comparisons 1 is contradicted, 1 is undecided, 1 is reproduced." in text
    listed = text.partition('id="agreement"')[2].partition('id="assays"')[0]
    assert FAR in listed
    assert NEAR not in listed
    assert AGREEMENT_RULE in html.unescape(listed)
    assert "overlap" not in text


def test_the_overview_counts_by_word_and_lists_what_is_contradicted(judged: Site) -> None:
    text = publication_readme(judged)
    assert "| contradicted | undecided | reproduced |" in text
    assert "| 1 | 1 | 1 |" in text
    assert AGREEMENT_RULE in text
    assert text.index(f"| `{FAR}` | 12 | 0.200 [0.100, 0.300] |") < text.index("## E1")
    details = text.partition("<details>")[2]
    assert details.index(FAR) < details.index(WIDE) < details.index(NEAR)


def test_estimates_on_the_page_of_an_assay_begin_with_what_is_contradicted(judged: Site) -> None:
    [page] = judged.pages
    scores = next(kind for kind in estimate_kinds(page) if kind.name == "score")
    assert [row[0] for row in scores.table.rows] == [
        key.partition("/")[2] for key in (FAR, WIDE, NEAR)
    ]
    assert AGREEMENT_RULE in html.unescape(assay_page(judged, page, [], {}))


def test_the_list_of_files_and_the_summary_have_the_verdicts(
    judged: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "write_figure", lambda *_: [])
    publication.write(judged, tmp_path)
    said = json.loads((tmp_path / "publication" / "figures.json").read_text())["agreement"]
    assert said["counts"] == {"contradicted": 1, "undecided": 1, "reproduced": 1}
    assert next(iter(said["assays"]["E1"].items())) == ("contradicted", [FAR])
    summary = site_builder.summary(judged, [], tmp_path)
    assert summary["agreement"] == said["counts"]
    assert summary["assays"]["E1"]["contradicted"] == [FAR]


def test_without_anything_to_judge_nothing_is_said(found: Site) -> None:
    assert not any(found.agreement.values())
    assert 'id="agreement"' not in front_page(found, {page.name: [] for page in found.pages})


def test_the_same_estimate_on_the_pages_of_two_agents_counts_once(judged: Site) -> None:
    change = ASSAYS["E3"]
    key = "auc/action-flip/catch/dqn"
    axes = {"condition": ("action-flip",), "task": ("catch",)}
    ours = {key: Estimate(0.049, 0.041, 0.057, 18, 10_000)}
    pages = tuple(
        AssayPage(
            f"E3{agent}",
            Plan.of(change, replace(change.budget("paper"), agent=agent)),
            Results("E3", "", axes, 18, rows("E3", ours), (), iterations=3000, agent=agent),
            (),
        )
        for agent in ("published", "historical")
    )
    assert [sum(page.agreement.values()) for page in pages] == [1, 1]
    assert [row.key for _, row in replace(judged, pages=pages).comparisons] == [key]
