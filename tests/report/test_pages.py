"""Pages: the numbers of the analysis, nothing that runs, nothing that leads nowhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from jinja2 import UndefinedError

from named_rows import rows
from report.page_parser import Page, broken
from report.site_samples import DONOR, HOSTILE, MISSING, PLAN, RECIPIENT, profile
from rulescope.assays.results import Column
from rulescope.audit.profile import (
    FROZEN,
    PINNED,
    RULE,
    Answer,
    Axis,
    Groups,
    Measure,
    ProfileValue,
    Scales,
)
from rulescope.records import RuleIdentity
from rulescope.render.tables import cell
from rulescope.report import estimate_tables, learning_curves
from rulescope.report.assay_page import assay_page
from rulescope.report.front_page import front_page
from rulescope.report.page_templates import ENVIRONMENT, script_json
from rulescope.report.provenance_page import provenance_page, seed_ranges
from rulescope.report.site_model import Site
from rulescope.stats import Window

PAGES = (
    "index.html",
    "atlas.html",
    "claims.html",
    "mechanism.html",
    "runs.html",
    "provenance.html",
    "assay-E-POP.html",
)


def rendered(text: str) -> str:
    """Return an element with ``text`` as its attribute and its content."""
    return ENVIRONMENT.from_string('<b title="{{ text }}">{{ text }}</b>').render(text=text)


def test_there_is_a_page_for_every_assay_with_lifetimes_and_for_no_other(report: Path) -> None:
    assert sorted(path.name for path in report.glob("*.html")) == sorted(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere_inside_of_the_report(name: str, report: Path) -> None:
    assert broken(report, name) == []


@pytest.mark.parametrize("name", PAGES)
def test_ids_are_unique_and_tables_are_marked_up(name: str, report: Path) -> None:
    page = Page(report / name)
    assert len(page.ids) == len(set(page.ids))
    heads = [attributes for tag, attributes in page.tags if tag == "th"]
    assert all("scope" in attributes for attributes in heads)
    tags = [tag for tag, _ in page.tags]
    assert tags.count("caption") == tags.count("table")
    assert {"header", "main", "nav", "footer"} <= set(tags)
    assert tags.count("h1") == 1


def test_tables_have_the_numbers_of_the_analysis_to_the_digit(found: Site, report: Path) -> None:
    shown = Page(report / "assay-E-POP.html").tables
    [each] = found.pages
    for table in each.results.tables:
        rows = [
            [cell(value, column) for value, column in zip(row, table.columns, strict=True)]
            for row in table.rows
        ]
        assert [[column.heading for column in table.columns], *rows] in shown


def test_every_estimate_is_shown_with_n_interval_and_published_value(
    found: Site, report: Path
) -> None:
    [each] = found.pages
    shown = [row for table in Page(report / "assay-E-POP.html").tables for row in table]
    for key, one in each.results.estimates.items():
        wanted = [key.partition("/")[2], str(one.n), cell(one, Column("Ours", 3))]
        if key in each.comparisons:
            theirs = each.comparisons[key].published
            wanted.append(f"{theirs.value:.3f} [{theirs.low:.3f}, {theirs.high:.3f}]")
            wanted[-1] = wanted[-1].replace("-", "−").replace(" [nan, nan]", "")
        assert any(row[: len(wanted)] == wanted for row in shown), wanted
    assert len(each.comparisons) > 3


def test_a_profile_is_shown_with_its_figures_and_links_to_its_assay(report: Path) -> None:
    page = Page(report / "index.html")
    rows = {row[0]: row[2:] for table in page.tables for row in table}
    assert rows["pinned"] == ["0.20 (0.10 to 0.40)", "2"]
    assert ["0.70", "1"] in [row[2:] for table in page.tables for row in table]
    assert "assay-E-POP.html" in page.links


def test_the_answer_of_an_audit_is_on_the_front_page(found: Site) -> None:
    panels = {each.name: learning_curves.panels(each, found.runs) for each in found.pages}
    shown = front_page(found, panels)
    assert "<strong>History: asset (decided by nothing)." in shown
    assert "An axis decides from 4 seeds on." in shown
    none = msgspec.structs.replace(profile(), answer=Answer("no history", "History: none."))
    without = front_page(replace(found, profiles={"none": none}), panels)
    assert "History: none." in without
    assert "decides from" not in without
    old = msgspec.structs.replace(profile(), answer=None)
    assert "History:" not in front_page(replace(found, profiles={"old": old}), panels)


def test_windows_and_two_groups_are_named_beside_their_numbers(found: Site) -> None:
    panels = {each.name: learning_curves.panels(each, found.runs) for each in found.pages}
    figures = {
        RULE: ProfileValue(2.0, 1.0, 3.0, 8, "bootstrap", window=Scales("interval", 0.1, 10.0)),
        PINNED: ProfileValue(0.4, 0.0, 0.9, 8, "bootstrap", groups=Groups(5, 3, 0.02, 0.97)),
        f"{FROZEN}9": ProfileValue(0.0, 0.0, 0.0, 8, "bootstrap", window=Scales("none")),
    }
    axis = Axis("Scale", "", (Measure("a", "Width", "decades", figures, "E1"),), "")
    mine = msgspec.structs.replace(profile(), axes=(axis,))
    shown = front_page(replace(found, profiles={"mine": mine}), panels)
    assert "interval 0.1 to 10</small>" in shown
    assert "3 of 8 lifetimes learned (mean 0.97); 5 stayed near 0</small>" in shown
    assert "none</small>" in shown
    assert "frozen at iteration 9" in shown


def test_estimates_of_widths_have_their_windows_beside_them(found: Site) -> None:
    [each] = found.pages
    key = next(iter(each.results.estimates))
    window = {key: Window(2.0, 0.1, 10.0, "interval")}
    estimates = rows(each.results.assay, each.results.estimates, windows=window)
    widths = replace(each, results=replace(each.results, estimates=estimates))
    first = estimate_tables.estimate_kinds(widths)[0].table
    assert first.columns[-1].heading == "Window"
    assert first.rows[0][-1] == "interval 0.1 to 10"
    assert estimate_tables.estimate_kinds(each)[0].table.columns[-1].heading != "Window"


def test_a_profile_counts_how_many_of_its_lifetimes_are_here(found: Site) -> None:
    panels = {each.name: learning_curves.panels(each, found.runs) for each in found.pages}
    held = {run: life.manifest.science_hash for run, life in found.runs.items()}
    for runs, said in (
        (held, f"It rests on {len(held)} lifetimes, all of which are in this report."),
        (held | {"0" * 64: "1" * 64}, f"of which {len(held)} are in this report."),
        (dict.fromkeys(held, "0" * 64), "of which 0 are in this report."),
        ({}, "It does not list its lifetimes."),
    ):
        mine = msgspec.structs.replace(profile(), runs=runs)
        assert said in front_page(replace(found, profiles={"mine": mine}), panels)


def test_the_profile_of_a_file_links_to_the_assays_of_its_content(found: Site) -> None:
    mine = msgspec.structs.replace(profile(), rule="mine", content="disco103")
    panels = {each.name: learning_curves.panels(each, found.runs) for each in found.pages}
    linked = front_page(replace(found, profiles={"mine": mine}), panels)
    assert '<a href="assay-E-POP.html">E-POP</a>' in linked.partition('id="assays"')[0]
    nameless = front_page(
        replace(found, profiles={"mine": msgspec.structs.replace(mine, content="")}), panels
    )
    assert '<a href="assay-E-POP.html">E-POP</a>' not in nameless.partition('id="assays"')[0]


def test_profiles_whose_folders_give_the_same_slug_have_places_of_their_own(found: Site) -> None:
    panels = {each.name: learning_curves.panels(each, found.runs) for each in found.pages}
    names = ("a/b", "a-b", "a b", "\udcff")  # the last: a byte that is no UTF-8
    text = front_page(replace(found, profiles=dict.fromkeys(names, profile())), panels)
    assert re.findall(r'id="(profile-[^"]*)"', text) == [
        "profile-a-b",
        "profile-a-b-2",
        "profile-a-b-3",
        "profile--",
    ]
    text.encode()
    assert rendered("\udcff") == '<b title="\ufffd">\ufffd</b>'


def test_a_question_is_asked_as_it_is_written(found: Site) -> None:
    [each] = found.pages
    question = "How do Disco, OPEN and PPO with Adam compare?"
    asked = replace(each.plan, assay=replace(each.plan.assay, question=question))
    page = replace(each, plan=asked)
    assert f">{question}</p>" in assay_page(replace(found, pages=(page,)), page, [], {})


def test_a_figure_names_the_place_of_its_numbers(report: Path) -> None:
    tags = Page(report / "assay-E-POP.html").tags
    said = [str(a["alt"]) for tag, a in tags if tag == "img"]
    assert len(said) == 1  # which E-LR feeds as well
    assert said[0].endswith("The numbers are in tables of the assays it is made from.")


@pytest.mark.parametrize(("names", "mixed"), [(("mine", "mine"), True), (("mine", "other"), False)])
def test_two_weights_of_one_name_are_a_mixture(
    names: tuple[str, str], mixed: bool, found: Site
) -> None:
    recorded = dict(found.runs)
    own = [run for run in recorded if run in PLAN.runs]
    for run, name, mark in zip(own[:2], names, "ab", strict=True):
        rule = RuleIdentity(name=name, sha256=mark * 64, digest=mark * 64)
        manifest = msgspec.structs.replace(recorded[run].manifest, rule=rule)
        recorded[run] = replace(recorded[run], manifest=manifest)
    text = provenance_page(replace(found, runs=recorded))
    table = text.partition('id="coverage"')[2].partition("</table>")[0]
    assert re.search(r"W\d \(1\), W\d \(1\)", table)
    assert ('class="tag mixed"' in table) is mixed


def test_hostile_texts_stay_texts(report: Path) -> None:
    assert HOSTILE not in "".join(path.read_text() for path in report.glob("*.html"))
    for path in report.rglob("*.js"):
        assert "</script" not in path.read_text().lower()
    for name in PAGES:
        tags = Page(report / name).tags
        assert not [a for tag, a in tags if any(key.startswith("on") for key in a)]
        assert [a.get("src") for tag, a in tags if tag == "img" and a.get("src") == "x"] == []
    assert rendered(HOSTILE).count("onerror=alert(1)&gt;&amp;&#34;&#39;") == 2
    assert not set(rendered(HOSTILE).removeprefix('<b title="').removesuffix("</b>")) & set("<'")
    assert json.loads(script_json(HOSTILE)) == HOSTILE


def test_a_name_that_a_template_does_not_know_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'text' is undefined"):
        ENVIRONMENT.from_string("{{ text }}").render()


def test_nothing_comes_from_elsewhere(report: Path) -> None:
    for path in [*report.glob("*.html"), *(report / "static").iterdir()]:
        found = re.findall(r"(?:https?:)?//[a-z]+\.[a-z0-9.]+", path.read_text())
        assert set(found) <= {"http://www.w3.org"}  # names of SVG, which nobody fetches
        assert not re.search(r"\bfetch\(|XMLHttpRequest|@import|innerHTML", path.read_text())


def test_missing_seeds_are_listed_cell_by_cell(report: Path) -> None:
    lost = PLAN.runs[MISSING]
    rows = [row for table in Page(report / "provenance.html").tables for row in table]
    assert any(row[-2:] == ["2/3", f"seeds {lost.seed}"] for row in rows)
    assert sum(row[-2:] == ["3/3", ""] for row in rows) == len(PLAN.cells) - 1


def test_mixed_runtimes_and_lifetimes_of_no_assay_are_listed(report: Path) -> None:
    text = (report / "provenance.html").read_text()
    assert f'href="runs.html#{DONOR.id}"' in text
    assert f'href="runs.html#{RECIPIENT.id}"' in text
    tables = Page(report / "provenance.html").tables
    names = [text for table in tables for row in table for text in (row[0], *table[0])]
    assert {"R1", "R2", "S1", "S2", "W1"} <= set(names)
    assert "uncommitted changes" in names


def test_neighbouring_seeds_are_taken_together() -> None:
    assert seed_ranges([0, 1, 2, 5, 7, 8]) == "0–2, 5, 7–8"
    assert seed_ranges([]) == ""


def test_pages_are_light(report: Path) -> None:
    sizes = {path: path.stat().st_size for path in (report / "static").iterdir()}
    assert sum(size for path, size in sizes.items() if path.suffix == ".js") < 60_000
    assert sizes[report / "static" / "report.css"] < 30_000
    assert (report / "index.html").stat().st_size < 1_000_000
