"""Context of the page of claims: the verdict on each, and everything that it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rulescope.claims.judged_ledger import JudgedLedger
from rulescope.claims.ledger import LEVELS, Claim, Level, contradictions
from rulescope.claims.ledger_tables import (
    RULE,
    Entry,
    cost_text,
    in_order,
    parts_table,
    sample_text,
    summarise,
    verdict_text,
)
from rulescope.claims.verdicts import Verdict, Word
from rulescope.report.page_templates import TableView, render_page, table_view
from rulescope.report.publication import claims_tables
from rulescope.report.site_model import PUBLICATION, AssayPage, Site

UNCHECKED: Word = "exact (not checked)"
BADGES: dict[Word, str] = {
    "contradicted": "against",
    "exact (fails)": "against",
    "reproduced": "for",
    "exact (holds)": "for",
    "undecided": "open",
    UNCHECKED: "none",
    "not comparable": "none",
}
"""The style of each verdict."""
SAME_SOURCE = {
    "yes": "Yes: our estimates reproduce the printed ones.",
    "no": "No: one of our estimates contradicts the printed one.",
    "undecided": "Undecided.",
}
"""Whether our estimates and the printed ones can be of one source."""
DECIDED: tuple[Word, ...] = ("contradicted", "exact (fails)", "reproduced", "exact (holds)")
LEVEL_NAMES: dict[Level, str] = {
    "headline": "Headline claims",
    "main": "Claims of the main text",
    "appendix": "Claims of the appendix",
}


def badge_class(word: Word) -> str:
    """Return the CSS class of a verdict's badge."""
    return BADGES[word]


def claims_page(site: Site, ledger: JudgedLedger) -> str:
    """Return the page."""
    pages = _pages_by_assay(site.pages)
    ledger_view, *agents = [
        (table_view(table), table.label, f"{PUBLICATION}/{table.label}")
        for table in claims_tables(site)
    ]
    return render_page(
        "claims",
        site,
        title="Claims",
        here="claims.html",
        summary=summarise([entry.verdict for entry in ledger.entries]),
        rule=RULE,
        unchecked=any(entry.verdict.word == UNCHECKED for entry in ledger.entries),
        levels=[_level(level, ledger.entries, pages) for level in LEVELS],
        agents=agents,
        ledger=ledger_view,
    )


def _pages_by_assay(pages: Sequence[AssayPage]) -> dict[str, AssayPage]:
    """Return the page of each assay, that of the published rule and agent if there is one."""
    found: dict[str, AssayPage] = {}
    for page in sorted(pages, key=lambda each: bool(each.group)):
        found.setdefault(page.plan.assay.id, page)
    return found


def _level(
    level: Level, entries: Sequence[Entry], pages: Mapping[str, AssayPage]
) -> dict[str, Any]:
    chosen = [entry for entry in entries if entry.verdict.claim.level == level]
    return {
        "id": level,
        "title": LEVEL_NAMES[level],
        "summary": summarise([entry.verdict for entry in chosen]),
        "claims": [_claim(entry, pages) for entry in in_order(chosen)],
    }


def _claim(entry: Entry, pages: Mapping[str, AssayPage]) -> dict[str, Any]:
    verdict, claim = entry.verdict, entry.verdict.claim
    assays = list(dict.fromkeys(cells.assay for cells in claim.cells))
    return {
        "id": claim.id,
        "statement": claim.statement,
        "verdict": verdict_text(verdict),
        "css": badge_class(verdict.word),
        "facts": _facts(entry),
        "assays": [(name, pages[name].href if name in pages else None) for name in assays],
        "parts": _parts(verdict),
        "atoms": claim.all,
        "sources": _sources(claim),
        "open": BADGES[verdict.word] == "against",
    }


def _facts(entry: Entry) -> list[tuple[str, str]]:
    """Return name and text of what a verdict rests on, and what would decide the claim."""
    verdict = entry.verdict
    facts = [("Sample", sample_text(verdict))] if verdict.looks else []
    if verdict.why:
        facts.append(("Check" if verdict.claim.exact else "Why", _sentence(verdict.why)))
    if verdict.same_source:
        facts.append(("Same source", SAME_SOURCE[verdict.same_source]))
    cost = cost_text(entry)
    return facts if cost is None else [*facts, ("To decide", f"{cost}.")]


def _sources(claim: Claim) -> list[tuple[str, str]]:
    """Return name and text of what the paper prints, and why the margins are what they are."""
    found = [("Claimed in", claim.where)]
    found += [(f"Printed elsewhere ({key})", contradictions()[key]) for key in claim.contradictions]
    found += [("Note", claim.note)] if claim.note else []
    return [*found, ("Margins", _sentence(claim.margin))]


def _parts(verdict: Verdict) -> TableView | None:
    """Return the table of the parts, once they have been looked at."""
    looked_at = verdict.n >= verdict.looks[0] if verdict.looks else bool(verdict.parts)
    return table_view(replace(parts_table(verdict), note="")) if looked_at else None


def _sentence(text: str) -> str:
    """Return ``text`` with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
