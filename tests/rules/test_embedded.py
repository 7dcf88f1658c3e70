"""The rules in the package are what their records say, and the recipes that made them still do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rulescope.core.errors import WeightsError
from rulescope.discover import discovery_runner
from rulescope.discover.evolution_recipes import EVOLUTIONS
from rulescope.discover.recipes import RECIPES
from rulescope.rules import drawn_rules, rule_weights
from rulescope.rules.disco_format import SPROUT, sizes_of
from rulescope.rules.embedded import EMBEDDED, Embedded

LARGEST = 1_000_000


@pytest.mark.parametrize("rule", EMBEDDED.values(), ids=EMBEDDED)
def test_a_rule_of_the_package_is_its_discovery_s(rule: Embedded) -> None:
    manifest = discovery_runner.read_manifest(rule.folder)  # every file is checked against it
    assert manifest["files"]["rule.npz"] == rule.sha256
    assert manifest["id"] == {**RECIPES, **EVOLUTIONS}[rule.name].id
    assert rule.path.stat().st_size < LARGEST
    found = rule_weights.load(rule.name)
    assert (found.name, found.sha256, found.content) == (rule.name, rule.sha256, rule.content)
    if rule.architecture == "disco":
        assert sizes_of(found.arrays) == SPROUT
    else:
        assert drawn_rules.sizes_of(found.arrays) is not None
    assert rule_weights.load(f"sha256:{rule.content}").content == rule.content


def test_sprout_started_where_its_record_says() -> None:
    start, early = (f"sha256:{EMBEDDED[f'sprout-{name}'].content}" for name in ("start", "early"))
    assert RECIPES["sprout-early"].start == start
    assert RECIPES["sprout"].start == RECIPES["sprout-scales"].start == early


def test_a_damaged_rule_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, mine = EMBEDDED["sprout-start"], EMBEDDED["sprout"]
    shutil.copy(other.path, tmp_path / "rule.npz")
    monkeypatch.setattr(Embedded, "folder", property(lambda _: tmp_path))
    with pytest.raises(WeightsError, match="not the rule of this package"):
        rule_weights.load(mine.name)
