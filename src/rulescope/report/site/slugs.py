"""Names that can stand in an address."""

from __future__ import annotations

from collections.abc import Iterable

from rulescope.render.result_files import stem


def distinct(names: Iterable[str]) -> list[str]:
    """Return a name for each that can stand in an address, no two alike.

    >>> distinct(["a/b", "a-b"])
    ['a-b', 'a-b-2']
    """
    made: list[str] = []
    for name in names:
        slug, turn = stem(name), 2
        while slug in made:
            slug, turn = f"{stem(name)}-{turn}", turn + 1
        made.append(slug)
    return made
