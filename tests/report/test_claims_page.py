"""The page of claims: every claim with its verdict, disagreements first, and what it rests on."""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from made_up_records import fill
from report import ledger_samples
from report.site_samples import stored
from rulescope.assays.assay_run import folder_name
from rulescope.claims.judged_ledger import has_records
from rulescope.claims.ledger import LEVELS, claims, select
from rulescope.claims.ledger_tables import in_order
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.records import Store
from rulescope.report import publication, site_builder
from rulescope.report.claims_page import claims_page
from rulescope.report.front_page import front_page
from rulescope.report.learning_curves import Panel
from rulescope.report.publication_readme import publication_readme
from rulescope.report.site_model import Site

LEDGER = ledger_samples.ledger()


@pytest.fixture(scope="module")
def page(found: Site) -> str:
    return html.unescape(claims_page(found, LEDGER))


def cards(page: str) -> dict[str, str]:
    """Return the text of each claim by its id, in the order of the page."""
    return dict(re.findall(r'<article class="claim" id="([^"]+)">(.*?)</article>', page, re.DOTALL))


def test_the_counts_of_the_verdicts_come_first(page: str) -> None:
    counts = Counter(entry.verdict.word for entry in LEDGER.entries)
    lede = page.partition('<p class="lede">')[2].partition("</p>")[0]
    assert lede.startswith(f"{len(claims())} claims: {counts['contradicted']} contradicted, ")
    assert sum(counts.values()) == len(claims())


def test_every_claim_is_there_once_by_level_and_disagreements_first(page: str) -> None:
    by_level = [
        [one for one in LEDGER.entries if one.verdict.claim.level == level] for level in LEVELS
    ]
    expected = [one.verdict.claim.id for level in by_level for one in in_order(level)]
    assert list(cards(page)) == expected
    assert len(expected) == len(claims())


def test_a_card_has_the_verdict_as_words_the_statement_and_the_command(page: str) -> None:
    texts = cards(page)
    for one in LEDGER.entries:
        claim, text = one.verdict.claim, texts[one.verdict.claim.id]
        assert f">{one.verdict.word}" in text
        assert claim.statement in text
        assert f"rulescope claims --claims {claim.id} --store STORE" in text
        assert all(atom in text for atom in claim.all)


def test_a_card_has_parts_same_source_cost_and_what_is_printed_elsewhere(page: str) -> None:
    texts = cards(page)
    for one in LEDGER.entries:
        verdict, text = one.verdict, texts[one.verdict.claim.id]
        assert text.count("0.123 [0.100, 0.200]") == (len(verdict.parts) if verdict.n else 0)
        assert ("Same source" in text) == bool(verdict.same_source)
        assert ("27 seeds: 0 lifetimes, 32 core-minutes" in text) == (one.step is not None)
        assert all(f"({key})" in text for key in verdict.claim.contradictions)
        assert (f"{verdict.n} whole seed blocks, {verdict.runs} lifetimes" in text) == (
            verdict.n > 0
        )


def test_a_claim_links_the_page_of_its_assay_if_there_is_one(page: str, found: Site) -> None:
    hrefs = {each.plan.assay.id: each.href for each in found.pages}
    texts = cards(page)
    assert "E-POP" in hrefs
    for claim in claims():
        for name in {cells.assay for cells in claim.cells}:
            link = (
                f'<a href="{hrefs[name]}">{name}</a>' if name in hrefs else f"{name} (no lifetimes)"
            )
            assert link in texts[claim.id]


def test_the_front_page_links_claims_that_are_decided(found: Site) -> None:
    panels: dict[str, list[Panel]] = {each.name: [] for each in found.pages}
    text = html.unescape(front_page(replace(found, ledger=LEDGER), panels))
    decided = [one for one in LEDGER.entries if one.verdict.word in ("contradicted", "reproduced")]
    for one in decided:
        assert f'<a href="claims.html#{one.verdict.claim.id}">{one.verdict.claim.statement}' in text
    assert f"<strong>{len(decided)} of {len(claims())}</strong>" in text
    without = front_page(replace(found, ledger=None), panels)
    assert "claims.html" not in without


def test_the_ledger_is_among_the_tables_for_print(
    found: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "write_figure", lambda *_: [])
    site = replace(found, ledger=LEDGER)
    publication.write(site, tmp_path)
    for name in ("claims", "claims-agents"):
        for ending in ("csv", "md", "tex"):
            text = (tmp_path / "publication" / f"{name}.{ending}").read_text()
            assert "history-widens-catch-window" in text
    readme = publication_readme(site)
    assert f"{len(claims())} claims: " in readme
    assert "Which claims survive a change of agent" in readme
    assert "## Claims" not in publication_readme(replace(found, ledger=None))


def test_a_store_without_lifetimes_of_published_length_has_no_ledger(tmp_path: Path) -> None:
    store = stored(tmp_path)
    assert site_builder.gather(store, folder_name).ledger is None
    assert not has_records(claims(), RecordEvidence(store))


def test_one_lifetime_of_a_claim_is_enough_for_its_page(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    [claim] = select(["popart-floor-never-binds"])
    plan = RecordEvidence(None).plan(claim.cells[0], 1)
    fill(store, [next(iter(plan.runs.values()))])
    site = site_builder.gather(store, folder_name)
    assert site.ledger is not None
    assert len(site.ledger.entries) == len(claims())
    assert site.ledger.by_agent == {}
    assert "exact (holds)" not in {one.verdict.word for one in site.ledger.entries}


def test_a_damaged_record_leaves_the_claims_out_and_is_reported(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    [claim] = select(["popart-floor-never-binds"])
    plan = RecordEvidence(None).plan(claim.cells[0], 2)
    fill(store, list(plan.runs.values()))
    damaged = next(iter(plan.runs))
    (store.folder(damaged) / "log.npz").write_bytes(b"damaged")
    site = site_builder.gather(Store(tmp_path / "store", read_only=True), folder_name)
    assert site.ledger is None
    assert "claims" in dict(site.unanalysed)
