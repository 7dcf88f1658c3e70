"""The report of a small store, written once."""

from __future__ import annotations

from pathlib import Path

import pytest

from report import site_samples
from rulescope.report import site_builder
from rulescope.report.site_model import Site


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site_samples.results(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="session")
def found(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    store = site_samples.stored(tmp_path_factory.mktemp("store"))
    return site_samples.gathered(store, results)


@pytest.fixture(scope="session")
def report(found: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "pages"
    site_builder.write(found, folder)
    return folder
