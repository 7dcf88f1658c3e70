"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import machine
from plugin_packages import Site, importable


def _reports(config: pytest.Config, outcome: str) -> list[Any]:
    """Return the reports of one outcome; none in a worker process, which reports to another."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return [] if reporter is None else list(reporter.stats.get(outcome, ()))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say in the last lines what was not tested on this machine, and how to change that."""
    said = [
        *machine.skipped(_reports(config, "skipped")),
        *machine.left_out(_reports(config, "passed")),
    ]
    if said:
        terminalreporter.section("not tested on this machine")
    for sentence in said:
        terminalreporter.write_line(sentence)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run in which a test was skipped where none may be, as in continuous integration."""
    passed = exitstatus == pytest.ExitCode.OK
    if passed and machine.strict() and _reports(session.config, "skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


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
