"""Workers that start in a moment, for tests of what becomes of them."""

from __future__ import annotations

import pytest

from engine import fakes
from rulescope.engine import process_pool, scheduler


@pytest.fixture
def fake_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "work", fakes.work)
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.05)


@pytest.fixture
def eager_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_pool, "work", fakes.eager_work)
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.05)
