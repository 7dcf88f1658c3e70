"""The report in a real browser, opened from disk: what it shows, and what it never does."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Locator, Page, sync_playwright

import machine
from report.site_samples import (
    DONOR,
    EVERY,
    HOSTILE,
    MISSING,
    PLAN,
    RECIPIENT,
    RETURN,
    WATCHED,
)
from rulescope.report import learning_curves
from rulescope.report.site_model import Site

VIEWS = (
    "index.html",
    "atlas.html",
    "claims.html",
    "assay-E-POP.html",
    "mechanism.html",
    "runs.html",
    f"runs.html#{RECIPIENT.id}",
    "provenance.html",
)
GRAVE = ("serious", "critical")
CHECKS: dict[str, Any] = {"preload": False, "resultTypes": ["violations"]}
"""Of axe-core. (Style sheets on disk may not be read a second time, and need not be.)"""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
"""(Containers seldom allow a sandbox inside of theirs; the pages are our own.)"""
PATIENCE = 120_000
"""Milliseconds after which something will never happen, however busy the machine is."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    named = os.environ.get("RULESCOPE_CHROMIUM") or machine.find(machine.CHROMIUM)
    path = machine.require(machine.CHROMIUM, named)
    with sync_playwright() as started:
        made = started.chromium.launch(executable_path=path, args=FLAGS)
        yield made
        made.close()


class Visit:
    """A window on the report that remembers what went wrong and what was asked for."""

    def __init__(self, browser: Browser, report: Path, width: int = 1280, scheme: str = "light"):
        self.report = report
        self.faults: list[str] = []
        self.asked: list[str] = []
        self._context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce",
        )
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda said: self._hear(said.type, said.text))
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        self.page.on("requestfailed", lambda request: self.faults.append(request.url))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", lambda dialog: self.faults.append(f"dialog {dialog.message}"))

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.faults.append(text)

    def go(self, view: str) -> Page:
        self.page.goto("about:blank")  # or another hash alone would not load the page anew
        self.page.goto(f"{self.report.as_uri()}/{view}")
        if view.startswith("runs"):
            self.page.wait_for_selector("#runs[data-ready]")
        if view.startswith("assay"):
            self.page.wait_for_selector("#curves[data-ready]")
        return self.page

    def close(self) -> None:
        self._context.close()


@pytest.fixture
def visit(browser: Browser, report: Path) -> Iterator[Visit]:
    made = Visit(browser, report)
    yield made
    made.close()
    assert made.faults == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_sound_and_open_to_all(
    width: int, scheme: str, browser: Browser, report: Path
) -> None:
    visit = Visit(browser, report, width, scheme)
    for view in VIEWS:
        page = visit.go(view)
        for part in page.locator("details").all():
            part.evaluate("part => { part.open = true }")
        page.wait_for_timeout(50)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view
        # Only colours depend on the theme.
        checks = CHECKS | ({"runOnly": ["color-contrast"]} if scheme == "dark" else {})
        found = Axe().run(page, options=checks).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in GRAVE]
        assert serious == [], view
    assert visit.faults == []
    home = report.as_uri()
    assert [url for url in visit.asked if not url.startswith((home, "data:", "about:"))] == []
    visit.close()


def test_pages_stay_within_the_narrowest_screen(browser: Browser, report: Path) -> None:
    visit = Visit(browser, report, 360)
    for view in VIEWS:
        assert visit.go(view).evaluate("document.documentElement.scrollWidth") <= 360, view
    visit.close()


def test_the_theme_follows_the_system_until_it_is_chosen(visit: Visit) -> None:
    page = visit.go("index.html")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(paper)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(paper)
    assert light != dark
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(paper) == light
    assert visit.go("provenance.html").evaluate(paper) == light
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.get_by_role("navigation", name="Report").is_visible()


