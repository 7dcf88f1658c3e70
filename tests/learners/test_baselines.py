"""Baselines as data: names, tags, and the learner that each one becomes."""

from __future__ import annotations

import re
import subprocess
import sys

import msgspec
import pytest

from learners.baseline_cases import LITTLE
from rulescope import learners
from rulescope.learners.baseline_config import VARIANTS, Baseline, RandomPolicy

pytestmark = pytest.mark.usefixtures("deterministic")


def test_names() -> None:
    assert list(VARIANTS) == [
        "a2c",
        "ppo",
        "dqn",
        "dqn-28672",
        "dqn-start-interactions",
        "a2c-popart",
        "random",
        "a2c-cbp",
        "ppo-cbp",
        "dqn-cbp",
    ]


@pytest.mark.parametrize("name", VARIANTS)
def test_read_back_by_kind(name: str) -> None:
    data = msgspec.to_builtins(VARIANTS[name])
    assert data["kind"] == re.sub("-(28672|start-interactions|cbp)$", "", name)
    assert "CARRIERS" not in data
    assert msgspec.convert(data, Baseline) == VARIANTS[name]


@pytest.mark.parametrize("field", ["learning_rate", "discount", "max_norm"])
def test_values_out_of_range_are_refused(field: str) -> None:
    for config in VARIANTS.values():
        data = msgspec.to_builtins(config) | {field: -1.0}
        with pytest.raises(msgspec.ValidationError, match=field):
            msgspec.convert(data, type(config))


@pytest.mark.parametrize("name", VARIANTS)
def test_each_becomes_its_learner(name: str) -> None:
    config = VARIANTS[name]
    if not isinstance(config, RandomPolicy):
        config = msgspec.structs.replace(config, agent=LITTLE)
    learner = learners.make(config, (8, 8), 3, 29, seed=0, interactions=116_000)
    assert learner.rule is None
    assert tuple(learner.carriers) == config.carrier_names


def test_describing_a_baseline_does_not_load_torch() -> None:
    check = "import sys, rulescope.learners.baseline_config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], timeout=60).returncode == 0
