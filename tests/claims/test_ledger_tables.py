"""Verdicts as tables, as data and in words."""

from __future__ import annotations

import math

import pytest

from claims.made_up_evidence import claim_of
from rulescope.claims.decision import Outcome, PartEvidence
from rulescope.claims.ledger import claims
from rulescope.claims.ledger_tables import (
    ORDER,
    Entry,
    as_data,
    evidence_text,
    in_order,
    ledger_table,
    part_text,
    parts_table,
    summarise,
)
from rulescope.claims.verdicts import Verdict, Word, judge_published

CLAIM = claim_of("clamping-amplifies-mismatch")
WINDOW = claim_of("pinned-window-spans-three-decades")


def verdict_of(word: Word, n: int = 9) -> Verdict:
    return Verdict(CLAIM, word, "undecided", (), n, (6, 9))


def test_a_summary_counts_every_verdict_disagreements_first() -> None:
    words: list[Word] = ["reproduced", "undecided", "contradicted", "reproduced"]
    found = summarise([verdict_of(word) for word in words])
    assert found == "4 claims: 1 contradicted, 1 undecided, 2 reproduced."


def test_the_table_lists_disagreements_first_and_otherwise_the_order_of_the_ledger() -> None:
    entries = [Entry(judge_published(claim)) for claim in claims() if not claim.exact]
    rows = ledger_table(entries).rows
    expected = []
    for word in ORDER:
        expected += [one.verdict.claim.id for one in entries if one.verdict.word == word]
    assert [row[0] for row in rows] == expected
    assert [one.verdict.claim.id for one in in_order(entries)] == expected


def test_the_cap_is_named_where_no_further_seeds_are_planned() -> None:
    [row] = ledger_table([Entry(verdict_of("undecided", 9))]).rows
    assert row[2] == "undecided at cap"
    [row] = ledger_table([Entry(verdict_of("undecided", 8))]).rows
    assert row[2] == "undecided"


@pytest.mark.parametrize(
    ("size", "text"),
    [("holds", "reproduced, also in size"), ("fails", "reproduced, other size")],
)
def test_a_reproduced_claim_says_whether_its_size_is_too(size: Outcome, text: str) -> None:
    [row] = ledger_table([Entry(verdict_of("reproduced")._replace(in_size=size))]).rows
    assert row[2] == text


def test_evidence_names_the_part_that_fails_or_how_many_hold() -> None:
    parts = tuple(PartEvidence(part, "holds", 9) for part in WINDOW.parts)
    verdict = Verdict(WINDOW, "reproduced", "holds", parts, 9, (6, 9))
    assert evidence_text(verdict) == "7 of 7 parts hold"
    failing = PartEvidence(WINDOW.parts[3], "fails", 9, 0.1, 0.05, 0.2, 0)
    found = evidence_text(verdict._replace(parts=(*parts[:3], failing, *parts[4:])))
    assert found == ("above(score/catch/pin/1000, 0.8) fails: 0.1 [0.05, 0.2], 0 of 9 seeds inside")
    assert evidence_text(verdict._replace(n=0)) == "not run"


def test_an_effect_that_is_smaller_than_detectable_is_said_to_be() -> None:
    [part] = CLAIM.parts
    found = PartEvidence(part, "holds", 9, 0.1, smaller=True)
    assert part_text(found).endswith(": 0.1, smaller than the original could detect")


def test_a_part_has_its_row_and_what_is_no_number_is_null() -> None:
    [part] = CLAIM.parts
    verdict = verdict_of("undecided")._replace(parts=(PartEvidence(part, "undecided", 0),))
    [row] = parts_table(verdict).rows
    assert row[0] == part.atom
    [data] = as_data(Entry(verdict))["parts"]
    assert math.isinf(part.high)
    assert data["low"] == 0.0
    assert data["high"] is data["value"] is data["interval_low"] is None
