"""Workers that start in a moment, for tests of what becomes of them."""

from __future__ import annotations

import pytest

from engine import fakes
from rulescope.engine import crew, local


@pytest.fixture
def fake_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "work", fakes.work)
    monkeypatch.setattr(local, "POLL_SECONDS", 0.05)


@pytest.fixture
def eager_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "work", fakes.eager_work)
    monkeypatch.setattr(local, "POLL_SECONDS", 0.05)
