"""Stress tests of campaigns and stores: kills, damage, disk errors, many writers and records.

    python scripts/torture [--only kills,flips,...] [--kills 200] [--seed N] [--json]

The parts are in ``tests/torture``, beside the tests, which use them at a small size.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

if __name__ == "__main__":
    sys.path[:1] = [str(ROOT / "tests"), str(ROOT)]  # for the tools, and for the benchmarks
    from torture.torture_main import main

    sys.exit(main())
