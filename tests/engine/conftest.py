"""Workers that start at once, or send heartbeats often."""

from __future__ import annotations

import pytest

from engine import fakes
from rulescope.engine import process_pool, scheduler


@pytest.fixture
def fake_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "run_worker", fakes.run_worker)
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.05)


@pytest.fixture
def fast_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "run_worker", fakes.run_real_worker)
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.05)
