"""Workers that start in a moment, for tests of what becomes of them."""

from __future__ import annotations

import pytest

from engine import fakes
from rulescope.engine import processes, work


@pytest.fixture
def fake_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "work", fakes.work)
    monkeypatch.setattr(work, "POLL_SECONDS", 0.05)


@pytest.fixture
def eager_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "work", fakes.eager_work)
    monkeypatch.setattr(work, "POLL_SECONDS", 0.05)
