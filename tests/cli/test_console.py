"""Progress bars and lines."""

from __future__ import annotations

import pytest

from rulescope.cli import console
from rulescope.engine.campaign import Campaign, RunProgress


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (60, "1 min 0 s"), (200, "3 min 20 s"), (9000, "2 h 30 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert console.duration(seconds) == text


def test_plain_lines_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(float(second) for second in range(0, 10_000, 2))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with console.Meter("run", 100) as meter:
        for done in range(10, 101, 10):
            meter.update(done, "score 0.5")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("run: 10/100 score 0.5")
    assert lines[-1].startswith("run: 100/100")
    assert "left" in lines[-1]
    assert len(lines) < 10, "not a line for every step"


def test_the_speed_is_that_of_the_campaign(capsys: pytest.CaptureFixture[str]) -> None:
    """A run that resumes from its checkpoint is far at once, but no faster for it."""
    campaign = Campaign(total=1000)
    with console.Meter("E1", 1000) as meter:
        campaign.running = {"a": RunProgress(1000)}
        meter.follow(campaign, "0/1 lifetimes")
        campaign.running = {"a": RunProgress(1000, 900, rate=2.0)}
        campaign.done = 900
        meter._printed = -1e9
        meter.follow(campaign, "0/1 lifetimes")
    assert capsys.readouterr().err.splitlines() == [
        "E1: 0/1000 0/1 lifetimes",
        "E1: 900/1000 0/1 lifetimes, 2.0 it/s, 50 s left",
    ]
