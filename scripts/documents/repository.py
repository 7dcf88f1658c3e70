"""The sources of the pages: records, the figures made of them, and measurements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from documents.analyses import Analyses
from documents.ledger import Ledger
from documents.measured import Measured
from rulescope.assays import ASSAYS
from rulescope.assays.figures import FIGURES
from rulescope.records import Store
from rulescope.report.publication import INDEX, TABLES

ROOT = Path(__file__).parents[2]
OUTPUTS = Path(__file__).parent / "outputs.json"
"""The tables and figures of the published text, by their labels there."""

Kind = Literal["tables", "figures"]


class Repository:
    """A checkout of this repository."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        store = Store(root / "replication" / "store", read_only=True)
        self.analyses = Analyses(store)
        self.ledger = Ledger(store, root / "replication" / "results")
        self.measured = Measured(root / "docs" / "measured.json")

    @property
    def pages(self) -> list[Path]:
        """Every page that may have markers."""
        own = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "replication/README.md")
        return [*(self.root / name for name in own), *sorted((self.root / "docs").rglob("*.md"))]

    @cached_property
    def outputs(self) -> dict[Kind, list[str]]:
        """Labels of the published tables and figures."""
        content: dict[Kind, list[str]] = json.loads(OUTPUTS.read_text(encoding="utf-8"))
        return content

    @cached_property
    def _index(self) -> dict[str, Any]:
        path = self.root / "replication" / "publication" / INDEX
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content

    def made(self, kind: Kind) -> set[str]:
        """Return the published tables or figures that were made from the records."""
        groups = [group for group in self._index.values() if isinstance(group, dict)]
        drawn = {
            label
            for group in groups
            for label, entry in group.get(kind, {}).items()
            if entry["status"] == "made"
        }
        return drawn & set(self.outputs[kind])

    @property
    def without_code(self) -> list[str]:
        """Published tables and figures that no code here makes."""
        known = {
            *self.made("tables"),
            *self.made("figures"),
            *FIGURES,
            *TABLES,
        }
        return [label for labels in self.outputs.values() for label in labels if label not in known]

    @property
    def without_records(self) -> list[str]:
        """Published tables and figures that have code here, but no lifetimes yet."""
        kinds: tuple[Kind, ...] = ("tables", "figures")
        known = {*self.without_code, *(label for kind in kinds for label in self.made(kind))}
        return [label for labels in self.outputs.values() for label in labels if label not in known]

    @property
    def begun(self) -> list[str]:
        """Assays with at least one lifetime, as ``rulescope report`` found them."""
        groups = [group for group in self._index.values() if isinstance(group, dict)]
        found = {name for group in groups for name, runs in group.get("runs", {}).items() if runs}
        return [name for name in ASSAYS if name in found]

    def static_size(self, pattern: str) -> str:
        """Return the size of files that every report has, in kB."""
        folder = self.root / "src" / "rulescope" / "report" / "static"
        return f"{sum(path.stat().st_size for path in folder.glob(pattern)) / 1000:.0f}"

    @staticmethod
    def listed(labels: Sequence[str]) -> str:
        """Return labels as a list in a sentence."""
        return ", ".join(f"`{label}`" for label in labels) or "none"
