"""The results folder of a view: overview, figure, table, data, and an index of their origin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from rulescope import run_spec as specs
from rulescope.assays.results import Column, Results, Table, Value, as_data
from rulescope.core import arrays, disk
from rulescope.core.disk import stem, write_whole
from rulescope.core.errors import RecordError, SpecError
from rulescope.mechanism.view_request import Observations, View, ViewRequest
from rulescope.render.style import save
from rulescope.render.tables import WrittenEstimate, finite, markdown, write_tables
from rulescope.rules.rule_weights import short
from rulescope.run_spec import RunSpec
from rulescope.stats import Estimate

INDEX = "results.json"
"""Names every estimate, every lifetime and every file, with hashes."""
DATA = "data.npz"
"""Every array of the results, by its name in :class:`~rulescope.assays.Results`."""
FIGURE_FORMATS = ("pdf", "svg", "png")
TABLE_FORMATS = ("csv", "md", "tex")

REPAIR = "run the view again (stored observations are reused)"

FileName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z")]
"""Of a file beside the index; never a path to another folder."""
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class ObservedRun(NamedTuple):
    """A lifetime that a view observed."""

    name: str
    """The view's name for it, such as ``cross/0.001/0``."""
    spec: RunSpec
    science_hash: str


class StoredView(NamedTuple):
    """The results of a view as read from its folder."""

    name: str
    title: str
    question: str
    caption: str
    figures: tuple[Path, ...]
    """The figure as PDF, SVG and PNG."""
    tables: tuple[Path, ...]
    """The table as CSV, Markdown and LaTeX."""
    table: Table
    """The content of those files."""
    files: tuple[Path, ...]
    """Every file beside the index: these, the overview and the data."""
    sha256: Mapping[str, str]
    """Of every file beside the index when it was written, by file name."""
    rule: str
    scales: tuple[float, ...]
    seeds: int
    iterations: int
    """Length of a lifetime."""
    runs: tuple[ObservedRun, ...]

    @property
    def label(self) -> str:
        """Of its figure and its table."""
        return self.table.label


class _Table(msgspec.Struct):
    """A table in a file."""

    label: Annotated[str, Meta(pattern=r"^mechanism-[a-z]+\Z")]
    title: str
    columns: list[tuple[str, int, bool]]
    rows: list[list[str | int | float | WrittenEstimate | None]]
    note: str
    tells_n: bool

    @classmethod
    def of(cls, table: Table) -> _Table:
        rows = [[_cell(value) for value in row] for row in table.rows]
        columns = [(each.heading, each.digits, each.interval) for each in table.columns]
        return cls(table.label, table.title, columns, rows, table.note, table.tells_n)

    def table(self) -> Table:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise RecordError("the rows of its table differ in length")
        return Table(
            self.label,
            self.title,
            tuple(Column(*each) for each in self.columns),
            tuple(
                tuple(
                    each.estimate() if isinstance(each, WrittenEstimate) else each for each in row
                )
                for row in self.rows
            ),
            self.note,
            self.tells_n,
        )


def _cell(value: Value) -> str | int | float | WrittenEstimate | None:
    if isinstance(value, Estimate):
        return WrittenEstimate.of(value)
    return finite(value) if isinstance(value, float) else value


class _Run(msgspec.Struct):
    """A lifetime of an index."""

    id: Sha256
    science_hash: Sha256
    spec: dict[str, Any]


class _Made(msgspec.Struct):
    """The origin of the data."""

    rule: str
    scales: list[float]
    seeds: int
    iterations: int
    runs: dict[str, _Run]


class _Index(msgspec.Struct):
    """The part of an index that a :class:`StoredView` needs."""

    view: str
    title: str
    question: str
    caption: str
    files: list[FileName]
    table: _Table
    sha256: dict[FileName, Sha256]
    made: _Made
    seal: Sha256 | None = None
    """Hash of the rest of the index; an index of an earlier version has none."""


def folder_name(view: View, request: ViewRequest) -> str:
    """Return the name of a results folder: the view, with agent and rule where not the default."""
    default = view.default_request
    parts = [view.label]
    parts += [request.applied_agent] if request.applied_agent not in ("", default.agent) else []
    parts += [stem(short(request.rule))] if request.rule != default.rule else []
    return "-".join(parts)


