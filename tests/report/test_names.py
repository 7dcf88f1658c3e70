"""Figures, legends and captions show the subject's own name, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from named_rows import rows
from report import test_change_figures, test_exploration_figures, test_open_figures
from report.figure_checks import clashes, said
from report.stream_samples import whole as streams
from rulescope.assays import ASSAYS
from rulescope.assays.figures import FIGURES
from rulescope.assays.plan import Plan
from rulescope.assays.results import Results
from rulescope.render.arm_styles import arm_style
from rulescope.render.line_labels import End, name_ends
from rulescope.render.style import END_LABEL, keep_inside
from rulescope.report.assay_page import explanation, figure_caption
from rulescope.report.learning_curves import page_styles
from rulescope.report.site_model import AssayPage

SAMPLES = {
    **streams(),
    **test_exploration_figures.whole(),
    **test_change_figures.whole(),
    "minatar-context": test_open_figures.context(),
}
FAMILY = "the learner of Disco103"
"""Whose replay has the size that an arm of DQN is given."""


def of_rule(rule: str) -> dict[str, Results]:
    return {name: replace(found, rule=rule) for name, found in SAMPLES.items()}


NAMED = (
    "fig:behavior",
    "orig:behavior",
    "fig:detail-replay",
    "v5:fig:recovery-catch",
    "v5:fig:recovery-overview",
    "v5:fig:recovery-mapping",
    "v5:fig:app-exploration",
    "v5:fig:app-streams",
    "ladder",
    "deepsea-discovery",
    "minatar-context",
)
"""Figures that name arms after the rule under audit."""
LONG = "my-plugin-rule-v2"


def smallest(figure: Figure) -> float:
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
    return min(float(text.get_fontsize()) for text in texts if text.get_text().strip())


@pytest.mark.parametrize("label", NAMED)
def test_a_long_name_is_abbreviated_readable_and_explained_below(label: str) -> None:
    figure = FIGURES[label](of_rule(LONG))
    assert clashes(figure) == []
    assert smallest(figure) >= 5.5
    assert f"my-pl…v2: {LONG}." in said(figure)


def with_controls(rule: str) -> dict[str, Results]:
    """Return the streams with a pinned rule and one of random weights beside the learners."""
    found = of_rule(rule)
    for name in ("exposure", "E-A3c"):
        more = {
            key.replace("/dqn", f"/{arm}"): value
            for arm in ("rule-pin", "rule-null")
            for key, value in found[name].estimates.items()
        }
        found[name] = replace(found[name], estimates=rows(name, {**found[name].estimates, **more}))
    return found


@pytest.mark.parametrize("rule", ["sprout", LONG])
def test_all_end_labels_of_a_panel_have_one_readable_size_on_the_page(rule: str) -> None:
    figure = FIGURES["v5:fig:app-streams"](with_controls(rule))
    assert clashes(figure) == []
    assert smallest(figure) >= 5.5
    panels = [
        {float(text.get_fontsize()) for text in axes.texts if text.get_label() == END_LABEL}
        for axes in figure.axes
    ]
    assert [len(sizes) for sizes in panels if sizes] == [1] * 4
    assert "null" in said(figure)


@pytest.mark.parametrize("label", ["fig:behavior", "orig:behavior"])
@pytest.mark.parametrize("rule", ["sprout", LONG])
def test_names_of_streams_have_room_when_all_control_arms_are_run(label: str, rule: str) -> None:
    figure = FIGURES[label](with_controls(rule))
    assert clashes(figure) == []
    assert smallest(figure) >= 5.5
    assert "null rule" in said(figure)


def test_a_label_without_room_is_cut_off_at_the_smallest_size() -> None:
    figure = Figure(figsize=(2, 2))
    axes = figure.add_axes((0.1, 0.1, 0.5, 0.8), xticks=[], yticks=[])
    ends = [
        End(text, arm_style("live"), 1.0, y, y) for text, y in (("A2C", 0.1), ("long " * 9, 0.9))
    ]
    name_ends(axes, ends)
    keep_inside(figure)
    short, long = axes.texts
    assert (short.get_text(), short.get_fontsize()) == ("A2C", 5.5)
    assert long.get_text().startswith("long long")
    assert long.get_text().endswith("…")
    assert clashes(figure) == []


@pytest.mark.parametrize("label", NAMED)
def test_a_figure_of_another_rule_does_not_speak_of_disco(label: str) -> None:
    words = said(FIGURES[label](of_rule("sprout"))).replace(FAMILY, "")
    assert "Disco" not in words
    assert "Sprout" in words
    assert "Disco103" in said(FIGURES[label](of_rule("disco103")))


def test_outside_of_a_figure_nothing_is_named_after_a_rule() -> None:
    assert arm_style("rule-pin").name == "rule, pinned"


def test_the_legend_of_a_page_has_the_name_of_its_rule() -> None:
    assay = ASSAYS["F2"]
    results = Results("F2", "", {"arm": assay.arms}, 1, rows("F2", {}), (), rule="mine")
    page = AssayPage("F2-mine", Plan.of(assay, assay.budget("smoke")), results, ())
    assert [how.name for how in page_styles(page).values()] == ["mine", "mine, pinned", "A2C"]


def test_what_pages_say_of_an_assay_holds_for_any_rule() -> None:
    for assay in ASSAYS.values():
        words = [
            assay.question,
            *explanation(assay),
            *(figure_caption(label) for label in assay.figures),
        ]
        assert "Disco" not in " ".join(words).replace("Discovery", ""), assay.id


def test_episode_ends_are_signalled_in_figures_and_questions() -> None:
    shown = said(FIGURES["v5:fig:app-streams"](SAMPLES))
    assert "What happens, and what is signalled" in shown
    questions = " ".join(assay.question for assay in ASSAYS.values())
    assert "need the signal of episode ends" in questions
    assert " told" not in shown + questions
