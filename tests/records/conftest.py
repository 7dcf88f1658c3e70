from __future__ import annotations

from pathlib import Path

import pytest

from rulescope.records import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store whose folder does not exist yet."""
    return Store(tmp_path / "store")
