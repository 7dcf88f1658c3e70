"""Show that campaigns survive anything: kills, damage, bad disks, many writers, many records.

    python scripts/torture [--only kills,flips,...] [--kills 200] [--seed N] [--json]

The tools are beside the tests, which use them at a small size: see ``tests/torture``.
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[2] / "tests"

if __name__ == "__main__":
    sys.path[0] = str(TESTS)
    from torture.main import main

    sys.exit(main())
