"""A plan refuses what the run refuses, in the same words, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import invoke, invoke_json
from plugin_packages import Site, importable
from rulescope.assays import assay_run
from rulescope.core.errors import RulescopeError
from rulescope.engine import resources
from rulescope.envs.world_config import PluginWorld
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.run_spec import RunSpec, canonical
from test_plugins import OUTRIGHT

RUN = ["run", "E1", "--rule", "random:0", "--preset", "smoke", "--iterations", "20"]
AUDIT = ["audit", "sprout", "--preset", "smoke", "--only", "E1"]
LIFE = ["life", "--rule", "random:0", "--iterations", "20"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with importable(tmp_path / "site", tmp_path, monkeypatch):
        yield Site(tmp_path / "site")


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    return {"--store": tmp_path / "store", "--out": tmp_path / "out"}


def refusal(command: list[str], places: dict[str, Path]) -> str:
    """Return the error with which a command ends, having made nothing at ``places``."""
    given = {option: path for option, path in places.items() if (command[0], option) != LIFE_OUT}
    with pytest.raises(RulescopeError) as caught:
        invoke(*command, *(part for pair in given.items() for part in pair))
    return f"{caught.type.__name__}: {caught.value}"


LIFE_OUT = ("life", "--out")


def assert_refused_alike(command: list[str], places: dict[str, Path], expected: str) -> None:
    before = {path: path.exists() for path in places.values()}
    planned = refusal([*command, "--plan"], places)
    assert {path: path.exists() for path in places.values()} == before
    assert planned == refusal(command, places)
    assert expected in planned


@pytest.mark.parametrize("command", [RUN, AUDIT, LIFE], ids=lambda each: each[0])
def test_a_store_that_cannot_be_written(
    command: list[str], places: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    blocked = {**places, "--store": tmp_path / "file" / "store"}
    assert_refused_alike(command, blocked, "store: cannot be written")


@pytest.mark.parametrize("command", [RUN, AUDIT], ids=lambda each: each[0])
def test_results_that_cannot_be_written(
    command: list[str], places: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert_refused_alike(command, {**places, "--out": tmp_path / "file"}, "file: cannot be written")


@pytest.mark.parametrize("command", [RUN, AUDIT], ids=lambda each: each[0])
@pytest.mark.parametrize(
    ("function", "expected"),
    [("free_disk", "of disk at most"), ("free_memory", "memory: 1 worker of about")],
)
def test_a_machine_that_is_too_small(
    command: list[str],
    function: str,
    expected: str,
    places: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resources, function, lambda *_: 1_000_000)
    assert_refused_alike([*command, "--workers", "1"], places, expected)


@pytest.mark.parametrize(
    "command",
    [
        ["run", "E1", "--preset", "smoke"],
        ["audit", "disco103", "--preset", "smoke"],
        ["life", "--rule", "disco103"],
    ],
    ids=lambda each: each[0],
)
def test_weights_that_are_not_where_they_should_be(
    command: list[str], places: dict[str, Path], tmp_path: Path
) -> None:
    command = [*command, "--weights", str(tmp_path / "nowhere")]
    assert_refused_alike(command, places, str(tmp_path / "nowhere"))


def test_an_arm_that_a_plug_in_cannot_have(site: Site, places: dict[str, Path]) -> None:
    site.rule(OUTRIGHT, "still", "Still")
    command = ["run", "E1", "--rule", "still", "--preset", "smoke", "--arms", "pin"]
    assert_refused_alike(command, places, "recurrent")


def test_a_world_that_is_not_installed(places: dict[str, Path], tmp_path: Path) -> None:
    world = PluginWorld(name="nowhere", source="0" * 64)
    learner = A2C(agent=NetworkSizes(hidden=(4, 4)))
    spec = RunSpec(learner=learner, environment=world, iterations=20)
    (tmp_path / "run.json").write_bytes(canonical(spec))
    command = ["life", "--spec", str(tmp_path / "run.json")]
    assert_refused_alike(command, places, "no plug-in world is called 'nowhere'")


@pytest.mark.parametrize(
    ("plot", "expected"),
    [
        ("missing/curve.png", "--plot: there is no folder"),
        ("file/curve.png", "--plot: there is no folder"),
        ("folder.png", "is a folder"),
        ("curve.txt", "--plot: cannot draw 'curve.txt'"),
    ],
)
def test_a_figure_that_cannot_be_drawn(
    plot: str, expected: str, places: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.png").mkdir()
    assert_refused_alike([*LIFE, "--plot", str(tmp_path / plot)], places, expected)


def test_the_second_agent_is_checked_before_the_first_is_run(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_nothing(*_: Any, **__: Any) -> Any:
        raise AssertionError("it runs")

    from rulescope.cli import run

    seen: list[str] = []
    real = assay_run.require_runnable

    def second_fails(missing: Any, store: Any, execution: Any, folder: Path) -> None:
        seen.append(folder.name)
        if "reference" in folder.name:
            raise RulescopeError("too large")
        real(missing, store, execution, folder)

    monkeypatch.setattr(run, "run_missing", run_nothing)
    monkeypatch.setattr(run, "require_runnable", second_fails)
    command = [*RUN, "--agent", "published,reference"]
    assert "too large" in refusal(command, places)
    assert seen == ["E1-random-0", "E1-reference-random-0"]


def test_a_plan_of_one_lifetime_runs_nothing(places: dict[str, Path]) -> None:
    command = [*LIFE, "--store", str(places["--store"])]
    plan = invoke_json(*command, "--plan")["plan"]
    assert (plan["missing"], plan["interactions"]) == (1, 20 * 58)
    assert plan["seconds"] > 0
    assert not places["--store"].exists()
    invoke(*command)
    assert "it is in the store" in invoke(*command, "--plan").stdout
