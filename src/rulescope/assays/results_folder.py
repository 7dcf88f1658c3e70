"""Results of an assay as a folder: tables, figures, and all estimates as JSON and as Parquet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rulescope.assays.comparison import compare
from rulescope.assays.comparison import table as comparison_table
from rulescope.assays.figures import FIGURES, write_figure
from rulescope.assays.results import as_data
from rulescope.assays.stored_estimates import INDEX, decode_results, estimate_table
from rulescope.core import arrays
from rulescope.core.disk import write_whole
from rulescope.records.typed_tables import parquet_bytes
from rulescope.render.tables import markdown, write_table, write_tables

if TYPE_CHECKING:
    from rulescope.assays import Assay, Results


ESTIMATES = "estimates.parquet"
"""The estimates of :data:`INDEX` as a table with typed columns."""
DRAWS = "draws.npz"
"""The bootstrap draws behind the estimates, if they were requested."""


def write_results(
    assay: Assay,
    results: Results,
    others: Mapping[str, Results],
    runs: Mapping[str, str],
    folder: Path,
    figures: tuple[str, ...] | None = None,
) -> list[Path]:
    """Write tables, figures and estimates into ``folder``; return the paths, overview first.

    ``others`` are results of assays that share a figure with this one, by id. ``runs`` maps the id
    of every lifetime used to its science hash. ``figures`` defaults to all figures of the assay.
    """
    chosen = assay.figures if figures is None else figures
    labels = [label for label in chosen if label in FIGURES]
    everything = {**others, results.assay: results}
    drawn = [path for label in labels for path in write_figure(label, everything, folder)]
    tables = write_tables(results.tables, folder)
    beside = compare(results)
    if beside:
        tables += write_table(comparison_table(results, beside), folder)
    pictures = [path.name for path in drawn if path.suffix == ".png"]
    overview = write_whole(folder / "README.md", _overview(assay, results, pictures).encode())
    paths = [overview, *tables, *drawn]
    if results.draws:
        paths.append(write_whole(folder / DRAWS, arrays.pack(results.draws)))
    _remove_stale(folder, {path.name for path in paths})
    content = as_data(results) | {
        "runs": dict(sorted(runs.items())),
        "files": sorted(path.name for path in paths),
    }
    text = f"{json.dumps(content, indent=1)}\n".encode()
    stored = decode_results(text, folder / INDEX)
    table = write_whole(folder / ESTIMATES, parquet_bytes(estimate_table(stored)))
    data = write_whole(folder / INDEX, text)
    return [overview, data, table, *paths[1:]]


def _remove_stale(folder: Path, written: set[str]) -> None:
    """Remove files of an earlier grid that this one does not have."""
    try:
        before = json.loads((folder / INDEX).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in before:
        if isinstance(name, str) and name not in written and Path(name).name == name:
            (folder / name).unlink(missing_ok=True)


def _overview(assay: Assay, results: Results, pictures: list[str]) -> str:
    parts = [f"# {assay.id}: {assay.question}", f"{results.budget}."]
    parts += ["\n".join(f"- {note}" for note in results.notes)] if results.notes else []
    parts += [f"![{name}]({name})" for name in pictures]
    parts += [markdown(table).strip() for table in results.tables]
    return "\n\n".join(parts) + "\n"
