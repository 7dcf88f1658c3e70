"""The replication of the published audit, as far as it goes: most decisive cells first.

    python scripts/replicate.py [--workers N] [--store DIR]

Runs what is missing of the parts below, in their order, into ``replication/store`` unless another
store is named. It can be stopped and started at any time. Run it from a clean clone: a checkpoint
is only continued by the source that made it. ``make results`` turns what there is into tables and
figures.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from rulescope import assays
from rulescope.assays import Selection, narrowed
from rulescope.assays.plan import Plan
from rulescope.assays.recorded_plans import record_plan
from rulescope.engine.local_engine import Campaign, run_all
from rulescope.records import Store

ROOT = Path(__file__).resolve().parents[1] / "replication"
DONOR_BY_MODE = ["match-clamp", "match-natural", "cross-clamp", "cross-natural"]
LIVE_PIN = ["live", "pin"]
REPLAYS = ["rule", "dqn", "dqn-28672", "dqn-cleared"]
CANDIDATES = ["published", "unmasked"]
DECISIVE = ["live-0.001", "pin-1000", "live-1"]
SCALE = Selection(tasks=["catch"], arms=LIVE_PIN)
FLIP = Selection(tasks=["catch"], conditions=["action-flip"])
PARTS: list[tuple[str, Selection]] = [
    # Which agent made which published cohort: until that is settled, no other Disco cell.
    ("agent-identity", Selection(arms=CANDIDATES, conditions=DECISIVE, seeds=3)),
    ("agent-identity", Selection(arms=CANDIDATES, conditions=["action-flip"], seeds=3)),
    ("agent-identity", Selection(arms=CANDIDATES, conditions=["pin-0.1", "hold-0.1"], seeds=6)),
    ("agent-identity", Selection(arms=CANDIDATES, seeds=6)),
    ("agent-identity", Selection(arms=["historical"], conditions=["pin-1000"], seeds=12)),
    ("OPEN", Selection(scales=[1])),
    ("exposure", Selection(conditions=["episodic", "masked"], arms=["a2c", "ppo", "dqn"], seeds=4)),
    # With the agent of the reference-indexed cohorts.
    ("E1", replace(SCALE, seeds=4)),
    ("E2", Selection(scales=[1e-3], arms=DONOR_BY_MODE, seeds=4)),
    ("E3", replace(FLIP, arms=REPLAYS, seeds=6)),
    ("E1", replace(SCALE, seeds=12)),
    ("E2", Selection(scales=[1e-3], seeds=12)),
    ("E3", replace(FLIP, seeds=12)),
    ("E-A3c", Selection(seeds=4)),
    ("exposure", Selection(conditions=["natural"], arms=["rule", "a2c", "dqn"], seeds=4)),
    ("E-IF", Selection(seeds=4)),
    ("synthetic", Selection(arms=["a2c"], seeds=4)),
    ("E-A4x", Selection(seeds=4)),
    ("E3", Selection(tasks=["catch"], conditions=["reward-move"], arms=REPLAYS, seeds=4)),
    ("E1", Selection(tasks=["catch"], arms=["hold", "both"], seeds=4)),
    ("P1", Selection(seeds=4)),
    ("E2", Selection(seeds=4)),
    ("OPEN", Selection()),
    ("minatar-context", Selection(arms=["open", "open-adam"])),
    ("E-A5", Selection(arms=["a2c", "dqn", "ppo"], seeds=6)),
    ("E3", Selection(tasks=["catch"], seeds=4)),
    ("E1", Selection(tasks=["catch"], seeds=12)),
    ("E2", Selection(seeds=12)),
    ("E1", Selection(seeds=4)),
    ("P1", Selection()),
    ("E1", Selection()),
    ("minatar-context", Selection()),
]
"""Parts of the published grids, at their full length; a later part may contain an earlier one."""


def main() -> None:
    """Run one part after another."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--store", type=Path, default=ROOT / "store")
    options = parser.parse_args()
    store = Store(options.store)
    for assay in assays.ASSAYS.values():  # some have all of their cells in common with others
        record_plan(store, assay, assay.budget("paper"))
    for name, selection in PARTS:
        run_part(name, selection, store, options.workers)


def run_part(name: str, selection: Selection, store: Store, workers: int) -> None:
    """Run what is missing of one part, seed by seed: whole seed blocks say most."""
    assay = assays.find(name)
    plan = Plan.of(assay, narrowed(assay, assay.budget("paper"), selection), store)
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
    if campaign.failed and len(campaign.failed) == campaign.runs:
        raise SystemExit(f"{name}: every run failed; nothing further is tried")


if __name__ == "__main__":
    main()
