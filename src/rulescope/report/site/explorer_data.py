"""The data of the run explorer: a row for every lifetime, and its details in small files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from rulescope.episode_stats import HEADLINES, headline
from rulescope.records import Record
from rulescope.report.lifetime_figures import describe
from rulescope.report.site.learning_curves import CARRIED
from rulescope.report.site.lifetime_rows import numbers
from rulescope.report.site.record_sources import WORDS
from rulescope.report.site.site_model import Floats, Life, Plain, Site

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
"""Fields that stand in the table and have a filter of their own."""
HIDDEN = frozenset({"id", "science_hash", "started", "seconds", "bytes", "rows"})
"""Fields that nearly every lifetime has a value of its own in."""
CARRIERS = {
    **CARRIED,
    "value_mean": "mean of the values (PopArt)",
    "value_scale": "deviation of the values (PopArt)",
    "floor_margin": "deviation above its floor (PopArt)",
    "stored": "transitions in replay",
}
"""Log columns that tell about persistent state, and what they are called."""
OF = {
    **dict.fromkeys(CARRIED, "recurrent"),
    **dict.fromkeys(("value_mean", "value_scale", "floor_margin"), "averages"),
    "stored": "replay",
}
"""The carrier that each of these columns tells about."""


def rows(site: Site) -> dict[str, Any]:
    """Return what the table of all lifetimes needs, column by column.

    A field is its values, each once and in order, and for every lifetime the place of its own.
    """
    runs = list(site.lives)
    names = dict.fromkeys(name for life in site.lives.values() for name in life.fields)
    asked = [name for name in (*FIRST, *sorted(names.keys() - set(FIRST))) if name not in HIDDEN]
    fields = {
        name: _coded([life.fields.get(name) for life in site.lives.values()]) for name in asked
    }
    assays = [sorted({each.name for each, _ in site.places.get(run, ())}) for run in runs]
    return {
        "runs": runs,
        "shown": [name for name in FIRST if name in fields and len(fields[name][0]) > 1],
        "fields": {name: field for name, field in fields.items() if len(field[0]) > 1},
        "pages": [each.name for each in site.pages],
        "assays": [[_place(site, name) for name in names_] for names_ in assays],
        "level": [_level(life) for life in site.lives.values()],
    }


def _place(site: Site, name: str) -> int:
    return next(i for i, each in enumerate(site.pages) if each.name == name)


def _level(life: Life) -> float | None:
    """Return the last value of the lifetime's best measure."""
    if not all(name in life.log for name in HEADLINES):
        return None
    column = numbers(life.log[headline(life.log)][-1:], 9)
    return column[0] if column else None


def _coded(values: list[Plain]) -> tuple[list[Plain], list[int]]:
    order: list[Plain] = sorted(set(values), key=_sorting)
    place = {_key(value): turn for turn, value in enumerate(order)}
    return order, [place[_key(value)] for value in values]


def _sorting(value: Plain) -> tuple[int, float, str]:
    if value is None:
        return (0, 0.0, "")
    if isinstance(value, bool):
        return (1, float(value), "")
    if isinstance(value, int | float):
        return (2, float(value), "")
    return (3, 0.0, value)


def _key(value: Plain) -> tuple[str, Plain]:
    return (type(value).__name__, value)


def chunks(site: Site) -> dict[str, dict[str, Any]]:
    """Return the details of all lifetimes, in files by the first two digits of their id."""
    found: dict[str, dict[str, Any]] = {}
    for run, life in site.lives.items():
        found.setdefault(run[:2], {})[run] = details(site, life)
    return found


def details(site: Site, life: Life) -> dict[str, Any]:
    """Return all that is shown of one lifetime."""
    manifest = life.manifest
    columns = {name: numbers(column) for name, column in life.log.items()}
    return {
        "title": describe(Record(life.spec, {}, {}, manifest)),
        "seed": life.spec.seed,
        "manifest": msgspec.to_builtins(manifest),
        "log": {n: c for n, c in columns.items() if any(value is not None for value in c)},
        "every": life.every,
        "measure": _drawn(life),
        "change": _change(life),
        "carriers": [list(each) for each in carriers(life)],
        "kept": [list(each) for each in life.kept],
        "trials": [list(each) for each in life.trials],
        "donors": [_named(site, parent) for parent in manifest.parents],
        "recipients": [_named(site, run) for run in site.recipients.get(manifest.id, ())],
        "cells": [
            *([each.name, each.href, words] for each, words in site.places.get(manifest.id, ())),
            *([each.slug, each.href, words] for each, words in site.watched.get(manifest.id, ())),
        ],
    }


def carriers(life: Life) -> list[tuple[str, bool, float | None]]:
    """Return the carriers of a lifetime: name, whether its log tells of it, norm at the end.

    There is no norm of what the record does not keep, or what is not of floating point.
    """
    logged = {OF[name] for name, column in life.log.items() if name in OF and _any(column)}
    squares: dict[str, list[float]] = {}
    for kept in life.kept:
        known = squares.setdefault(kept.name.partition("/")[0], [])
        known += [] if kept.norm is None else [kept.norm**2]
    # (What somebody else has recorded may not be what the learner has today.)
    names = dict.fromkeys((*life.spec.learner.CARRIERS, *squares))
    norms = {name: math.sqrt(sum(known)) for name, known in squares.items() if known}
    return [(name, name in logged, _finite(norms.get(name))) for name in names]


def _any(column: Floats) -> bool:
    return bool(np.isfinite(column).any())


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _drawn(life: Life) -> str:
    known = all(name in life.log for name in HEADLINES)
    return headline(life.log) if known else "score"


def _change(life: Life) -> int | None:
    spec = life.spec
    return None if spec.change is None else spec.change.at * spec.lanes * spec.steps


def _named(site: Site, run: str) -> list[Any]:
    """Return a lifetime's id, whether the store has it, and what it is."""
    life = site.lives.get(run)
    if life is None:
        return [run, False, "not in this store"]
    words = describe(Record(life.spec, {}, {}, life.manifest))
    return [run, True, f"{words}, seed {life.spec.seed}"]


def words() -> Mapping[str, Mapping[str, str]]:
    """Return what columns are called, for the script that draws them."""
    return {"headlines": dict(HEADLINES), "carriers": CARRIERS, "identities": WORDS}