def test_the_skip_link_comes_first_and_leads_to_the_content(visit: Visit) -> None:
    page = visit.go("index.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"


def lines(page: Page) -> Locator:
    return page.locator("#curves .chart path.line")


def test_arms_can_be_taken_out_and_put_back(visit: Visit) -> None:
    page = visit.go("assay-E-POP.html")
    page.get_by_label("condition", exact=True).select_option("score")
    page.wait_for_selector("text=A2C-PopArt")
    assert lines(page).count() == 2
    button = page.get_by_role("group", name="Arms").get_by_role("button").first
    button.focus()
    page.keyboard.press("Space")
    assert button.get_attribute("aria-pressed") == "false"
    assert lines(page).count() == 1
    button.click()
    assert lines(page).count() == 2


def test_seeds_conditions_measures_and_axes_can_be_chosen(visit: Visit) -> None:
    page = visit.go("assay-E-POP.html")
    page.get_by_label("condition", exact=True).select_option("score")
    page.get_by_label("scale", exact=True).select_option("1000")
    page.wait_for_selector('#curves[data-ready="2"]')
    page.get_by_label("seeds", exact=True).select_option("each")
    assert lines(page).count() == 6
    page.get_by_label("seeds", exact=True).select_option("seed 2")
    assert lines(page).count() == 2
    drawn = lines(page).first.get_attribute("d")
    page.get_by_label("measure", exact=True).select_option("mean_return")
    assert lines(page).first.get_attribute("d") != drawn
    drawn = lines(page).first.get_attribute("d")
    page.get_by_role("button", name="Logarithmic x axis").click()
    assert lines(page).first.get_attribute("d") != drawn


def test_the_keyboard_reads_the_values_that_were_analysed(visit: Visit, found: Site) -> None:
    page = visit.go("assay-E-POP.html")
    page.get_by_label("condition", exact=True).select_option("score")
    page.wait_for_selector('#curves:not([data-ready=""]) .arms >> text=A2C-PopArt')
    turn = int(page.locator("#curves").get_attribute("data-ready") or 0)
    panel = learning_curves.panels(found.pages[0], found.runs)[turn]
    page.locator("#curves .chart").focus()
    page.keyboard.press("End")
    said = page.locator("#curves .readout li").all_inner_texts()
    for arm, name in (("a2c", "A2C"), ("a2c-popart", "A2C-PopArt")):
        last = float(learning_curves.mean_curve(panel.arms[arm], "score")[-1])
        shown = float(f"{last:.4g}")
        assert any(row.split() == [name, f"{shown:.6g}".replace("-", "−")] for row in said), said
    page.get_by_text("As a table").click()
    assert page.locator("#curves tbody tr").last.locator("td").count() == 2


def test_pointing_at_a_curve_reads_it(visit: Visit) -> None:
    page = visit.go("assay-E-POP.html")
    page.locator("#curves .chart").hover(position={"x": 600, "y": 150})
    assert "interactions" in page.locator("#curves .readout").inner_text()
    page.mouse.move(5, 5)
    assert not page.locator("#curves .readout").is_visible()


def test_lifetimes_are_filtered_by_any_field(visit: Visit) -> None:
    page = visit.go("runs.html")
    count = page.locator(".count")
    assert count.inner_text() == f"{EVERY} of {EVERY} lifetimes"
    assert not page.get_by_role("button", name="Clear all").is_visible()
    page.get_by_label("learner", exact=True).select_option("disco")
    assert count.inner_text() == f"4 of {EVERY} lifetimes"
    assert page.locator("table.runs tbody tr").count() == 4
    page.get_by_label("more fields").select_option("world_seed")
    page.get_by_label("world seed").select_option("7")
    assert count.inner_text() == f"1 of {EVERY} lifetimes"
    assert page.url.endswith("#learner=disco&world_seed=7")
    page.get_by_role("button", name="Clear all").click()
    assert page.evaluate("document.activeElement.type") == "search"
    page.get_by_label("search", exact=True).fill(RECIPIENT.id[:8])
    assert count.inner_text() == f"1 of {EVERY} lifetimes"
    page = visit.go("runs.html#assay=E-POP&seed=2")
    own = sum(run.seed == 2 for run in PLAN.runs.values())
    assert page.locator(".count").inner_text() == f"{own} of {EVERY} lifetimes"


def test_lifetimes_are_sorted_by_a_column(visit: Visit) -> None:
    page = visit.go("runs.html")
    page.get_by_role("button", name="seed").click()
    heading = page.locator("th[aria-sort]")
    assert heading.get_attribute("aria-sort") == "ascending"
    page.get_by_role("button", name="seed").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert page.evaluate("document.activeElement.dataset.column") is not None


def test_a_lifetime_leads_to_its_donor_and_back(visit: Visit) -> None:
    page = visit.go("runs.html#learner=disco")
    page.get_by_role("link", name=RECIPIENT.id[:12]).click()
    page.wait_for_selector(f'#runs[data-ready="{RECIPIENT.id}"]')
    assert HOSTILE in page.locator(".detail").inner_text()
    assert page.locator(".detail .chart").count() >= 1
    page.locator(".lineage").get_by_role("link", name=DONOR.id[:12]).click()
    page.wait_for_selector(f'#runs[data-ready="{DONOR.id}"]')
    assert page.locator(".lineage").get_by_role("link", name=RECIPIENT.id[:12]).is_visible()
    page.get_by_text("Specification, all").click()
    spec: dict[str, Any] = json.loads(page.locator(".detail pre").first.inner_text())
    assert spec["world_seed"] == 7
    page.get_by_role("button", name="All lifetimes").click()
    assert page.locator(".count").inner_text().startswith("4 of")


def test_a_lifetime_that_is_not_there_is_reported(visit: Visit) -> None:
    page = visit.go(f"runs.html#{DONOR.id[:2]}{'0' * 62}")
    assert "no lifetime" in page.get_by_role("alert").inner_text()


def test_a_link_to_a_closed_part_opens_it(visit: Visit) -> None:
    page = visit.go("provenance.html#cells-E-POP")
    assert page.locator("#cells-E-POP").evaluate("part => part.open") is True


def test_a_view_leads_to_its_lifetimes_and_a_lifetime_to_its_view(visit: Visit) -> None:
    page = visit.go("index.html")
    page.get_by_role("navigation", name="Report").get_by_role("link", name="Mechanism").click()
    place = page.locator("section", has=page.locator("#mechanism-trajectory-random-0"))
    place.get_by_text("lifetimes observed").click()
    place.get_by_role("link", name=WATCHED.id[:12]).click()
    page.wait_for_selector(f'#runs[data-ready="{WATCHED.id}"]')
    page.get_by_role("link", name="mechanism-trajectory-random-0").click()
    assert page.url.endswith("mechanism.html#mechanism-trajectory-random-0")


def test_returns_are_shown_to_a_decimal(visit: Visit) -> None:
    page = visit.go(f"runs.html#text={RECIPIENT.id}")
    assert page.locator("table.runs tbody td").last.inner_text() == f"{RETURN:.1f}"


def test_a_filter_that_nothing_passes_is_shown(visit: Visit) -> None:
    page = visit.go("runs.html#seed=99")
    assert page.locator(".count").inner_text() == f"0 of {EVERY} lifetimes"
    assert page.get_by_label("seed", exact=True).input_value() == "99"
    page.get_by_label("seed", exact=True).select_option("any")
    assert page.locator(".count").inner_text() == f"{EVERY} of {EVERY} lifetimes"


def test_charts_of_a_lifetime_have_axes_to_choose_and_a_table(visit: Visit) -> None:
    page = visit.go(f"runs.html#{RECIPIENT.id}")
    part = page.locator(".detail section").filter(has_text="Learning curve").first
    drawn = part.locator("path.line").get_attribute("d")
    part.get_by_role("button", name="Logarithmic x axis").click()
    assert part.locator("path.line").get_attribute("d") != drawn
    part.get_by_text("As a table").click()
    rows = part.locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[1] for row in rows] == ["123.5"] * 3


