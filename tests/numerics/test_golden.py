"""Golden arrays: the directory, damaged files, and the conversions of names and rows."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch

from rulescope.numerics.golden import (
    Golden,
    GoldenError,
    default_directory,
    merge_equal_rows,
    to_original_names,
    to_our_names,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "disco"


@cache
def golden() -> Golden:
    return Golden(GOLDEN)


def test_committed_arrays_are_those_of_the_package() -> None:
    here, there = (
        {path.name: path.read_bytes() for path in folder.glob("*.npz")}
        for folder in (GOLDEN, default_directory())
    )
    assert here == there
    assert golden().rules() == {"rand": "random:20240"}


def test_a_directory_without_arrays_is_refused(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match="no such directory"):
        Golden(tmp_path / "none")
    with pytest.raises(GoldenError, match=r"inner_common\.npz is missing"):
        Golden(tmp_path)


def test_the_parent_directory_is_accepted() -> None:
    assert Golden(GOLDEN.parent).directory == GOLDEN


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "inner_common.npz").write_bytes(b"nonsense")
    with pytest.raises(GoldenError, match=r"inner_common\.npz: not an npz"):
        Golden(tmp_path)["inner_common"]
    with pytest.raises(GoldenError, match=r"value_f64\.npz"):
        Golden(tmp_path)["value_f64"]


def test_merging_equal_rows_keeps_every_observation() -> None:
    batch = golden().rollout(0, torch.float64)
    merged = merge_equal_rows(batch)
    assert len(merged.rows) < len(batch.rows)
    assert torch.equal(merged.rows[merged.index], batch.rows[batch.index])


def test_renaming_arrays_is_invertible() -> None:
    stored = {
        name.removeprefix("params0/"): array
        for name, array in golden()["inner_common"].items()
        if name.startswith("params0/")
    }
    ours = {name: torch.tensor(array) for name, array in to_our_names(stored, 3).items()}
    again = to_original_names(ours)
    assert set(again) == set(stored)
    assert all((again[name] == array).all() for name, array in stored.items())
