"""Workers that start in a moment, for tests of what becomes of them."""

from __future__ import annotations

import signal
from collections.abc import Iterator

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


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Answer to SIGINT even if the tests were started in the background, where shells ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
