"""Rules of LPG and LPO: formats, names of drawn ones, and their weights as a vector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rulescope.core import arrays
from rulescope.core.errors import WeightsError
from rulescope.rules import drawn_rules, lpg_format, lpo_format, rule_weights
from rulescope.rules.lpg_format import LpgSizes
from rulescope.rules.lpo_format import LpoSizes
from rulescope.rules.weight_vectors import flatten_weights, rule_of, unflatten_weights

NAMES = ["lpg-random:0", "ta-lpg-random:3", "lpg-random-4-5-6:1", "ta-lpg-random-4-5-6:2"]
NAMES += ["lpo-random:0", "lpo-random-16:5"]


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("lpg-random:0", 203_946),
        ("ta-lpg-random:0", 205_482),
        ("lpg-random-30-16-256:0", 209_952),
        ("ta-lpg-random-30-16-256:0", 211_488),
        ("lpo-random:0", 1_152),
    ],
)
def test_rules_have_as_many_weights_as_the_public_programs_have(name: str, count: int) -> None:
    assert rule_weights.load(name).parameter_count == count


@pytest.mark.parametrize("name", NAMES)
def test_a_drawn_rule_is_known_by_its_name_and_read_back_from_a_file(
    name: str, tmp_path: Path
) -> None:
    drawn = rule_weights.load(name)
    assert drawn.content == rule_weights.load(name).content
    assert drawn.content != rule_weights.load(f"{name.partition(':')[0]}:77").content
    sizes = drawn_rules.sizes_of(drawn.arrays)
    assert sizes is not None
    assert drawn_rules.name_drawn(sizes, int(name.partition(":")[2])) == name
    path = tmp_path / "mine.npz"
    path.write_bytes(arrays.pack(drawn.arrays))
    assert rule_weights.read_any(path).content == drawn.content
    by_content = rule_weights.load(f"sha256:{drawn.content}", path)
    assert by_content.parameter_count == drawn.parameter_count


def test_matrices_on_the_state_are_orthogonal_and_biases_zero() -> None:
    drawn = rule_weights.load("lpg-random-4-4-16:0").arrays
    for gate in np.split(drawn["lpg/gru/state/w"], 3, axis=1):
        np.testing.assert_allclose(gate.T @ gate, np.eye(16), atol=1e-5)
    assert all(not each.any() for name, each in drawn.items() if name.endswith("/b"))
    wide = lpg_format.draw(LpgSizes(embedding=5000, hidden=4), seed=0)["lpg/embedding.0/w"]
    assert wide.std() == pytest.approx(8**-0.5, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_weights_go_to_a_vector_and_back(name: str) -> None:
    drawn = rule_weights.load(name)
    vector = flatten_weights(drawn.arrays)
    assert vector.dtype == np.float64
    assert vector.shape == (drawn.parameter_count,)
    back = rule_of(unflatten_weights(vector, drawn.arrays))
    assert back.content == drawn.content
    with pytest.raises(ValueError, match="weights was expected"):
        unflatten_weights(vector[1:], drawn.arrays)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lpg-random-4:0", "3 sizes up to 9999"),
        ("lpg-random-1-4-4:0", "3 sizes"),
        ("lpo-random-0:0", "1 sizes"),
        ("lpo-random-:0", "no sizes after the dash"),
        ("ta-lpg-random:x", "whole number"),
        ("lpo-randon:0", "no rule is called"),
    ],
)
def test_a_wrong_name_is_refused(name: str, message: str) -> None:
    with pytest.raises(WeightsError, match=message):
        rule_weights.load(name)


def _without(kept: dict[str, np.ndarray], key: str) -> dict[str, np.ndarray]:
    return {name: each for name, each in kept.items() if name != key}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda own: _without(own, "lpg/y/b"), "lacks the array 'lpg/y/b'.* an LPG rule is"),
        (lambda own: own | {"lpg/z": own["lpg/y/b"]}, "'lpg/z' that no LPG rule has"),
        (lambda own: own | {"lpg/y/b": own["lpg/y/b"][1:]}, "other arrays require"),
        (lambda own: own | {"lpg/y/b": own["lpg/y/b"] * np.float32("nan")}, "not finite"),
        (lambda own: own | {"lpg/y/w": own["lpg/y/w"].astype(np.float64)}, "float64"),
        (
            lambda own: own | {"lpg/gru/input/w": np.zeros((6, 18), np.float32)},
            "has 6 inputs; LPG has 5, TA-LPG 7",
        ),
    ],
)
def test_a_file_that_is_no_lpg_rule_is_refused(
    change: object, message: str, tmp_path: Path
) -> None:
    assert callable(change)
    path = tmp_path / "broken.npz"
    own = dict(rule_weights.load("lpg-random-4-5-6:0").arrays)
    path.write_bytes(arrays.pack(change(own)))
    with pytest.raises(WeightsError, match=message):
        rule_weights.read_any(path)


def test_a_file_that_is_no_lpo_rule_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.npz"
    own = lpo_format.draw(LpoSizes(4), 0)
    path.write_bytes(arrays.pack(own | {"lpo/hidden/w": own["lpo/hidden/w"][1:]}))
    with pytest.raises(WeightsError, match=r"require \(8, 4\).*an LPO rule is"):
        rule_weights.read_any(path)
