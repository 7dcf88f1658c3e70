"""A view's results as a folder: overview, figure, table, data, and what made them.

:func:`exhibit` is the way back for whoever shows them: title, caption and files.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from rulescope import arrays
from rulescope import spec as specs
from rulescope.assays.results import Results
from rulescope.errors import RecordError
from rulescope.mechanism.inquiry import Inquiry, Observed, View
from rulescope.report import mechanism_figures, mechanism_replay_figures
from rulescope.report.figures import write_figure
from rulescope.report.files import stem, write_whole
from rulescope.report.folder import INDEX, as_data
from rulescope.report.tables import markdown, write_tables
from rulescope.rules.loading import short

DATA = "data.npz"
"""Every array of the results, by the name that it has in :class:`~rulescope.assays.Results`."""

CAPTIONS = {**mechanism_figures.WORDS, "replay": mechanism_replay_figures.WORDS}
"""What the figure of each view shows."""
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
"""Of a file beside the index: never a path that leads elsewhere."""


class Exhibit(NamedTuple):
    """What is shown of a view."""

    name: str
    title: str
    question: str
    caption: str
    figures: tuple[Path, ...]
    """The same picture as PDF, SVG and PNG."""
    tables: tuple[Path, ...]
    """The same table as CSV, Markdown and LaTeX."""


class _Index(msgspec.Struct):
    """The part of an index that an exhibit needs."""

    view: str
    title: str
    question: str
    caption: str
    files: list[Name]


def folder_name(view: View, inquiry: Inquiry) -> str:
    """Return the name of a results folder: the view, and the rule if it is not the usual one."""
    usual = inquiry.rule == view.default.rule
    return view.label if usual else f"{view.label}-{stem(short(inquiry.rule))}"


def write(
    view: View, inquiry: Inquiry, results: Results, observed: Sequence[Observed], folder: Path
) -> list[Path]:
    """Write all that a view has to say into ``folder``; return the paths, overview first.

    The same results give the same bytes.
    """
    drawn = write_figure(view.label, {view.label: results}, folder)
    tables = write_tables(results, folder)
    data = write_whole(folder / DATA, arrays.pack(results.series))
    picture = next(path.name for path in drawn if path.suffix == ".png")
    text = _overview(view, results, picture)
    overview = write_whole(folder / "README.md", text.encode())
    paths = [overview, data, *drawn, *tables]
    index = as_data(results) | {
        "view": view.name,
        "title": view.title,
        "question": view.question,
        "caption": CAPTIONS[view.name],
        "made": _made(view, inquiry, observed),
        "data": arrays.digest(results.series),
        "files": sorted(path.name for path in paths),
    }
    written = write_whole(folder / INDEX, f"{json.dumps(index, indent=1)}\n".encode())
    return [overview, written, *paths[1:]]


def _made(view: View, inquiry: Inquiry, observed: Sequence[Observed]) -> dict[str, Any]:
    """Return what the data follow from: lifetimes, who lived them where, and the moments."""
    return {
        "version": view.version,
        "rule": inquiry.rule,
        "scales": list(inquiry.scales),
        "seeds": inquiry.seeds,
        "iterations": inquiry.iterations,
        "runs": {
            name: {
                "id": run.id,
                "science_hash": one.science[name],
                "spec": json.loads(specs.canonical(run)),
                "source": one.source,
                "runtime": one.runtime,
            }
            for one in observed
            for name, run in one.group.runs.items()
        },
        "moments": list(observed[0].group.moments),
    }


def _overview(view: View, results: Results, picture: str) -> str:
    parts = [
        f"# {view.title}",
        view.question,
        f"![{view.title}]({picture})",
        CAPTIONS[view.name],
        f"{results.budget}.",
        *(markdown(table).strip() for table in results.tables),
        f"`{DATA}` has every array that is drawn, `{INDEX}` the specification and the science hash "
        "of every lifetime that was looked at.",
    ]
    return "\n\n".join(parts) + "\n"


def exhibit(folder: Path) -> Exhibit:
    """Return what is shown of the view whose results are in ``folder``."""
    path = folder / INDEX
    try:
        index = msgspec.json.decode(path.read_bytes(), type=_Index)
    except OSError as fault:
        raise RecordError(f"{path}: cannot be read ({fault.strerror})") from None
    except msgspec.MsgspecError as fault:
        raise RecordError(f"{path}: not the results of a mechanism view ({fault})") from None

    def those(*endings: str) -> tuple[Path, ...]:
        named = [f"mechanism-{index.view}.{ending}" for ending in endings]
        return tuple(folder / name for name in named if name in index.files)

    return Exhibit(
        index.view,
        index.title,
        index.question,
        index.caption,
        those("pdf", "svg", "png"),
        those("csv", "md", "tex"),
    )


def exhibits(results: Path) -> list[Exhibit]:
    """Return what is shown of every mechanism view in a folder of results, by name."""
    found = sorted(results.glob(f"mechanism-*/{INDEX}"))
    return [exhibit(path.parent) for path in found]
