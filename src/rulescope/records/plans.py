"""Plans of campaigns, ``plans/<sha256 of the file>.json`` of a store: what was to be run, and why.

A record does not name the assay that it was made for. A report reads it from the plan instead of
searching all grids. No result depends on a plan: a store without plans is complete.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from rulescope.core import disk
from rulescope.core.errors import RecordError
from rulescope.envs.tasks import Task
from rulescope.learners.disco_config import Disco
from rulescope.learners.further_config import Lpg, Lpo
from rulescope.learners.learner_config import Plugin
from rulescope.records.store import Store
from rulescope.records.store_layout import ID, read_optional

FOLDER = "plans"
SCHEMA = 1

_log = logging.getLogger(__name__)

Count = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Names = Annotated[tuple[str, ...], Meta(max_length=1000)]
Scales = Annotated[
    tuple[Annotated[float, Meta(gt=0.0, le=1e12)], ...], Meta(min_length=1, max_length=1000)
]


class CampaignPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One assay with the budget of one campaign; fields as in :class:`rulescope.assays.Budget`."""

    schema: int = SCHEMA
    assay: str
    """Its id, such as ``E1``."""
    typed_rule: str
    """The rule as it was typed: a name, a file, a folder; empty if none was."""
    rule: str
    """As in the specifications of the runs."""
    learner: Disco | Plugin | Lpo | Lpg | None
    """The learner under audit, if the name of the rule does not determine it."""
    label: str
    """Printed name of a rule that is known by the content of its file; else empty."""
    null_rule: str | None
    """Rule of the null arm of ``learner``."""
    agent: str
    seeds: Count
    iterations: Count
    episodes: Count | None
    log_every: Count
    arms: Names
    scales: Scales
    tasks: Names
    conditions: Names
    worlds: Annotated[tuple[Task, ...], Meta(max_length=1000)] = ()
    """Worlds among the tasks that the user named; left out of the file if there are none."""


class _Header(msgspec.Struct):
    schema: int


def add_plan(store: Store, plan: CampaignPlan) -> None:
    """Write ``plan`` into ``store``, whole or not at all; the same plan is written once."""
    fields = msgspec.structs.asdict(plan)
    if not plan.worlds:  # as plans were written before there could be any
        del fields["worlds"]
    _add(store, disk.as_json(fields))


def copy_plans(source: Store, target: Store) -> None:
    """Bring every readable plan of ``source`` into ``target``."""
    for path in _files(source):
        content = read_optional(path)
        if content is not None and _decode(path, content) is not None:
            _add(target, content)


def read_plans(store: Store) -> list[CampaignPlan]:
    """Return the plans of ``store``; damaged and unknown ones are ignored with a warning."""
    found = [_decode(path, read_optional(path)) for path in _files(store)]
    return [plan for plan in found if plan is not None]


def _add(store: Store, content: bytes) -> None:
    sha256 = hashlib.sha256(content).hexdigest()
    path = store.inside(FOLDER) / f"{sha256}.json"
    if read_optional(path) == content:
        return
    store.replace_file(path, content)


def _files(store: Store) -> list[Path]:
    """Return the files that are named like plans, sorted."""
    try:
        listed = disk.listed(store.inside(FOLDER))
    except RecordError as fault:  # a symbolic link, or no permission
        _log.warning("plans ignored: %s", fault)
        return []
    return [path for path in listed if path.suffix == ".json" and ID.fullmatch(path.stem)]


def _decode(path: Path, content: bytes | None) -> CampaignPlan | None:
    """Return the plan in a file; None, after a warning, if it cannot be used."""
    if content is None or hashlib.sha256(content).hexdigest() != path.stem:
        problem = "damaged"
    else:
        try:
            schema = msgspec.json.decode(content, type=_Header).schema
            if schema == SCHEMA:
                return msgspec.json.decode(content, type=CampaignPlan)
            problem = f"has schema {schema}; this version reads {SCHEMA}"
        except (msgspec.MsgspecError, ValueError, RecursionError) as fault:
            problem = f"not a plan ({fault})"
    _log.warning("plan ignored: %s/%s: %s", FOLDER, path.name, problem)
    return None
