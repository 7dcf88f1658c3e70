from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from discover.tiny_discovery import TINY, tiny
from rulescope.core import arrays
from rulescope.core.errors import RecordError, SpecError
from rulescope.discover import discovery_runner, rule_tensors
from rulescope.discover.discovery_spec import RuleSizes
from rulescope.discover.meta_training import MetaStep, MetaTraining
from rulescope.records import Store
from rulescope.rules.rule_weights import name_of, read_disco


def test_a_finished_discovery_is_stored_and_found_again(tmp_path: Path) -> None:
    folder = discovery_runner.find_or_run(TINY, Store(tmp_path))
    manifest = discovery_runner.read_manifest(folder)
    assert manifest["id"] == TINY.id == folder.name
    assert read_disco(folder / discovery_runner.RULE).parameter_count == manifest["parameters"]
    assert arrays.read(folder / discovery_runner.LOG)["meta_step"].tolist() == [1, 2, 3, 4]
    steps: list[int] = []
    assert (
        discovery_runner.find_or_run(TINY, Store(tmp_path), lambda t, _: steps.append(t.step))
        == folder
    )
    assert not steps
    assert not list(tmp_path.glob("checkpoints/*"))


def test_an_interrupted_discovery_ends_like_an_uninterrupted_one(tmp_path: Path) -> None:
    def interrupt(training: MetaTraining, _: MetaStep) -> None:
        if training.step == 2:
            os.kill(os.getpid(), signal.SIGINT)

    store = Store(tmp_path / "interrupted")
    with pytest.raises(KeyboardInterrupt):
        discovery_runner.find_or_run(TINY, store, interrupt)
    assert not (store.root / "discoveries").exists()
    first: list[int] = []
    folder = discovery_runner.find_or_run(TINY, store, lambda t, _: first.append(t.step))
    assert first == [3, 4]
    whole = discovery_runner.find_or_run(TINY, Store(tmp_path / "whole"))
    for name in (discovery_runner.RULE, discovery_runner.LOG):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize("name", [discovery_runner.RULE, discovery_runner.LOG])
def test_a_damaged_discovery_is_an_error(tmp_path: Path, name: str) -> None:
    folder = discovery_runner.find_or_run(tiny(meta_steps=1), Store(tmp_path))
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(RecordError, match=name):
        discovery_runner.find_or_run(tiny(meta_steps=1), Store(tmp_path))


def test_a_discovery_can_start_from_the_rule_of_another(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first = (
        discovery_runner.find_or_run(tiny(meta_steps=2, learning_rate=0.5), store)
        / discovery_runner.RULE
    )
    spec = tiny(start=name_of(first))
    rules: list[float] = []
    discovery_runner.find_or_run(
        spec, store, lambda t, _: rules.append(float(t.rule["lstm/linear/w"].sum())), first
    )
    begun = float(arrays.read(first)["lstm/linear/w"].sum())
    assert abs(rules[0] - begun) < 0.02
    assert abs(begun - float(rule_tensors.draw_initial(TINY.sizes, 0)["lstm/linear/w"].sum())) > 0.1
    with pytest.raises(SpecError, match="other sizes"):
        discovery_runner.find_or_run(
            tiny(start=name_of(first), sizes=RuleSizes(predictions=3)), store, None, first
        )
