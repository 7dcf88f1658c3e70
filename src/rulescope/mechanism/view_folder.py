"""A view's results as a folder: overview, figure, table, data, and what made them.

:func:`exhibit` is the way back for whoever shows them: title, caption, table, files, and lifetimes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from rulescope.assays.figures import write_figure
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.audit.profile import Figure
from rulescope.core import arrays, disk
from rulescope.core.errors import RecordError, SpecError
from rulescope.mechanism import mechanism_figures, replay_figures
from rulescope.mechanism.view_request import Inquiry, Observed, View
from rulescope.render.result_files import stem, write_whole
from rulescope.render.table_formats import markdown, write_tables
from rulescope.report.results_folder import INDEX, as_data
from rulescope.rules.loading import short
from rulescope.spec import run_spec as specs
from rulescope.spec.run_spec import RunSpec
from rulescope.stats import Estimate

DATA = "data.npz"
"""Every array of the results, by the name that it has in :class:`~rulescope.assays.Results`."""

CAPTIONS = {**mechanism_figures.WORDS, "replay": replay_figures.WORDS}
"""What the figure of each view shows."""
Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
"""Of a file beside the index: never a path that leads elsewhere."""
RENEW = "run the view again, which looks at nothing twice"
"""How a folder is mended: what was seen is kept, and no lifetime is lived again."""

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class Watched(NamedTuple):
    """A lifetime that a view looked at."""

    name: str
    """What the view calls it: ``cross/0.001/0``."""
    spec: RunSpec
    science_hash: str


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
    table: Table
    """What is in them."""
    files: tuple[Path, ...]
    """All that lies beside the index: these, the overview and the data."""
    sha256: Mapping[str, str]
    """Of every file beside the index when it was written, by file name."""
    rule: str
    scales: tuple[float, ...]
    seeds: int
    iterations: int
    """Of a lifetime."""
    runs: tuple[Watched, ...]

    @property
    def label(self) -> str:
        """Of its figure and its table."""
        return self.table.label


Shown = str | int | float | Figure | None
"""A cell of a table, as it is written; what is not a number is null."""


class _Table(msgspec.Struct):
    """A table as data."""

    label: Annotated[str, Meta(pattern=r"^mechanism-[a-z]+\Z")]
    title: str
    columns: list[tuple[str, int, bool]]
    rows: list[list[Shown]]
    note: str
    tells_n: bool

    @classmethod
    def of(cls, table: Table) -> _Table:
        rows = [[_written(value) for value in row] for row in table.rows]
        columns = [(each.heading, each.digits, each.interval) for each in table.columns]
        return cls(table.label, table.title, columns, rows, table.note, table.tells_n)

    def table(self) -> Table:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise RecordError("a row of its table is not as wide as the others")
        return Table(
            self.label,
            self.title,
            tuple(Column(*each) for each in self.columns),
            tuple(
                tuple(each.estimate() if isinstance(each, Figure) else each for each in row)
                for row in self.rows
            ),
            self.note,
            self.tells_n,
        )


def _written(value: Value) -> Shown:
    if isinstance(value, Estimate):
        return Figure.of(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Run(msgspec.Struct):
    """A lifetime of an index."""

    id: Sha256
    science_hash: Sha256
    spec: dict[str, Any]


class _Made(msgspec.Struct):
    """Where an index says that its data come from."""

    rule: str
    scales: list[float]
    seeds: int
    iterations: int
    runs: dict[str, _Run]


class _Index(msgspec.Struct):
    """The part of an index that an exhibit needs."""

    view: str
    title: str
    question: str
    caption: str
    files: list[Name]
    table: _Table
    sha256: dict[Name, Sha256]
    made: _Made
    seal: Sha256 | None = None
    """Of all the rest of the index; those of earlier versions have none."""


def folder_name(view: View, inquiry: Inquiry) -> str:
    """Return the name of a results folder: the view, with rule and agent where not the usual."""
    parts = [view.label]
    parts += [inquiry.own_agent] if inquiry.own_agent not in ("", view.default.agent) else []
    parts += [stem(short(inquiry.rule))] if inquiry.rule != view.default.rule else []
    return "-".join(parts)


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
        "table": msgspec.to_builtins(_Table.of(results.tables[0])),
        "files": sorted(path.name for path in paths),
        "sha256": {path.name: _sha256(path.read_bytes()) for path in sorted(paths)},
    }
    index["seal"] = _seal(index)
    written = write_whole(
        folder / INDEX, f"{json.dumps(index, indent=1, allow_nan=False)}\n".encode()
    )
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
    """Return what is shown of the view whose results are in ``folder``.

    Raise :class:`RecordError` if they are not whole.
    """
    path = folder / INDEX
    try:
        raw = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        index = msgspec.convert(raw, _Index)
        table = index.table.table()
        runs = tuple(_watched(name, run) for name, run in index.made.runs.items())
    except OSError as fault:
        raise RecordError(f"{path}: cannot be read ({fault.strerror})") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecordError, SpecError) as fault:
        raise RecordError(
            f"{path}: not the results of a mechanism view ({fault}); run it again"
        ) from None

    if index.seal != _seal(raw):
        raise RecordError(f"{path}: not as this version wrote it; {RENEW}")

    def those(*endings: str) -> tuple[Path, ...]:
        return tuple(_present(folder / f"{table.label}.{ending}", index) for ending in endings)

    return Exhibit(
        index.view,
        index.title,
        index.question,
        index.caption,
        those("pdf", "svg", "png"),
        those("csv", "md", "tex"),
        table,
        tuple(_present(folder / name, index) for name in index.files),
        index.sha256,
        index.made.rule,
        tuple(index.made.scales),
        index.made.seeds,
        index.made.iterations,
        runs,
    )


def _watched(name: str, run: _Run) -> Watched:
    """Return a lifetime whose specification is the one that its id stands for."""
    spec = specs.convert(run.spec, f"made.runs.{name}")
    if spec.id != run.id:
        raise RecordError(f"made.runs.{name}: {run.id[:12]} is not the id of its specification")
    return Watched(name, spec, run.science_hash)


def _present(path: Path, index: _Index) -> Path:
    """Return the path of a file that the index names and that is there."""
    if path.name not in index.sha256 or not path.is_file():
        raise RecordError(f"{path}: missing; {RENEW}")
    return path


def content(shown: Exhibit) -> dict[str, bytes]:
    """Return the figures and tables of an exhibit by file name, as they were written.

    Raise :class:`RecordError` if one has changed since, or the overview or the data have.
    """
    found: dict[str, bytes] = {}
    for path in shown.files:
        with disk.reading(path):
            found[path.name] = path.read_bytes()
        if _sha256(found[path.name]) != shown.sha256[path.name]:
            raise RecordError(f"{path}: not as it was written; {RENEW}")
    return {path.name: found[path.name] for path in (*shown.figures, *shown.tables)}


def _seal(index: Mapping[str, Any]) -> str:
    """Return the hash of all that ``index`` says, whatever its layout."""
    said = {key: value for key, value in index.items() if key != "seal"}
    return _sha256(json.dumps(said, sort_keys=True).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def folders(results: Path) -> list[Path]:
    """Return the folders below ``results`` in which a view has left something, by name."""
    return [path.parent for path in sorted(results.glob(f"mechanism-*/{INDEX}"))]
