"""What the documentation shows was made from records that are here, by ``rulescope report``."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from rulescope.records import Store

ROOT = Path(__file__).parents[1]
PUBLICATION = ROOT / "replication" / "publication"
PAGES = sorted(
    [ROOT / "README.md", ROOT / "replication" / "README.md", *(ROOT / "docs").glob("*.md")]
)


@pytest.fixture(scope="module")
def index() -> dict[str, Any]:
    content: dict[str, Any] = json.loads((PUBLICATION / "figures.json").read_bytes())
    return content


def _entries(index: dict[str, Any]) -> list[dict[str, Any]]:
    groups = [group for group in index.values() if isinstance(group, dict)]
    return [
        entry
        for group in groups
        for kind in ("figures", "tables")
        for entry in group.get(kind, {}).values()
    ]


def test_every_file_is_the_one_that_the_list_names(index: dict[str, Any]) -> None:
    files = {name: sha for entry in _entries(index) for name, sha in entry["files"].items()}
    assert len(files) > 100
    for name, sha in files.items():
        content = (PUBLICATION.parent / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == sha, f"{name}: run `make results`"


def test_every_lifetime_behind_the_results_is_in_the_store(index: dict[str, Any]) -> None:
    store = Store(ROOT / "replication" / "store")
    known = set(store.ids())
    runs = {
        run: science
        for name, group in index.items()
        if isinstance(group, dict) and not name.startswith("mechanism-")
        for lives in group.get("runs", {}).values()
        for run, science in lives.items()
    }
    assert runs.keys() == known, "run `make results`"  # what views look at has its own record
    for run in sorted(runs)[::20]:
        assert store.manifest(run).science_hash == runs[run]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_picture_in_the_docs_comes_from_the_report(page: Path) -> None:
    for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        picture = (page.parent / name).resolve()
        assert picture.is_file(), f"{page.name}: no picture {name}"
        assert picture.is_relative_to(PUBLICATION), f"{page.name}: {name} is not from the report"
