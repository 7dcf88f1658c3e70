from pathlib import Path

import msgspec
import pytest

from benchmarks import disco_comparison
from benchmarks.disco_comparison import Round
from benchmarks.measurement import Plan, scaling_settings
from benchmarks.timed_lifetime import Iteration
from rulescope.envs.world_config import Catch
from rulescope.rules import weight_files
from rulescope.run_spec import RunSpec

PLAN = Plan(rounds=2, iterations=2, warm_up=1, scaling_rounds=1, memory_iterations=2)


def test_ratios_are_taken_within_a_round() -> None:
    one = Round(
        rate=100.0,
        square=200.0,
        ours=[Iteration(0.2, 0.1), Iteration(0.4, 0.1)],
        products=[5],
        peer=1.5,
    )
    assert one.ours_seconds == pytest.approx(0.3)
    assert one.limit_seconds == pytest.approx(0.05)
    assert one.square_limit_seconds == pytest.approx(0.025)


@pytest.mark.usefixtures("fake_peer")
def test_a_comparison_with_the_peer_has_all_ratios(small: RunSpec, weights: Path) -> None:
    reports: list[int] = []
    found = disco_comparison.compare(small, 2, PLAN, weights, progress=lambda: reports.append(1))
    assert len(reports) == found.rounds == 2
    assert (found.batch, found.grid, found.actions, found.agent) == (4, 8, 3, "historical")
    assert found.peer_ms is not None
    assert found.ratio_to_peer is not None
    for spread in (found.ours_ms, found.limit_ms, found.ratio_to_limit, found.ratio_to_peer):
        assert 0.0 < spread.q1 <= spread.median <= spread.q3
    assert 0.0 < found.acting_share.median < 1.0
    assert 0.0 < found.distinct_rows <= 4 * 29


@pytest.mark.usefixtures("no_peer")
def test_without_the_peer_the_rest_is_measured(
    small: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spec(_rule: str, environment: Catch, *_: object, **__: object) -> RunSpec:
        return msgspec.structs.replace(small, environment=environment)

    monkeypatch.setattr(disco_comparison, "lifetime_spec", spec)
    monkeypatch.setattr(disco_comparison, "peak_memory", lambda _rule, _iterations: 123.0)
    monkeypatch.setattr(weight_files, "find", lambda _rule: None)
    stages: list[str] = []
    found = disco_comparison.measure_disco(PLAN, stages.append)
    assert found.ratio_to_peer is None
    assert found.catch.ratio_to_peer is None
    assert found.ratio_to_limit > 0.0
    assert found.rule == disco_comparison.FALLBACK
    assert len(found.notes) == 2
    assert "rulescope[bench]" in found.notes[0]
    assert len(found.scaling) == len(scaling_settings())
    assert [row.actions for row in found.scaling][-2:] == [6, 12]
    assert len(stages) == PLAN.total


def test_released_weights_are_used_if_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_files, "find", lambda _rule: Path("disco_103.npz"))
    with disco_comparison.rule_file() as (rule, path):
        assert (rule, path) == ("disco103", Path("disco_103.npz"))
