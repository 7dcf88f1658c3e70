from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rulescope.core import arrays
from rulescope.core.errors import WeightsError
from rulescope.discover.discovery_spec import RuleSizes
from rulescope.discover.rule_weights import all_sizes
from rulescope.rules import disco_format, loading
from rulescope.rules.random_weights import fresh


def test_sprouts_random_twin_is_what_a_discovery_starts_from() -> None:
    assert all_sizes(RuleSizes()) == disco_format.SPROUT
    twin = loading.load("sprout-random:3")
    drawn = fresh(disco_format.SPROUT, 3)
    assert all(np.array_equal(twin.arrays[name], array) for name, array in drawn.items())
    assert disco_format.fault(dict(twin.arrays)) is None


def test_a_rule_in_a_file_is_identified_by_its_content(tmp_path: Path) -> None:
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    one.write_bytes(arrays.pack(fresh(disco_format.SPROUT, 0)))
    other.write_bytes(arrays.pack(fresh(disco_format.SPROUT, 1)))
    name = loading.name_of(one)
    assert loading.load(name, one).name == name
    copy = tmp_path / "copy.npz"
    copy.write_bytes(arrays.pack(fresh(disco_format.SPROUT, 0), compress=False))
    assert loading.name_of(copy) == name
    with pytest.raises(WeightsError, match="holds another rule"):
        loading.load(name, other)
    with pytest.raises(WeightsError, match="--weights"):
        loading.load(name)
