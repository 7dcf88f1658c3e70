"""Markers in Markdown pages, and how they are filled.

A value stands between two comments inside a line, a table between two lines of them::

    The store holds <!-- value: records -->505<!-- /value --> lifetimes.

    <!-- table: E1-scores -->
    | arm | ...
    <!-- /table -->

Comments are not shown where Markdown is rendered. ``<!-- agent: NAME -->`` at the top of a page
names the agent of its results, for markers that name none themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rulescope.core.errors import RulescopeError

Answer = Callable[[str], str]
"""Returns the text for the words of a marker."""

_AGENT = re.compile(r"<!-- agent: (\S+) -->")
_ANY = re.compile(r"<!-- /?(?:value|table)\b.*?-->")


class DocumentError(RulescopeError):
    """A marker that cannot be filled."""


def agent(text: str) -> str | None:
    """Return the agent that a page names for its results, or None."""
    found = _AGENT.search(text)
    return None if found is None else found[1]


def fill(text: str, value: Answer, table: Answer) -> str:
    """Return ``text`` with every marker filled."""
    return _filled(_filled(text, "value", value, ""), "table", table, "\n")


def _filled(text: str, kind: str, answer: Answer, end: str) -> str:
    pattern = re.compile(rf"(<!-- {kind}: (.+?) -->{end})(.*?)(<!-- /{kind} -->)", re.DOTALL)
    outside = pattern.sub("", text)
    if lost := [found for found in _ANY.findall(outside) if kind in found.split(":")[0]]:
        raise DocumentError(f"{lost[0]}: a marker without its other half")

    def written(found: re.Match[str]) -> str:
        start, words, before, close = found.groups()
        if not end and not text[: found.start()].rpartition("\n")[2].strip():
            raise DocumentError(f"{start}: a comment at the beginning of a line ends the paragraph")
        if inside := _ANY.search(before):
            raise DocumentError(f"{start.strip()}: {inside[0]} comes before its end")
        return f"{start}{answer(words)}{end}{close}"

    return pattern.sub(written, text)
