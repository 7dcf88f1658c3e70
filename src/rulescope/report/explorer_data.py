"""Data of the run explorer: a row for every run, and its details in small files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from rulescope.assays.lifetime_figures import describe
from rulescope.episode_stats import HEADLINES, headline
from rulescope.records import Record
from rulescope.report.learning_curves import STATE_NORMS
from rulescope.report.provenance_page import IDENTITY_NAMES
from rulescope.report.report_inputs import json_numbers
from rulescope.report.site_model import Floats, Plain, RecordedRun, Site

FIRST = (
    "learner",
    "rule",
    "world",
    "scale",
    "interventions",
    "change",
    "boundary",
    "iterations",
    "seed",
)
"""Fields that are columns of the table and have a filter of their own."""
HIDDEN = frozenset({"id", "science_hash", "started", "seconds", "bytes", "rows"})
"""Fields that differ between nearly all runs, and so are no use as filters."""
CARRIER_COLUMNS = {
    **STATE_NORMS,
    "value_mean": "mean of the values (PopArt)",
    "value_scale": "deviation of the values (PopArt)",
    "floor_margin": "deviation above its floor (PopArt)",
    "return_scale": "scale of the returns (return-based scaling)",
    "replaced_share": "replacements by hidden unit (Continual Backprop)",
    "unit_age": "mean age of hidden units (Continual Backprop)",
    "unit_utility": "mean utility of hidden units (Continual Backprop)",
    "stored": "transitions in replay",
}
"""Log columns about carriers, and their names."""
CARRIER_OF = {
    **dict.fromkeys(STATE_NORMS, "recurrent"),
    **dict.fromkeys(("value_mean", "value_scale", "floor_margin"), "averages"),
    "return_scale": "scaling",
    **dict.fromkeys(("replaced_share", "unit_age", "unit_utility"), "units"),
    "stored": "replay",
}
"""The carrier that each of these columns is about."""


def rows(site: Site) -> dict[str, Any]:
    """Return the table of all runs, column by column.

    A field is the sorted list of its distinct values, and for every run the index of its value.
    """
    names = dict.fromkeys(name for run in site.runs.values() for name in run.fields)
    asked = [name for name in (*FIRST, *sorted(names.keys() - set(FIRST))) if name not in HIDDEN]
    fields = {
        name: _indexed([run.fields.get(name) for run in site.runs.values()]) for name in asked
    }
    assays = [sorted({each.name for each, _ in site.cells.get(run, ())}) for run in site.runs]
    return {
        "runs": list(site.runs),
        "shown": [name for name in FIRST if name in fields and len(fields[name][0]) > 1],
        "fields": {name: field for name, field in fields.items() if len(field[0]) > 1},
        "pages": [each.name for each in site.pages],
        "assays": [[_page_index(site, name) for name in names_] for names_ in assays],
        "level": [_final_level(run) for run in site.runs.values()],
    }


def _page_index(site: Site, name: str) -> int:
    return next(i for i, each in enumerate(site.pages) if each.name == name)


def _final_level(run: RecordedRun) -> float | None:
    """Return the last value of the best measure of a run."""
    if not all(name in run.log for name in HEADLINES):
        return None
    column = json_numbers(run.log[headline(run.log)][-1:], 9)
    return column[0] if column else None


def _indexed(values: list[Plain]) -> tuple[list[Plain], list[int]]:
    order: list[Plain] = sorted(set(values), key=_sort_key)
    index = {_type_key(value): i for i, value in enumerate(order)}
    return order, [index[_type_key(value)] for value in values]


def _sort_key(value: Plain) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, bool):
        return (1, float(value), "")
    if isinstance(value, int | float):
        return (2, float(value), "")
    return (3, 0.0, value)


def _type_key(value: Plain) -> tuple[str, Plain]:
    return (type(value).__name__, value)


def chunks(site: Site) -> dict[str, dict[str, Any]]:
    """Return the details of all runs by the first two digits of their id: one file each."""
    found: dict[str, dict[str, Any]] = {}
    for key, run in site.runs.items():
        found.setdefault(key[:2], {})[key] = details(site, run)
    return found


def details(site: Site, run: RecordedRun) -> dict[str, Any]:
    """Return all that is shown of one run."""
    manifest = run.manifest
    columns = {name: json_numbers(column) for name, column in run.log.items()}
    return {
        "title": describe(Record(run.spec, {}, {}, manifest)),
        "seed": run.spec.seed,
        "manifest": msgspec.to_builtins(manifest),
        "log": {n: c for n, c in columns.items() if any(value is not None for value in c)},
        "every": run.every,
        "measure": _measure(run),
        "change": _change(run),
        "carriers": [list(each) for each in carriers(run)],
        "terminal": [list(each) for each in run.terminal],
        "evaluations": [list(each) for each in run.evaluations],
        "donors": [_relative(site, parent) for parent in manifest.parents],
        "recipients": [_relative(site, key) for key in site.recipients.get(manifest.id, ())],
        "cells": [
            *([each.name, each.href, text] for each, text in site.cells.get(manifest.id, ())),
            *([each.slug, each.href, text] for each, text in site.observed.get(manifest.id, ())),
        ],
    }


def carriers(run: RecordedRun) -> list[tuple[str, bool, float | None]]:
    """Return the carriers of a run: name, whether it was logged, norm at the end.

    The norm is None if the record has no such array, or none of floating point.
    """
    logged = {
        CARRIER_OF[name]
        for name, column in run.log.items()
        if name in CARRIER_OF and _any_finite(column)
    }
    squares: dict[str, list[float]] = {}
    for array in run.terminal:
        known = squares.setdefault(array.name.partition("/")[0], [])
        known += [] if array.norm is None else [array.norm**2]
    # A record of another version may have carriers that the learner no longer has.
    names = dict.fromkeys((*run.spec.learner.carrier_names, *squares))
    norms = {name: math.sqrt(sum(known)) for name, known in squares.items() if known}
    return [(name, name in logged, _finite(norms.get(name))) for name in names]


def _any_finite(column: Floats) -> bool:
    return bool(np.isfinite(column).any())


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _measure(run: RecordedRun) -> str:
    known = all(name in run.log for name in HEADLINES)
    return headline(run.log) if known else "score"


def _change(run: RecordedRun) -> int | None:
    spec = run.spec
    return None if spec.change is None else spec.change.at * spec.lanes * spec.steps


def _relative(site: Site, key: str) -> list[Any]:
    """Return the id of a donor or recipient, whether the store has it, and a description."""
    run = site.runs.get(key)
    if run is None:
        return [key, False, "not in this store"]
    text = describe(Record(run.spec, {}, {}, run.manifest))
    return [key, True, f"{text}, seed {run.spec.seed}"]


def column_names() -> Mapping[str, Mapping[str, str]]:
    """Return the names of columns, for the script that draws them."""
    return {
        "headlines": dict(HEADLINES),
        "carriers": CARRIER_COLUMNS,
        "identities": IDENTITY_NAMES,
    }
