"""Every name of the kit is documented, and used by an example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rulescope import kit

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", kit.__all__)
def test_every_name_has_a_row_in_the_section_of_the_kit(name: str) -> None:
    [section] = re.findall(
        r"^## The kit$(.*?)^## ", (ROOT / "docs/plugins.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert re.search(rf"^\| `{name}\b", section, re.MULTILINE)
    assert getattr(kit, name).__doc__


def test_the_list_of_names_is_all_that_the_package_offers() -> None:
    offered = {name for name, each in vars(kit).items() if getattr(each, "__doc__", None)}
    modules = {path.stem for path in Path(kit.__file__).parent.glob("*.py")}
    assert {name for name in offered if not name.startswith("_")} - modules == set(kit.__all__)
