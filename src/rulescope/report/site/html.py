"""HTML as nested calls. Text is escaped unless it is :class:`Markup`, so nothing slips through."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import Any

VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "path", "line", "circle", "rect"})
"""Elements without content (those of SVG close themselves)."""
_SVG = frozenset({"path", "line", "circle", "rect"})
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*\Z")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = str | int | Iterable["Child"] | None
"""What may stand inside of an element: text, elements, any nesting of them, or nothing."""
Attribute = str | int | float | bool | None


def el(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element. ``class_`` is written ``class``, ``data_run`` ``data-run``.

    An attribute that is None or False is left out, one that is True has no value.

    >>> el("a", "R&D", href="x.html", hidden=True)
    '<a href="x.html" hidden>R&amp;D</a>'
    """
    if not _NAME.match(tag):
        raise ValueError(f"{tag!r} is no element")
    opening = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{opening}{'/' if tag in _SVG else ''}>")
    return Markup(f"<{tag}{opening}>{join(children)}</{tag}>")


def join(children: Child, between: str = "") -> Markup:
    """Return any nesting of text and elements as one piece of HTML."""
    return Markup(between.join(_flat(children)))


def script(source: str) -> Markup:
    """Return an element that runs a script of ours, once the page is there."""
    return el("script", src=source, defer=True)


def data(name: str, content: Any) -> Markup:
    """Return plain data inside of a page, for scripts to find under its id."""
    return Markup(
        f'<script type="application/json" id="{html.escape(name)}">{as_json(content)}</script>'
    )


def as_json(content: Any) -> str:
    """Return JSON that can stand inside of a script; keys keep their order.

    >>> as_json({"a": "</script>"})
    '{"a":"\\\\u003c/script>"}'
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)  # ASCII: no line separators
    return text.replace("<", "\\u003c")


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    if written == "viewBox" or _NAME.match(written):
        said = html.escape(_printable(str(value)))
        return f" {written}" if value is True else f' {written}="{said}"'
    raise ValueError(f"{name!r} is no attribute")


def _flat(child: Child) -> Iterable[str]:
    if child is None:
        return
    if isinstance(child, Markup):
        yield child
    elif isinstance(child, str | int):
        yield html.escape(_printable(str(child)), quote=False)
    else:
        for each in child:
            yield from _flat(each)


def _printable(text: str) -> str:
    """Return ``text`` without what HTML cannot hold."""
    return "".join(mark if mark.isprintable() or mark in "\n\t" else "\ufffd" for mark in text)
