"""Does Disco103 learn Catch as published? Some seeds of one agent at one reward scale.

    python scripts/learning.py --agent published --seeds 6 --iterations 1000 --store store

Prints, per seed, the mean score of the last five log rows and the first logged iteration at which
the reward rate of the last 4,000 interactions passes 0.8 (published: 384 on average).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from rulescope.engine.local_engine import Campaign, run_all
from rulescope.records import Record, Store
from rulescope.spec.disco_config import AGENTS, Disco
from rulescope.spec.run_spec import Pin, RunSpec


def crossing(record: Record, threshold: float = 0.8) -> float:
    """Return the first logged iteration whose rate score reaches ``threshold``, or NaN."""
    above = np.flatnonzero(record.log["rate_score"] >= threshold)
    return float(record.log["iteration"][above[0]]) if above.size else float("nan")


def main() -> None:
    """Run the seeds that the store does not have, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agent", default="published", choices=sorted(AGENTS))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--log-every", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--pin", action="append", default=[], help="carrier to pin")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--store", type=Path, default=Path("store"))
    options = parser.parse_args()
    specs = [
        RunSpec(
            learner=Disco(conventions=AGENTS[options.agent]),
            scale=options.scale,
            interventions=tuple(Pin(carrier=c) for c in options.pin),
            iterations=options.iterations,
            log_every=options.log_every,
            seed=seed,
        )
        for seed in range(options.seeds)
    ]
    store = Store(options.store)

    def report(campaign: Campaign) -> None:
        print(f"\r{campaign.done}/{campaign.total} iterations", end="", file=sys.stderr)

    campaign = run_all(specs, store, workers=options.workers, report=report)
    print(file=sys.stderr)
    for key, cause in campaign.failed.items():
        print(f"failed {key[:12]}: {cause}")
    records = [store.read(item.id) for item in specs if item.id in store]
    print(f"{'seed':>4} {'last five':>10} {'crosses 0.8':>12} {'seconds':>8}")
    for record in records:
        tail = record.log["score"][-5:].mean()
        print(
            f"{record.spec.seed:4d} {tail:10.3f} {crossing(record):12.0f}"
            f" {record.manifest.seconds:8.0f}"
        )
    times = np.array([crossing(record) for record in records])
    print(f"mean crossing {np.nanmean(times):.0f}, reached by {np.isfinite(times).sum()}")


if __name__ == "__main__":
    main()
