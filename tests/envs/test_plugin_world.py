"""A world of another package is a world like any other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from plugin_packages import example_installed
from rulescope import envs, run_spec
from rulescope.assays.lifetime_figures import describe
from rulescope.core.errors import SpecError
from rulescope.envs.plugin_world import pin_plugin_world
from rulescope.envs.world_config import (
    ActionFlip,
    Boundary,
    Change,
    ObservationFlip,
    PluginWorld,
    RewardMove,
    RewardSign,
)
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.lifetime import Lifetime
from rulescope.records import Store
from rulescope.run_spec import RunSpec
from rulescope.runner import find_or_make

ABSENT = PluginWorld(name="not-installed", source="0" * 64)


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PluginWorld]:
    with example_installed(tmp_path / "site", monkeypatch):
        yield pin_plugin_world("echo")


def life(world: PluginWorld, iterations: int = 150) -> RunSpec:
    learner = A2C(agent=NetworkSizes(hidden=(16, 16)), learning_rate=0.01, discount=0.0)
    return RunSpec(learner=learner, environment=world, iterations=iterations, log_every=10)


def test_a_learner_learns_in_it_and_is_scored_by_its_references(
    echo: PluginWorld, tmp_path: Path
) -> None:
    record = find_or_make(life(echo), Store(tmp_path / "store"))
    assert record.log["score"][0] < 0.5
    assert record.log["score"][-1] > 0.9
    assert "echo" in describe(record)


def test_boundaries_scales_and_changes_apply(echo: PluginWorld) -> None:
    masked = Boundary(terminals="masked")
    for change in (ActionFlip(at=1), RewardSign(at=1)):
        make = partial(envs.make, echo, masked, 0.1, lanes=2, change=change)
        envs.check_env(make, steps=100)


@pytest.mark.parametrize("change", [RewardMove(at=1), ObservationFlip(at=1)])
def test_changes_that_need_columns_are_refused(change: Change) -> None:
    run = RunSpec(environment=ABSENT, change=change)
    with pytest.raises(SpecError, match=r"change\.kind: .*'plugin'"):
        run_spec.checked(run)


def test_another_source_is_refused(echo: PluginWorld) -> None:
    other = PluginWorld(name=echo.name, source="f" * 64)
    with pytest.raises(SpecError, match=r"environment\.source: the world 'echo' of rulescope-exam"):
        Lifetime(life(other))
    assert life(other).id != life(echo).id


def test_a_spec_is_read_where_the_world_is_not_installed() -> None:
    run = life(ABSENT)
    assert run_spec.decode(run_spec.canonical(run)) == run
    with pytest.raises(SpecError, match="no plug-in world is called 'not-installed'"):
        Lifetime(run)
