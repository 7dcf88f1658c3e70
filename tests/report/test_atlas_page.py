"""The atlas page: all audited rules in one table, if there are two."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from audit.made_up_profiles import ASSET, BURDEN, NEITHER, made_up
from report.site_samples import HOSTILE, profile
from rulescope.audit.atlas_folder import NAME
from rulescope.audit.atlas_tables import headlines, value_text
from rulescope.report.atlas_page import atlas_page
from rulescope.report.front_page import front_page
from rulescope.report.site_model import Site

PROFILES = {
    "one": made_up("mine", ASSET, seed=1),
    "two": made_up("other", BURDEN, 2, seed=2),
    "three": made_up("longer", NEITHER, seed=3, budget="2,000 iterations"),
    "four": made_up("a2c", NEITHER, history=False, seed=4),
}


def page_of(site: Site) -> str:
    assert site.atlas is not None
    return atlas_page(site, site.atlas, {})


def test_one_profile_has_no_atlas(found: Site) -> None:
    alone = replace(found, profiles={"disco103": profile()})
    assert alone.atlas is None
    text = front_page(alone, {each.name: [] for each in found.pages})
    assert "atlas.html" not in text
    both = front_page(found, {each.name: [] for each in found.pages})
    assert both.count('href="atlas.html"') == 2  # the navigation, and the table of answers


def test_every_row_is_on_the_page_as_printed_elsewhere(found: Site) -> None:
    site = replace(found, profiles=PROFILES)
    assert site.atlas is not None
    text = page_of(site)
    assert text.count("<tr data-rule=") == len(site.atlas.rows)
    for row in headlines(site.atlas):
        shown = (value_text(row) or "—").partition(";")[0]
        assert f">{shown}<" in text
    for sentence in site.atlas.sentences:
        assert sentence in text
    assert text.count("not comparable: other budget") == sum(
        row.rule == "longer" for row in site.atlas.rows
    )
    assert "no history" in text
    assert text.index('id="histories"') < text.index('id="sentences"') < text.index("<table id=")


def test_the_files_of_the_atlas_are_listed_with_their_lifetimes(report: Path) -> None:
    listed = json.loads((report / "publication" / "figures.json").read_bytes())[NAME]
    files = {**listed["figures"][NAME]["files"], **listed["tables"][NAME]["files"]}
    assert {Path(name).suffix for name in files} == {
        ".png",
        ".svg",
        ".pdf",
        ".md",
        ".csv",
        ".tex",
        ".json",
    }
    assert all((report / name).is_file() for name in files)
    readme = (report / "publication" / "README.md").read_text()
    assert "## Audited rules side by side" in readme


def test_texts_of_profiles_stay_texts(found: Site) -> None:
    hostile = replace(found, profiles={"a": made_up(HOSTILE, ASSET, 2), "b": PROFILES["four"]})
    text = page_of(hostile)
    assert HOSTILE not in text
    assert "<img src=x" not in text
