"""Run ids of every published and planned grid, and science hashes of short runs, on record.

    python tests/golden_runs.py

writes ``tests/golden/runs`` anew. Do that only to add to it: an id or a hash that changes makes
every record of that run unreachable.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rulescope import run_spec
from rulescope.assays import ASSAYS, PRESETS, Assay, Budget, Selection, narrowed
from rulescope.assays.subject import find_subject, make_subject
from rulescope.audit import audit_plan
from rulescope.core import runtime
from rulescope.core.errors import SpecError
from rulescope.learners.disco_config import AGENTS
from rulescope.records import Store
from rulescope.run_spec import RunSpec, with_donors
from rulescope.runner import find_or_make

FOLDER = Path(__file__).parent / "golden" / "runs"
IDS, SPECS, HASHES = FOLDER / "ids.json", FOLDER / "specs.json", FOLDER / "hashes.json"
RULES = ("disco103", "sprout", "random:0")
AUDITED = ("disco103", "sprout", "open", "open-multi")
ARITHMETIC = ("numpy", "torch", "blas", "onednn", "cpu", "isa", "threads", "device")
"""Facts of a runtime on which bits depend; the version of a kernel or of Python is none of them."""


def fingerprint(runs: Iterable[RunSpec]) -> str:
    """Return how many runs there are, donors included, and the sha256 of their ids in order."""
    ids = list(with_donors(runs))
    return f"{len(ids)} {hashlib.sha256(chr(10).join(ids).encode()).hexdigest()}"


def grids() -> dict[str, str]:
    """Return the fingerprint of every preset of every assay under rules and agents."""
    return {name: fingerprint(runs) for name, runs in _grids()}


def _grids() -> Iterator[tuple[str, list[RunSpec]]]:
    for assay in ASSAYS.values():
        for preset in PRESETS:
            usual = assay.budget(preset)
            yield f"{assay.id} {preset}", _runs(assay, usual)
            wide: dict[str, Any] = {
                "arms": assay.arms,
                "tasks": assay.tasks,
                "conditions": assay.conditions,
                "seeds": 1,
            }
            asked = {rule: Selection(subject=make_subject(rule)) for rule in RULES} | {
                agent: Selection(agent=agent) for agent in AGENTS
            }
            for name, selection in asked.items():
                try:
                    runs = _runs(assay, narrowed(assay, usual, replace(selection, **wide)))
                except SpecError:  # not every assay can be put to every rule
                    continue
                yield f"{assay.id} {preset} {name}", runs


def audits() -> dict[str, str]:
    """Return the fingerprint of every preset of the audit of several rules."""
    found = {}
    for name in AUDITED:
        subject, _ = find_subject(name)
        for preset in PRESETS:
            planned = audit_plan.budgets(subject, preset)
            runs = [run for assay, budget in planned for run in _runs(assay, budget)]
            found[f"audit {name} {preset}"] = fingerprint(runs)
    return found


def _runs(assay: Assay, budget: Budget) -> list[RunSpec]:
    return [run for cell in assay.grid(budget) for run in cell.runs]


def short_specs() -> list[RunSpec]:
    """Return short runs that cover all learners, worlds, boundaries, changes and interventions."""
    return [run_spec.convert(data) for data in json.loads(SPECS.read_text())]


def science(run: RunSpec, store: Store) -> str:
    """Run ``run``; return its science hash."""
    return find_or_make(run, store).manifest.science_hash


def arithmetic() -> dict[str, Any]:
    """Return the facts on which the bits of a run depend."""
    identity = runtime.runtime_identity()
    return {name: identity[name] for name in ARITHMETIC}


def main() -> None:
    """Write the golden files."""
    runtime.single_threaded("cpu")
    IDS.write_text(json.dumps(grids() | audits(), indent=1) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        made = {run.id: science(run, store) for run in short_specs()}
    data = {"arithmetic": arithmetic(), "science": made}
    HASHES.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
