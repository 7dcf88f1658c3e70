"""The ledger of claims in pages: tables and a paragraph for each claim.

Verdicts on records are computed from the store. Exact claims are decided by programs, some of which
need files that are not in this repository, so their verdicts are those of
``replication/results/claims/exact.json``, which ``make results`` writes.
"""

from __future__ import annotations

import csv
import json
from functools import cached_property
from pathlib import Path
from typing import Any

from documents.spans import DocumentError
from rulescope.claims.judged_ledger import judge_agents, judge_all
from rulescope.claims.ledger import LEVELS, Claim, claims
from rulescope.claims.ledger_tables import (
    Entry,
    agents_table,
    in_order,
    ledger_table,
    paragraph,
    summarise,
)
from rulescope.claims.record_evidence import RecordEvidence
from rulescope.claims.verdicts import Verdict, judge_published
from rulescope.core.errors import nearest
from rulescope.records import Store
from rulescope.render.tables import Table, cell

AGENTS = ("published", "historical")
PARTS = (*LEVELS, "agents", "all")


class Ledger:
    """All claims with their verdicts."""

    def __init__(self, store: Store, results: Path) -> None:
        self._store, self._results = store, results

    def table(self, part: str) -> list[list[str]]:
        """Return the claims of a level, all claims, or the comparison of agents: rows of text."""
        if part not in PARTS:
            raise DocumentError(f"table: claims: no {part!r}{nearest(part, PARTS)}")
        if part == "agents":
            return _rows(self._agents)
        chosen = [one for one in self._entries if part in ("all", one.verdict.claim.level)]
        return _rows(ledger_table(chosen))

    def paragraphs(self, level: str) -> str:
        """Return a paragraph for every claim of ``level``, disagreements first."""
        if level not in LEVELS:
            raise DocumentError(f"table: claim-paragraphs: no {level!r}{nearest(level, LEVELS)}")
        chosen = [one for one in self._entries if one.verdict.claim.level == level]
        return "\n".join(paragraph(one) for one in in_order(chosen)).rstrip()

    @property
    def summary(self) -> str:
        """How many claims have each verdict."""
        return summarise([entry.verdict for entry in self._entries])

    @property
    def published_summary(self) -> str:
        """What the published numbers themselves decide of the claims that need lifetimes."""
        return summarise([judge_published(claim) for claim in claims() if not claim.exact])

    def recorded(self, name: str) -> list[list[str]]:
        """Return a table that ``make results`` wrote, such as ``verdicts/verdict-power``."""
        path = self._results / f"{name}.csv"
        if not path.is_file():
            raise DocumentError(f"table: result: no {name!r}; `make results` writes it")
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))

    @cached_property
    def _entries(self) -> list[Entry]:
        found = judge_all(claims(), RecordEvidence(self._store), self._store, check=False)
        return [
            Entry(self._exact(one.verdict.claim)) if one.verdict.claim.exact else one
            for one in found
        ]

    def _exact(self, claim: Claim) -> Verdict:
        found = self._recorded_exact[claim.id]
        return Verdict(claim, found["verdict"], found["evidence"], (), 0, (), why=found["why"])

    @cached_property
    def _recorded_exact(self) -> dict[str, dict[str, Any]]:
        path = self._results / "claims" / "exact.json"
        return {one["id"]: one for one in json.loads(path.read_text(encoding="utf-8"))}

    @cached_property
    def _agents(self) -> Table:
        return agents_table(judge_agents(self._entries, self._store, AGENTS))


def _rows(table: Table) -> list[list[str]]:
    headings = [column.heading for column in table.columns]
    rows = [
        [cell(one, how) for one, how in zip(row, table.columns, strict=True)] for row in table.rows
    ]
    return [headings, *rows]