def write_view(
    view: View,
    request: ViewRequest,
    results: Results,
    observations: Sequence[Observations],
    folder: Path,
) -> list[Path]:
    """Write the results of a view into ``folder``; return the paths, overview and index first.

    The same results give the same bytes.
    """
    figure = view.draw({view.label: results})
    figures = [
        save(figure, folder / f"{view.label}.{ending}", title=view.label)
        for ending in FIGURE_FORMATS
    ]
    tables = write_tables(results.tables, folder)
    data = write_whole(folder / DATA, arrays.pack(results.series))
    overview = write_whole(folder / "README.md", _overview(view, results).encode())
    paths = [overview, data, *figures, *tables]
    index = as_data(results) | {
        "view": view.name,
        "title": view.title,
        "question": view.question,
        "caption": view.caption,
        "made": _made(view, request, observations),
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


def _made(view: View, request: ViewRequest, observations: Sequence[Observations]) -> dict[str, Any]:
    """Return the origin of the data: lifetimes, the programs and machines of them, the moments."""
    return {
        "version": view.version,
        "rule": request.rule,
        "scales": list(request.scales),
        "seeds": request.seeds,
        "iterations": request.iterations,
        "runs": {
            name: {
                "id": run.id,
                "science_hash": one.science_hashes[name],
                "spec": json.loads(specs.canonical(run)),
                "source": one.source,
                "runtime": one.runtime,
            }
            for one in observations
            for name, run in one.group.runs.items()
        },
        "moments": list(observations[0].group.moments),
    }


def _overview(view: View, results: Results) -> str:
    parts = [
        f"# {view.title}",
        view.question,
        f"![{view.title}]({view.label}.png)",
        view.caption,
        f"{results.budget}.",
        *(markdown(table).strip() for table in results.tables),
        f"`{DATA}` has every array of the figure, `{INDEX}` the specification and the science hash "
        "of every observed lifetime.",
    ]
    return "\n\n".join(parts) + "\n"


def read_view(folder: Path) -> StoredView:
    """Return the view whose results are in ``folder``.

    Raise :class:`RecordError` if they are incomplete or were changed.
    """
    path = folder / INDEX
    try:
        raw = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        index = msgspec.convert(raw, _Index)
        table = index.table.table()
        runs = tuple(_observed_run(name, run) for name, run in index.made.runs.items())
    except OSError as fault:
        raise RecordError(f"{path}: cannot be read ({fault.strerror})") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecordError, SpecError) as fault:
        raise RecordError(
            f"{path}: not the results of a mechanism view ({fault}); run it again"
        ) from None

    if index.seal != _seal(raw):
        raise RecordError(f"{path}: changed, or written by an earlier version; {REPAIR}")

    def require(name: str) -> Path:
        if name not in index.sha256 or not (folder / name).is_file():
            raise RecordError(f"{folder / name}: missing; {REPAIR}")
        return folder / name

    return StoredView(
        index.view,
        index.title,
        index.question,
        index.caption,
        tuple(require(f"{table.label}.{ending}") for ending in FIGURE_FORMATS),
        tuple(require(f"{table.label}.{ending}") for ending in TABLE_FORMATS),
        table,
        tuple(require(name) for name in index.files),
        index.sha256,
        index.made.rule,
        tuple(index.made.scales),
        index.made.seeds,
        index.made.iterations,
        runs,
    )


def _observed_run(name: str, run: _Run) -> ObservedRun:
    """Return a lifetime whose id is that of its specification."""
    spec = specs.convert(run.spec, f"made.runs.{name}")
    if spec.id != run.id:
        raise RecordError(f"made.runs.{name}: {run.id[:12]} is not the id of its specification")
    return ObservedRun(name, spec, run.science_hash)


def read_files(view: StoredView) -> dict[str, bytes]:
    """Return the content of the figure and table files by file name.

    Raise :class:`RecordError` if a file beside the index has changed since it was written.
    """
    content: dict[str, bytes] = {}
    for path in view.files:
        with disk.reading(path):
            content[path.name] = path.read_bytes()
        if _sha256(content[path.name]) != view.sha256[path.name]:
            raise RecordError(f"{path}: changed since it was written; {REPAIR}")
    return {path.name: content[path.name] for path in (*view.figures, *view.tables)}


def _seal(index: Mapping[str, Any]) -> str:
    """Return the hash of the content of ``index``, which does not depend on its layout."""
    content = {key: value for key, value in index.items() if key != "seal"}
    return _sha256(json.dumps(content, sort_keys=True).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def view_folders(results: Path) -> list[Path]:
    """Return the folders below ``results`` with the results of a view, by name."""
    return [path.parent for path in sorted(results.glob(f"mechanism-*/{INDEX}"))]
