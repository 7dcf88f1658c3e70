from __future__ import annotations

import pytest

from rulescope.core import runtime
from rulescope.rules import released_rules, weight_files

RANDOM_RULE = "random:20240"
RELEASED_RULE = "disco103"


def available_rules() -> list[str]:
    """Return the rules at hand: random weights always, the released ones where they are found."""
    released = weight_files.find(released_rules.get(RELEASED_RULE)) is not None
    return [RANDOM_RULE, RELEASED_RULE] if released else [RANDOM_RULE]


@pytest.fixture(scope="session", params=available_rules())
def rule(request: pytest.FixtureRequest) -> str:
    """Return the name of each available rule in turn."""
    return str(request.param)


@pytest.fixture(scope="session")
def deterministic() -> None:
    """Put torch into the mode in which lifetimes run."""
    runtime.single_threaded()
