import subprocess

import pytest

from benchmarks import disco_comparison, peak_memory
from rulescope.core.errors import RulescopeError


def test_peak_memory_is_that_of_a_separate_process() -> None:
    assert 50.0 < peak_memory.peak_memory(disco_comparison.FALLBACK, iterations=2) < 4000.0


def test_a_failed_memory_process_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess([], 1, "", "Traceback\nWeightsError: no such rule\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RulescopeError, match="no such rule"):
        peak_memory.peak_memory("nonsense", iterations=2)
