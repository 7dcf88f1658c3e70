"""Fixtures, markers and the closing report that all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import machine
import markers
from plugin_packages import Site, importable

settings.register_profile("untimed", deadline=None)  # no test depends on the load of the machine
settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test of this folder its marker; see :mod:`markers`."""
    for item in items:
        marker = markers.marker_of(item.path, item.name)
        if marker is not None:
            item.add_marker(marker)


def _reports(config: pytest.Config, outcome: str) -> list[Any]:
    """Return the reports of one outcome; none in a worker process, which reports to another."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return [] if reporter is None else list(reporter.stats.get(outcome, ()))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """List what was not tested on this machine, and how to change that, in the last lines."""
    sentences = [
        *machine.skipped(_reports(config, "skipped")),
        *machine.left_out(_reports(config, "passed")),
    ]
    if sentences:
        terminalreporter.section("not tested on this machine")
    for sentence in sentences:
        terminalreporter.write_line(sentence)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run with a skipped test where none may be skipped, as in continuous integration."""
    passed = exitstatus == pytest.ExitCode.OK
    if passed and machine.strict() and _reports(session.config, "skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """React to SIGINT even if the tests run in the background, where shells ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Return a folder in which packages that offer plug-ins can be put."""
    folder = tmp_path / "site"
    with importable(folder, folder, monkeypatch):
        yield Site(folder)
