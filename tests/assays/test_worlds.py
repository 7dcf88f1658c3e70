"""The checks of worlds: they hold, they can fail, and their result can be read again."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.random import Generator

from rulescope.assays.streams import world_checks
from rulescope.assays.streams.stream import describe_resets
from rulescope.assays.streams.world_checks import (
    LANES,
    SAMPLED,
    Reference,
    WorldCheck,
    references,
    structures,
)
from rulescope.core.errors import RecordError
from rulescope.core.runtime import runtime_identity
from rulescope.envs.environment import Actions, Array
from rulescope.envs.world_config import WORLDS, Catch, DeepSea


@pytest.fixture(scope="module")
def found() -> WorldCheck:
    sample = references(episodes=600, step_cap=1400)
    return WorldCheck("rulescope check worlds", structures(), sample, runtime_identity())


def test_catch_stream_never_resets_and_its_control_does() -> None:
    stream, control = structures()
    assert (stream.world, stream.terminals, stream.snaps, stream.jumps) == ("CatchStream", 0, 0, 0)
    assert stream.repeats
    assert not stream.resets
    assert control.world == "masked Catch"
    assert control.resets
    assert control.terminals == 0


def test_every_sampled_reference_agrees_with_the_exact_one(found: WorldCheck) -> None:
    assert [(one.world, one.policy) for one in found.references] == [
        (world, policy) for world in SAMPLED for policy in ("random", "optimal")
    ]
    for one in found.references:
        assert one.agrees, one
        episodic = isinstance(WORLDS[one.world], Catch | DeepSea)
        assert (one.measure == "return") == episodic
        assert one.episodes >= 600 if episodic else one.interactions == 1400 * LANES
    assert found.passed


def test_the_published_constant_of_dense_catch_is_beside_the_exact_one(found: WorldCheck) -> None:
    beside = {(one.world, one.policy): one for one in found.references if one.published is not None}
    assert set(beside) == {("catch-dense", "random")}
    dense = beside["catch-dense", "random"]
    assert dense.published == -3.04774
    assert dense.exact == pytest.approx(-3.0491051)


def test_a_policy_that_is_not_the_best_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def stay(observation: Array, _: Generator) -> Actions:
        return np.ones(len(observation), np.int64)

    monkeypatch.setattr(world_checks, "chase", stay)
    monkeypatch.setattr(world_checks, "SAMPLED", ("tracking",))
    random, optimal = references(step_cap=1400)
    assert random.agrees
    assert not optimal.agrees


def test_a_check_fails_with_any_of_its_parts(found: WorldCheck) -> None:
    stream, control = found.structure
    moved = msgspec.structs.replace(stream, snaps=1, resets=True)
    blind = msgspec.structs.replace(control, resets=False)
    wrong = msgspec.structs.replace(found.references[0], sampled=0.0)
    for changes in (
        {"structure": (moved, control)},
        {"structure": (stream, blind)},
        {"references": (wrong,)},
    ):
        assert not msgspec.structs.replace(found, **changes).passed


def test_a_deviation_is_in_standard_errors_and_ignores_rounding() -> None:
    one = Reference("catch", "random", "return", -0.75, -0.74, 0.005, 100, 700)
    assert one.deviation == pytest.approx(2.0)
    rounded = msgspec.structs.replace(one, sampled=-0.75 + 1e-15, error=1e-19)
    assert rounded.deviation == 0.0
    assert math.isinf(msgspec.structs.replace(one, error=0.0).deviation)


def test_a_check_is_read_again_as_it_was_written(found: WorldCheck, tmp_path: Path) -> None:
    path = tmp_path / world_checks.FILE
    path.write_bytes(found.to_json())
    assert world_checks.read(path) == found
    path.write_bytes(b'{"structure": 3}')
    with pytest.raises(RecordError, match=r"worlds\.json: not a check of worlds"):
        world_checks.read(path)


def test_tables_have_a_row_for_each_finding(found: WorldCheck) -> None:
    structure, sampled = world_checks.tables(found)
    assert [row[0] for row in structure.rows] == ["CatchStream", "masked Catch"]
    assert len(sampled.rows) == 2 * len(SAMPLED)


def test_the_note_of_the_stream_table_is_the_result_of_the_check() -> None:
    stream, control = structures()
    assert f"CatchStream {stream.terminals} ends, {stream.snaps} paddle resets" in describe_resets()
    assert f"masked Catch 0 ends, 1 paddle resets, {control.jumps} ball jumps" in describe_resets()
