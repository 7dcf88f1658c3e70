"""Arms as figures show them: from one table, or made up for an arm that is not in it."""

from __future__ import annotations

from dataclasses import replace

from report.figure_checks import clashes, said
from report.report_samples import scale_results
from rulescope.assays.figures import FIGURES
from rulescope.render import palette
from rulescope.render.arm_styles import (
    ARMS,
    DASHED,
    SPARE_MARKERS,
    arm_style,
    automatic_styles,
    in_order,
    naming,
)
from rulescope.report.css_styles import distinct_styles

UNKNOWN = [f"arm-{i}" for i in range(len(palette.SPARE) * len(SPARE_MARKERS))]


def test_an_unknown_arm_has_its_own_name_and_the_same_style_every_time() -> None:
    first = arm_style("boost")
    assert first.name == "boost"
    assert first == arm_style("boost")
    assert first.colour in palette.SPARE
    known = {(arm.colour, arm.marker, arm.line) for arm in ARMS.values()}
    assert (first.colour, first.marker, first.line) not in known


def test_unknown_arms_of_one_figure_differ_in_colour_and_then_in_marker() -> None:
    for count in range(1, len(UNKNOWN) + 1):
        styles = automatic_styles(UNKNOWN[:count]).values()
        assert len({(one.colour, one.marker) for one in styles}) == count
        assert len({one.colour for one in styles}) == min(count, len(palette.SPARE))


def test_an_unknown_arm_keeps_its_style_where_no_other_has_it() -> None:
    alone = {arm: arm_style(arm) for arm in UNKNOWN[:2]}
    with naming("rule", UNKNOWN[:2]):
        together = {arm: arm_style(arm) for arm in UNKNOWN[:2]}
    assert together[UNKNOWN[0]] == alone[UNKNOWN[0]]
    assert together[UNKNOWN[0]].colour != together[UNKNOWN[1]].colour


def test_a_pinned_arm_has_the_style_of_its_twin_with_dashes() -> None:
    assert arm_style("default-pin") == arm_style("default")._replace(
        name="default-pin", line=DASHED
    )


def test_known_arms_come_first_in_the_order_of_the_table() -> None:
    assert in_order(["zz", "pin", "aa", "live", "pin"]) == ["live", "pin", "aa", "zz"]


def test_a_new_arm_of_an_assay_is_drawn_named_and_told_apart_without_an_entry() -> None:
    arms = ("live", "pin", "boost", "damp")
    results = replace(scale_results(arms), axes={"arm": arms})
    figure = FIGURES["fig:detail-scale"]({"E1": results})
    assert clashes(figure) == []
    assert {"boost", "damp"} <= set(said(figure).split())
    inks = {text.get_text(): text.get_color() for text in figure.axes[0].texts}
    assert len({inks[arm] for arm in arms}) == len(arms)


def test_pages_give_arms_the_colours_of_the_figures() -> None:
    styles = distinct_styles(["rule", "a2c", "boost", "match-clamp", "match-natural"], "Sprout")
    assert styles["rule"] == arm_style("rule")._replace(name="Sprout")
    assert styles["boost"] == arm_style("boost")
    assert styles["match-clamp"].name == "match-clamp"  # both are called match
    assert styles["match-natural"].colour == arm_style("match-natural").colour
