"""Pages with their markers filled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from documents import spans
from documents.analyses import check_agent
from documents.repository import Repository
from documents.spans import DocumentError
from documents.tables import Tables
from documents.values import Values


def filled(page: Path, repository: Repository) -> str:
    """Return the text of ``page`` as it should be."""
    text = page.read_text(encoding="utf-8")
    agent = spans.agent(text)
    try:
        if agent is not None:
            check_agent(agent)
        return spans.fill(text, Values(repository, agent), Tables(repository, agent))
    except DocumentError as fault:
        raise DocumentError(f"{page.relative_to(repository.root)}: {fault}") from fault


def stale(repository: Repository) -> Iterator[tuple[Path, str]]:
    """Yield the pages that are not as they should be, each with its text as it should be."""
    for page in repository.pages:
        text = filled(page, repository)
        if text != page.read_text(encoding="utf-8"):
            yield page, text
