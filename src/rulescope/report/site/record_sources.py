"""Where records come from: the machines and sources in a store, and who mixes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rulescope.core.runtime import Identity
from rulescope.report.site.site_model import AssayPage, Life, Site

WORDS = {
    "blas": "BLAS",
    "cpu": "CPU",
    "device": "device",
    "isa": "instruction set",
    "numpy": "NumPy",
    "onednn": "oneDNN",
    "os": "operating system",
    "python": "Python",
    "threads": "threads",
    "torch": "PyTorch",
    "commit": "commit",
    "dirty": "uncommitted changes",
    "version": "version",
    "name": "rule",
    "sha256": "sha256 of the file",
    "digest": "sha256 of the arrays",
}
"""What the parts of an identity are called, for people."""


@dataclass(frozen=True)
class Origin:
    """One identity that records have in common."""

    name: str
    """Short, such as ``R1``."""
    facts: Identity
    runs: frozenset[str]


def runtimes(site: Site) -> list[Origin]:
    """Return the runtime identities of the store, the most frequent first."""
    return _origins("R", site.lives, lambda life: life.manifest.runtime)


def sources(site: Site) -> list[Origin]:
    """Return the source identities of the store, the most frequent first."""
    return _origins("S", site.lives, lambda life: life.manifest.source)


def rules(site: Site) -> list[Origin]:
    """Return the rule weights that lifetimes of the store used."""
    return _origins(
        "W",
        {run: life for run, life in site.lives.items() if life.manifest.rule is not None},
        lambda life: (
            {
                "name": life.manifest.rule.name,
                "sha256": life.manifest.rule.sha256,
                "digest": life.manifest.rule.digest,
            }
            if life.manifest.rule is not None
            else {}
        ),
    )


def _origins(
    letter: str, lives: Mapping[str, Life], facts: Callable[[Life], Identity]
) -> list[Origin]:
    found: dict[str, list[str]] = {}
    for run, life in lives.items():
        found.setdefault(json.dumps(facts(life), sort_keys=True), []).append(run)
    order = sorted(found, key=lambda key: (-len(found[key]), key))
    return [
        Origin(f"{letter}{turn}", json.loads(key), frozenset(found[key]))
        for turn, key in enumerate(order, start=1)
    ]


def shares(each: AssayPage, origins: Iterable[Origin]) -> Counter[str]:
    """Return how many lifetimes of an assay have each of ``origins``, by its name."""
    held = each.plan.present
    counts = Counter({origin.name: len(origin.runs & held) for origin in origins})
    return +counts
