"""The rules in docs/plugins.md are learners, and learn as the page says."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rulescope.learners import plugin_options
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.update_rule import Setup, UpdateRule

pytestmark = pytest.mark.usefixtures("deterministic")

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
COMPLETE = [block for block in BLOCKS if "import" in block and "(UpdateRule)" in block]
COMPLETE += [block for block in BLOCKS if "(RecurrentRule)" in block]
SETUP = Setup((3, 3), 3, steps=7, seed=1, agent=NetworkSizes(hidden=(8, 8)))


def rule_of(block: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the rule that a block of the page defines."""
    module = ModuleType("a_page")
    monkeypatch.setitem(sys.modules, "a_page", module)
    exec(block, vars(module))
    [found] = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, UpdateRule) and each.__module__ == "a_page"
    ]
    return found


def setup_of(rule: Any) -> Setup:
    options = plugin_options.make_options("rule", getattr(rule, "Options", None), {})
    return SETUP._replace(options=options)


def test_the_page_has_its_rules() -> None:
    names = re.findall(r"^class (\w+)\((?:UpdateRule|RecurrentRule)\)", "".join(COMPLETE), re.M)
    assert names == ["Clipped", "Weighted", "Remembering"]


@pytest.mark.parametrize("block", COMPLETE, ids=["clipped", "weighted", "remembering"])
def test_a_rule_of_the_page_conforms(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = rule_of(block, monkeypatch)
    check_learner(lambda: rule(setup_of(rule)), (3, 3), 3, steps=7, rollouts=3)


@pytest.mark.parametrize("name", ["EPOCHS", "MINIBATCHES", "MAX_NORM", "LEARNING_RATE", "STEPWISE"])
def test_the_page_names_the_defaults(name: str) -> None:
    assert f"| `{name}` | {getattr(UpdateRule, name)!r} |".replace("False", "`False`") in (
        PAGE.read_text()
    )
