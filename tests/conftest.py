"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugin_packages import Site, importable


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Answer to SIGINT even if the tests were started in the background, where shells ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Return a folder in which packages that offer plug-ins can be put."""
    folder = tmp_path / "site"
    with importable(folder, folder, monkeypatch):
        yield Site(folder)