def test_carriers_that_were_not_logged_are_named(visit: Visit) -> None:
    run = next(run for key, run in PLAN.runs.items() if key != MISSING)
    said = visit.go(f"runs.html#{run.id}").locator(".unlogged").inner_text()
    assert all(f"{name} (not recorded)" in said for name in run.learner.CARRIERS)
    assert "not logged over time" in said
    assert "recurrent (norm at the end " in visit.go(f"runs.html#{DONOR.id}").inner_text(
        ".unlogged"
    )


CHARTED = """(lines) => {
    const place = document.createElement("div");
    document.body.append(place);
    rulescope.chart(place, { lines, x: "interactions", y: "value", logY: true });
    return [...place.querySelectorAll("text[text-anchor=end]")].map((tick) => tick.textContent);
}"""


def test_a_logarithmic_axis_within_a_decade_has_ticks(visit: Visit) -> None:
    page = visit.go("runs.html")
    steps = [1, 2, 3]
    ticks = page.evaluate(CHARTED, [{"name": "a", "x": steps, "y": [2.1, 2.5, 2.9]}])
    assert len(ticks) >= 3
    assert all(2.1 <= float(tick) <= 2.9 for tick in ticks)
    assert page.evaluate(CHARTED, [{"name": "a", "x": steps, "y": [0.1, 1, 100]}]) == [
        "0.1",
        "0.3",
        "1",
        "3",
        "10",
        "30",
        "100",
    ]


