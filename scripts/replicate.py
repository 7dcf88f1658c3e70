"""The replication of the published audit, as far as it goes: most informative cells first.

    python scripts/replicate.py [--workers N]

Lives what is missing of the parts below into ``replication/store``, in their order. It can be
stopped and started at any time. ``make results`` turns what there is into tables and figures.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rulescope import assays
from rulescope.assays import narrowed
from rulescope.engine.local import Campaign, run_all
from rulescope.plan import Plan
from rulescope.records import Store

ROOT = Path(__file__).resolve().parents[1] / "replication"
DONOR_BY_MODE = ["match-clamp", "match-natural", "cross-clamp", "cross-natural"]
LIVE_PIN = ["live", "pin"]
REPLAYS = ["disco", "dqn", "dqn-28672", "dqn-cleared"]
SHALLOW = ["deep-sea-8", "deep-sea-10", "deep-sea-12"]
PARTS: list[tuple[str, dict[str, Any]]] = [
    ("E1", {"tasks": ["catch"], "arms": LIVE_PIN, "scales": [1e-3, 0.1, 1, 1e3], "seeds": 4}),
    ("E2", {"scales": [1e-3], "arms": DONOR_BY_MODE, "seeds": 4}),
    ("E3", {"tasks": ["catch"], "conditions": ["action-flip"], "arms": REPLAYS, "seeds": 4}),
    ("E-A3c", {"seeds": 2}),
    ("exposure", {"conditions": ["natural"], "arms": ["disco", "a2c", "dqn"], "seeds": 2}),
    ("OPEN", {"scales": [1], "seeds": 2}),
    ("E-POP", {"seeds": 4}),
    ("E-A5", {"tasks": SHALLOW, "arms": ["a2c", "dqn"], "seeds": 6}),
    ("E-A3c", {"arms": ["a2c", "dqn"], "seeds": 4}),
    ("exposure", {"conditions": ["natural"], "arms": ["a2c", "dqn"], "seeds": 4}),
    ("discovery", {"arms": ["random"], "seeds": 15}),
    ("E1", {"tasks": ["catch"], "arms": ["pin"], "scales": [1e3], "seeds": 8}),
    ("E1", {"tasks": ["catch"], "arms": ["live"], "scales": [1e-3], "seeds": 8}),
    ("E1", {"tasks": ["catch"], "arms": LIVE_PIN, "seeds": 4}),
    ("E2", {"scales": [1e3], "arms": DONOR_BY_MODE, "seeds": 4}),
    ("E-IF", {"seeds": 4}),
    ("E3", {"tasks": ["catch"], "conditions": ["reward-move"], "arms": REPLAYS, "seeds": 4}),
    ("exposure", {"conditions": ["episodic", "masked"], "arms": ["a2c", "ppo", "dqn"], "seeds": 4}),
    ("synthetic", {"arms": ["a2c"], "seeds": 4}),
    ("OPEN", {"scales": [1]}),
    ("E-A4x", {"seeds": 4}),
    ("E1", {"tasks": ["catch"], "arms": ["hold", "both"], "seeds": 4}),
    ("P1", {"seeds": 4}),
    ("E2", {"seeds": 4}),
    ("OPEN", {}),
    ("minatar-context", {"arms": ["open", "open-adam"]}),
    ("E-A5", {"arms": ["a2c", "dqn", "ppo"], "seeds": 6}),
    ("E3", {"tasks": ["catch"], "seeds": 4}),
    ("E1", {"tasks": ["catch"], "seeds": 12}),
    ("E2", {"seeds": 12}),
    ("E1", {"seeds": 4}),
    ("P1", {}),
    ("E1", {}),
    ("minatar-context", {}),
]
"""Parts of the published grids, at their full length; a later part may contain an earlier one."""


def main() -> None:
    """Live one part after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    workers = parser.parse_args().workers
    store = Store(ROOT / "store")
    for name, narrowing in PARTS:
        live(name, narrowing, store, workers)


def live(name: str, narrowing: dict[str, Any], store: Store, workers: int) -> None:
    """Live what is missing of one part, seed by seed: whole seed blocks say most."""
    assay = assays.find(name)
    plan = Plan.of(assay, narrowed(assay, assay.budget("paper"), **narrowing), store)
    finished = -1

    def report(campaign: Campaign) -> None:
        nonlocal finished
        if campaign.finished != finished:
            finished = campaign.finished
            print(f"{name}: {finished} of {campaign.runs} lifetimes", flush=True)

    by_seed = sorted(plan.missing.values(), key=lambda spec: spec.seed)
    campaign = run_all(by_seed, store, workers=workers, report=report)
    for key, cause in campaign.failed.items():
        print(f"{name}: run {key[:12]} failed: {cause}", flush=True)


if __name__ == "__main__":
    main()
