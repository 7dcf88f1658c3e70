import dataclasses
import re

import pytest

from rulescope.core.errors import WeightsError
from rulescope.rules import released_rules, rule_weights, weight_files

NAMES = [
    "disco103",
    "open-multi",
    "open-breakout",
    "open-freeway",
    "open-asterix",
    "open-spaceinvaders",
    "open-ant",
    "open-gridworld",
]


def test_the_eight_released_rules_are_registered() -> None:
    assert list(released_rules.RULES) == NAMES
    assert all(name == rule.name for name, rule in released_rules.RULES.items())


def test_every_entry_is_pinned() -> None:
    for rule in released_rules.RULES.values():
        assert re.fullmatch(r"[0-9a-f]{64}", rule.sha256)
        assert re.search(r"/[0-9a-f]{40}/", rule.url), "a commit, not a branch"
        assert rule.url.startswith("https://raw.githubusercontent.com/")
        assert rule.url.endswith("/" + rule.basename)
        assert rule.licence == "Apache-2.0"
        assert rule.description
    assert len({rule.sha256 for rule in released_rules.RULES.values()}) == len(NAMES)


def test_facts_of_disco103() -> None:
    rule = released_rules.get("disco103")
    assert (rule.architecture, rule.file) == ("disco", "disco_103.npz")
    assert (rule.size, rule.parameters) == (2_803_507, 754_778)
    assert rule.sha256.startswith("dac840a15b81")
    assert rule.url == (
        "https://raw.githubusercontent.com/google-deepmind/disco_rl/"
        "9059a29f7121d60948f25ef165e08e050e9399c8/disco_rl/update_rules/weights/disco_103.npz"
    )


def test_facts_of_open() -> None:
    for name in NAMES[1:]:
        rule = released_rules.get(name)
        expected = (3571, 14_412) if name == "open-multi" else (1211, 4_972)
        assert (rule.parameters, rule.size) == expected
        assert rule.size == 128 + 4 * rule.parameters, "a npy header and float32 values"
        assert rule.file == f"open/{name.removeprefix('open-')}_OPEN.npy"


def test_an_unknown_name_gives_the_nearest() -> None:
    with pytest.raises(WeightsError, match=r"'disco130'; nearest: 'disco103'; valid: disco103,"):
        released_rules.get("disco130")


def test_entries_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        released_rules.get("disco103").sha256 = ""  # type: ignore[misc]
    with pytest.raises(TypeError):
        released_rules.RULES["mine"] = released_rules.get("disco103")  # type: ignore[index]


def test_the_released_files_that_are_here_are_what_the_registry_says() -> None:
    """Checks whichever released files can be found; where there are none, it checks nothing."""
    for rule in released_rules.RULES.values():
        path = weight_files.find(rule)
        if path is None:
            continue
        weights = rule_weights.load(rule.name, path)
        assert path.stat().st_size == rule.size
        assert weights.parameter_count == rule.parameters
        assert (weights.name, weights.sha256) == (rule.name, rule.sha256)