def test_a_chart_takes_as_many_values_as_there_are(visit: Visit) -> None:
    page = visit.go("runs.html")
    many = "Array.from({ length: 200_000 }, (_, i) => i + 1)"
    ticks = page.evaluate(f"() => ({CHARTED})([{{ name: 'a', x: {many}, y: {many} }}])")
    assert len(ticks) >= 3


def test_printing_opens_what_is_closed_and_closes_it_again(visit: Visit) -> None:
    page = visit.go("assay-E-POP.html")
    count = "document.querySelectorAll('details[open]').length"
    before = page.evaluate(count)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(count) == page.locator("details").count() > before
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(count) == before


@pytest.mark.parametrize("view", ["index.html", "atlas.html", "mechanism.html", "provenance.html"])
def test_a_phone_has_room_for_captions_and_fingers(
    view: str, browser: Browser, report: Path
) -> None:
    visit = Visit(browser, report, 390)
    page = visit.go(view)
    cut = """spans => spans.filter(span => span.getBoundingClientRect().right > innerWidth)
        .map(span => span.textContent)"""
    assert page.locator(".scroll caption > span").evaluate_all(cut) == []
    low = """links => links.filter(link => link.getBoundingClientRect().height < 24)
        .map(link => link.textContent)"""
    links = page.locator("header nav a, .contents a, .files a, button, summary")
    assert links.evaluate_all(low) == []
    tops = "links => new Set(links.map(link => link.getBoundingClientRect().top)).size"
    assert page.locator("header nav a").evaluate_all(tops) == 1
    visit.close()


# --- the atlas ------------------------------------------------------------------------------------


def atlas_rows(page: Page) -> list[list[str]]:
    """Return rule, measure and value of the rows that are shown."""
    shown = page.locator("#atlas-rows tbody tr:visible").all()
    return [row.locator("th, td").all_inner_texts()[:3] for row in shown]


def test_the_atlas_is_sorted_by_any_column_and_back(visit: Visit) -> None:
    page = visit.go("atlas.html")
    first = atlas_rows(page)
    button = page.get_by_role("button", name="Value")
    button.click()
    head = page.locator("#atlas-rows th[aria-sort]")
    assert head.get_attribute("aria-sort") == "descending"
    assert [row[2].split()[0] for row in atlas_rows(page)] == ["0.90", "0.70", "0.50"]
    button.focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert [row[2].split()[0] for row in atlas_rows(page)] == ["0.50", "0.70", "0.90"]
    page.get_by_role("button", name="Rule").click()
    assert [row[0] for row in atlas_rows(page)] == ["a2c", "disco103", "disco103"]
    assert head.count() == 1
    assert sorted(atlas_rows(page)) == sorted(first)
    for column in page.locator("#atlas-rows thead button").all():
        column.click()
        assert sorted(atlas_rows(page)) == sorted(first)


def test_the_atlas_can_be_narrowed_to_a_rule(visit: Visit) -> None:
    page = visit.go("atlas.html")
    page.get_by_label("rule", exact=True).select_option("a2c")
    assert [row[0] for row in atlas_rows(page)] == ["a2c"]
    assert page.get_by_role("status").inner_text() == "1 of 3 rows"
    page.get_by_label("rule", exact=True).select_option("any")
    assert len(atlas_rows(page)) == 3


def test_the_atlas_can_be_read_without_scripts(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{report.as_uri()}/atlas.html")
    assert len(atlas_rows(page)) == 3
    assert page.get_by_role("button").count() == 0
    context.close()
