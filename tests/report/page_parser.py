"""Reads pages back: links, ids and tables, as a browser would find them."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page has in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._cell: list[str] | None = None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        self.links += [value for name in ("href", "src") if (value := found.get(name))]
        if "id" in found:
            self.ids.append(str(found["id"]))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("th", "td") and self._cell is not None:
            self.tables[-1][-1].append("".join(self._cell))
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)


def broken(folder: Path, name: str) -> list[str]:
    """Return the links of a page that lead nowhere, or out of the folder."""
    page = Page(folder / name)
    found = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme == "data":
            continue
        target = folder / unquote(parts.path) if parts.path else folder / name
        inside = target.resolve().is_relative_to(folder.resolve())
        if parts.scheme or not inside or not target.is_file():
            found.append(link)
        elif parts.fragment and target.suffix == ".html" and target.name != "runs.html":
            found += [] if unquote(parts.fragment) in Page(target).ids else [link]
    return found
