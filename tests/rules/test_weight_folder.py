"""The weights of several rules in one folder, each found by its name."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rulescope.core.errors import WeightsError
from rulescope.rules import released_rules, rule_weights
from rulescope.rules.weight_folder import gather_weights


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return two files of OPEN's architecture by the names of their rules."""
    found = {}
    for number in (1, 2):
        path = tmp_path / f"rule-{number}.npy"
        np.save(path, np.full(1211, float(number), np.float32))
        found[rule_weights.name_of(path)] = path
    return found


def test_every_rule_of_a_file_is_found_in_the_folder(
    files: dict[str, Path], tmp_path: Path
) -> None:
    folder = gather_weights(dict(files), tmp_path / "all")
    for name, path in files.items():
        found = rule_weights.load(name, folder)
        np.testing.assert_array_equal(found.arrays["weights"], np.load(path))
    assert len(list(folder.iterdir())) == 2


def test_a_released_rule_is_taken_from_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, Path]
) -> None:
    source = tmp_path / "Released.npy"
    np.save(source, np.full(1211, 3.0, np.float32))
    known = released_rules.get("open-breakout")
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    mine = replace(known, sha256=sha256)
    monkeypatch.setattr(released_rules, "RULES", {**released_rules.RULES, mine.name: mine})
    folder = gather_weights({**files, mine.name: source}, tmp_path / "all")
    assert rule_weights.load(mine.name, folder).arrays["weights"][0] == 3.0


def test_rules_without_a_file_need_none_beside_the_others(
    files: dict[str, Path], tmp_path: Path
) -> None:
    places = {"sprout": None, "random:0": None, "sprout-random:0": None}
    folder = gather_weights(places, tmp_path / "all")
    assert list(folder.iterdir()) == []
    assert rule_weights.load("sprout", folder).name == "sprout"
    shipped = f"sha256:{rule_weights.load('sprout').content}"
    assert rule_weights.load(shipped, folder).content == rule_weights.load("sprout").content
    with pytest.raises(WeightsError, match="name the file with --weights"):
        rule_weights.load(next(iter(files)), folder)


def test_a_file_with_another_rule_is_refused(files: dict[str, Path], tmp_path: Path) -> None:
    first, second = files
    with pytest.raises(WeightsError, match="holds another rule"):
        gather_weights({first: files[second]}, tmp_path / "all")
    renamed = tmp_path / "folder"
    renamed.mkdir()
    (renamed / rule_weights.content_file(first)).write_bytes(files[second].read_bytes())
    with pytest.raises(WeightsError, match="holds another rule"):
        rule_weights.load(first, renamed)
