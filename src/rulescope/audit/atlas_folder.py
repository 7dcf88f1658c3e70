"""The atlas as a folder and on a terminal; the profiles that it is made from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from rulescope.assays.figures import ENDINGS
from rulescope.audit.atlas_figure import CAPTION, picture
from rulescope.audit.atlas_rows import Atlas
from rulescope.audit.atlas_tables import (
    data_table,
    headlines,
    histories_table,
    measures_table,
    sort_atlas,
)
from rulescope.audit.axis_sentences import enumerate_names
from rulescope.audit.profile import FILE, Profile, read
from rulescope.core.disk import write_whole
from rulescope.core.errors import RecordError
from rulescope.render.style import save
from rulescope.render.tables import comma_separated, latex, markdown, terminal

NAME = "atlas"
"""Name of the folder of an atlas below the results, and of its files."""


def read_profiles(places: Sequence[Path]) -> dict[str, Profile]:
    """Return the profiles in ``places`` by folder, in their order, each once.

    A folder is known by its name, after as many of those above it as tell it from the others.

    A place is a profile, its folder, or a folder with several of these below it.
    """
    found: dict[Path, None] = {}
    for place in places:
        if not place.exists():
            raise RecordError(f"{place}: does not exist; name the results folder of an audit")
        below = sorted(place.glob(f"**/{FILE}")) if place.is_dir() else [place]
        if not below:
            raise RecordError(f"{place}: no {FILE} in it; `rulescope audit` writes one")
        found |= dict.fromkeys(path.resolve() for path in below)
    names = shortest_names([path.parent for path in found])
    return {name: read(path) for name, path in zip(names, found, strict=True)}


def shortest_names(folders: Sequence[Path]) -> list[str]:
    """Return for every folder the shortest end of its path that no other one has.

    >>> shortest_names([Path("/a/one/mine"), Path("/a/two/mine"), Path("/a/two/yours")])
    ['one/mine', 'two/mine', 'yours']
    """

    def end(folder: Path, length: int) -> str:
        return "/".join(folder.parts[-length:])

    made = []
    for folder in folders:
        others = [each for each in folders if each != folder]
        lengths = range(1, len(folder.parts))
        ends = (
            end(folder, n) for n in lengths if end(folder, n) not in [end(o, n) for o in others]
        )
        made.append(next(ends, str(folder)))
    return made


def write_atlas(atlas: Atlas, folder: Path, sort: str | None = None) -> list[Path]:
    """Write ``atlas`` into ``folder``; return the paths, the page for readers first.

    The rows of tables and data are sorted by the column ``sort``.
    """
    ordered = sort_atlas(atlas, sort)
    short = measures_table(ordered, headlines(ordered), "Rules side by side")
    texts = {
        f"{NAME}.md": _page(ordered),
        f"{NAME}.csv": comma_separated(data_table(ordered)),
        f"{NAME}.tex": f"{latex(histories_table(ordered))}\n{latex(short)}",
    }
    made = [write_whole(folder / name, text.encode()) for name, text in texts.items()]
    data = write_whole(folder / f"{NAME}.json", ordered.to_json())
    figures = [save(picture(atlas), folder / f"{NAME}.{end}", title=NAME) for end in ENDINGS]
    return [*made, data, *figures]


def _page(atlas: Atlas) -> str:
    """Return the atlas in Markdown, the answers first."""
    names = [rule.label for rule in atlas.rules]
    parts = [
        f"# Atlas of {enumerate_names(names)}",
        markdown(histories_table(atlas)).strip(),
        "\n".join(f"- {sentence}" for sentence in atlas.sentences),
        f"![Every rule at every measure]({NAME}.png)",
        CAPTION,
        markdown(measures_table(atlas, atlas.rows, "Every measure")).strip(),
        *(["\n".join(f"- {note}" for note in atlas.notes)] if atlas.notes else []),
        f"Data: [{NAME}.csv]({NAME}.csv), [{NAME}.json]({NAME}.json).",
    ]
    return "\n\n".join(parts) + "\n"


def summary(atlas: Atlas, sort: str | None = None) -> list[RenderableType]:
    """Return ``atlas`` for a terminal: the answers, what they say, and the short table."""
    ordered = sort_atlas(atlas, sort)
    short = measures_table(ordered, headlines(ordered), "")
    made: list[RenderableType] = [terminal(histories_table(ordered)), Text()]
    made += [Text(f"- {sentence}") for sentence in ordered.sentences]
    made += [Text(), terminal(short)]
    return [*made, *(Text(f"note: {note}") for note in ordered.notes)]
