"""Peak memory of a lifetime, measured in a separate process.

As a program (``python -m benchmarks.peak_memory RULE ITERATIONS``) this module runs a short
lifetime and prints its peak resident set in bytes.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from rulescope.core.errors import RulescopeError


def peak_memory(rule: str, iterations: int) -> float:
    """Return the peak resident set, in MB (10^6 bytes), of a lifetime in 8x8 Catch.

    Learning starts at iteration 32, so ``iterations`` should be well above that.
    """
    command = [sys.executable, "-m", "benchmarks.peak_memory", rule, str(iterations)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise RulescopeError(f"the lifetime for the measurement of memory failed: {reason}")
    return int(done.stdout) / 1e6


def peak_resident_set() -> int:
    """Return the largest resident set of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s*(\d+) kB", status.read_text())):
        return int(found[1]) * 1024
    # Not on Linux, where the parent process may have set this number.
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _main(rule: str, iterations: int) -> None:
    from rulescope.learners.disco_config import Disco
    from rulescope.lifetime import Lifetime
    from rulescope.run_spec import RunSpec

    Lifetime(RunSpec(learner=Disco(rule=rule), iterations=iterations, log_every=1)).run()
    print(peak_resident_set())


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
