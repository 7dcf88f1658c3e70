"""A profile goes to a file and comes back; its lines are where the assays put them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from named_rows import rows
from rulescope.assays.results import Results
from rulescope.audit import optimiser_profile, profile, profile_axes
from rulescope.audit.profile import (
    FROZEN,
    PINNED,
    RULE,
    Answer,
    Axis,
    Groups,
    Measure,
    Profile,
    ProfileValue,
    Scales,
)
from rulescope.audit.profile_folder import (
    STYLES,
    intervals,
    last_line,
    picture,
    rules,
    table,
    write_profile,
)
from rulescope.core.errors import RecordError
from rulescope.stats import Estimate, Window, wilson

HALF = Estimate(0.5, 0.4, 0.6, n=4)


def results(assay: str, estimates: dict[str, Estimate], **axes: tuple[str | float, ...]) -> Results:
    return Results(assay, "", axes, 3, rows(assay, estimates), ())


@pytest.fixture
def whole() -> Profile:
    found = {
        "exposure": results(
            "exposure",
            {
                f"{kind}/{where}/{arm}": HALF
                for kind in ("score", "steps", "fraction")
                for where in ("episodic", "masked", "natural")
                for arm in ("rule", "rule-pin", "a2c")
            },
        ),
        "E1": results(
            "E1",
            {
                f"width/catch/{arm}/{c}": HALF
                for arm in ("live", "pin")
                for c in ("0.8", "half-best")
            }
            | {"contrast/catch/half-best": HALF, "best/catch/live": HALF},
            scale=(0.01, 1.0, 100.0),
        ),
        "E3": results(
            "E3",
            {
                f"{kind}/{change}/catch/disco{at}": HALF
                for kind, at in (("final", ""), ("attained", "/0.8"), ("time", "/0.8"))
                for change in ("action-flip", "reward-move")
            },
            condition=("action-flip", "reward-move"),
        ),
        "E2": results("E2", {"score/0.1/live": HALF, "interaction/0.1": HALF}, scale=(0.1,)),
        "E-A5": results(
            "E-A5", {"goal-in-log/rule/8": HALF, "solved/rule/8": HALF}, task=("deep-sea-8",)
        ),
    }
    return Profile("mine", "quick", "Somebody", profile_axes.axes_of(found), ("a note",))


def test_lines_take_their_numbers_from_the_assays(whole: Profile) -> None:
    axes = {axis.name: axis for axis in whole.axes}
    assert len(axes) == 6
    pace = {measure.key: measure for measure in axes["Competence and pace"].measures}["pace"]
    assert pace.figures[RULE].value == pytest.approx(0.0005)  # in thousands
    assert set(pace.figures) == {RULE, PINNED, "A2C"}
    keys = [measure.key for measure in axes["Inheritance"].measures]
    assert keys == ["live/0.1", "interaction/0.1"]
    assert all(set(measure.figures) == {RULE} for measure in axes["Inheritance"].measures)
    scale = {measure.key: measure for measure in axes["Reward scale"].measures}
    assert scale["best"].figures[RULE].value == 0.5
    assert scale["0.8"].title == "Decades of reward scale, of 4, with score ≥ 0.8"


def test_no_two_lines_of_an_axis_are_called_alike(whole: Profile) -> None:
    for axis in whole.axes:
        titles = [measure.title for measure in axis.measures]
        assert len(set(titles)) == len(titles)


def test_what_was_not_run_is_not_judged() -> None:
    assert {(axis.measures, axis.verdict) for axis in profile_axes.axes_of({})} == {
        ((), "Not measured.")
    }


def test_a_profile_is_read_as_it_was_written(whole: Profile, tmp_path: Path) -> None:
    paths = write_profile(whole, {"E1": "E1"}, tmp_path)
    assert profile.read(tmp_path / profile.FILE) == whole
    overview = paths[0].read_text()
    assert "[E1](E1/README.md)" in overview
    assert all(axis.verdict in overview for axis in whole.axes)
    before = {path: path.read_bytes() for path in paths}
    write_profile(whole, {"E1": "E1"}, tmp_path)
    assert before == {path: path.read_bytes() for path in paths}


def test_a_damaged_profile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / profile.FILE
    path.write_text('{"rule": 3}')
    with pytest.raises(RecordError, match=r"profile\.json: not a profile"):
        profile.read(path)


def test_the_table_has_n_and_a_dash_for_what_is_not_there(whole: Profile) -> None:
    made = table(whole)
    heads = [column.heading for column in made.columns]
    assert heads[:3] == ["Axis", "Measure", "mine"]
    row = next(row for row in made.rows if row[1] == "Final score, Catch 8×8")
    assert row[heads.index("mine")] == "0.50 [0.40, 0.60]"
    assert row[-1] == "4"
    lonely = next(row for row in made.rows if str(row[1]).startswith("Harm of"))
    assert lonely[heads.index("A2C")] is None


def test_missing_numbers_survive_the_file() -> None:
    none = Estimate(math.nan, math.nan, math.nan, n=0, method="none")
    assert ProfileValue.of(none).value is None
    assert math.isnan(ProfileValue.of(none).estimate().value)


def test_a_picture_leaves_out_what_could_not_be_measured() -> None:
    gone = ProfileValue(None, None, None, 0, "none")
    measures = (
        Measure("a", "Seen", "score", {RULE: ProfileValue.of(HALF)}, "E1"),
        Measure("b", "Unseen", "decades", {RULE: gone}, "E1"),
    )
    drawn = picture(Profile("mine", "quick", "", (Axis("One", "", measures, ""),)))
    assert [axes.get_yticklabels()[0].get_text() for axes in drawn.axes] == ["Seen"]


def test_an_optimiser_is_asked_along_the_axes_that_apply() -> None:
    found = {
        "OPEN": results(
            "OPEN",
            {
                "rate/gymnax-breakout/live/1": HALF,
                "rate/gymnax-breakout/adam/1": HALF,
                "live-minus-initial/gymnax-breakout/1": HALF,
                "live-minus-zero/gymnax-breakout/1": HALF,
            },
            task=("gymnax-breakout",),
            scale=(1.0,),
        )
    }
    axes = {axis.name: axis for axis in optimiser_profile.axes_of(found)}
    first = axes["Competence and pace"].measures[0]
    assert first.title == "Breakout, scale 1: reward"
    assert set(first.figures) == {RULE, "Adam"}
    assert "gate" not in axes["Inheritance"].verdict
    assert axes["Inheritance"].verdict.startswith("1 of 1 differences")
    assert axes["Exploration"].verdict.startswith("Does not apply")


def gated(gate: Estimate) -> dict[str, Axis]:
    """Return the axes of an optimiser whose one cell has this share of lifetimes that learned."""
    estimates = {"gate/gymnax-breakout/1": gate, "live-minus-zero/gymnax-breakout/1": HALF}
    found = {"OPEN": results("OPEN", estimates, task=("gymnax-breakout",), scale=(1.0,))}
    return {axis.name: axis for axis in optimiser_profile.axes_of(found)}


def test_the_capability_gate_of_an_optimiser_precedes_its_contrasts() -> None:
    axes = gated(wilson(8, 8))
    first = axes["Competence and pace"].measures[0]
    assert first.title == "Breakout, scale 1: live above untrained and random"
    assert first.figures[RULE].value == 1.0
    assert axes["Competence and pace"].verdict.startswith(
        "Capability gate passed in 1 of 1 cells (a cell passes if every live lifetime ends above "
        "its initial policy and above the random policy)."
    )
    before, _, after = axes["Inheritance"].verdict.partition("1 of 1 differences")
    assert before.startswith("Capability gate passed")
    assert after


def test_contrasts_of_a_cell_that_fails_the_gate_are_not_read() -> None:
    verdict = gated(wilson(6, 8))["Inheritance"].verdict
    assert "not passed in Breakout, scale 1 (6 of 8)" in verdict
    assert "The differences there are not read." in verdict


def test_every_column_of_a_picture_has_a_style_of_its_own() -> None:
    columns = [*profile_axes.LEARNERS.values(), *optimiser_profile.ARMS.values(), FROZEN]
    styles = {name: (STYLES[name].colour, STYLES[name].marker) for name in columns}
    assert len(set(styles.values())) == len(styles)


def test_the_names_of_all_measures_are_on_the_page() -> None:
    conditions = ("action-flip", "reward-move")
    found = {
        "E2": results("E2", {"score/0.001/cross-natural": HALF}, scale=(0.001,)),
        "E3": results(
            "E3",
            {f"time/{each}/catch/rule/0.8": HALF for each in conditions}
            | {f"contrast/{each}/cleared": HALF for each in conditions},
            condition=conditions,
        ),
        "F2": results("F2", {"mastery/rule": HALF}),
    }
    drawn = picture(Profile("mine", "paper", "", profile_axes.axes_of(found)))
    drawn.canvas.draw()
    names = [label for axes in drawn.axes for label in axes.get_yticklabels()]
    assert len(names) == 6
    assert min(label.get_window_extent().x0 for label in names) >= 0


SPLIT = ProfileValue(0.36, 0.0, 0.9, 8, "bootstrap", groups=Groups(5, 3, 0.02, 0.97))
WIDTH = ProfileValue(2.0, 1.0, 2.0, 8, "bootstrap", window=Scales("interval", 0.1, 10.0))
NONE = ProfileValue(0.0, 0.0, 0.0, 8, "bootstrap", window=Scales("none"))
ANSWER = Answer("asset", "History: asset (decided by competence: live − pinned 0.80 [0.70, 0.95]).")


@pytest.fixture
def answered() -> Profile:
    measures = (
        Measure("score", "Final score", "score", {RULE: SPLIT}, "exposure"),
        Measure("0.8", "Decades", "decades", {RULE: WIDTH, PINNED: NONE}, "E1"),
    )
    axes = (Axis("One", "What?", measures, "This."),)
    return Profile("mine", "quick", "A learner", axes, answer=ANSWER)


def test_the_answer_is_in_the_file_the_page_and_the_picture(
    answered: Profile, tmp_path: Path
) -> None:
    write_profile(answered, {}, tmp_path)
    assert profile.read(tmp_path / profile.FILE).answer == ANSWER
    page = (tmp_path / "README.md").read_text()
    assert page.splitlines()[2] == f"**{ANSWER.sentence}**"
    assert "An axis decides from 4 seeds on." in page
    drawn = (tmp_path / "profile.svg").read_text()
    assert "asset" in drawn
    assert last_line(answered).plain == ANSWER.sentence


def test_an_optimiser_and_a_rule_without_history_are_explained_by_their_own_rules(
    answered: Profile,
) -> None:
    """Under OPEN stood that 0.8 is competent, and under "History: none" when history decides."""
    measure = Measure("rate/1", "Reward", "rate", {RULE: ProfileValue.of(HALF)}, "OPEN")
    open_ = replace(answered, axes=(Axis("One", "", (measure,), ""),))
    assert "0.8" not in rules(open_) + intervals(open_)
    assert "Score:" not in intervals(open_)
    assert "passes the capability gate and does better" in rules(open_)
    assert "10 % of the gain over the untrained policy" in rules(open_)
    none = replace(answered, answer=Answer("no history", "History: none."))
    assert rules(none) == ""
    assert "Pinned" not in intervals(none)
    assert "is competent (0.8) and does better" in rules(answered)
    assert "±0.1 is no effect" in rules(answered)
    assert "Pinned" in intervals(answered)


def test_windows_have_class_and_ends_and_two_groups_are_named_in_every_table(
    answered: Profile,
) -> None:
    rows = table(answered).rows
    assert rows[0][2] == (
        "0.36 [0.00, 0.90]; 3 of 8 lifetimes learned (mean 0.97); 5 stayed near 0"
    )
    assert rows[1][2:4] == ("2.00 [1.00, 2.00]; interval 0.1 to 10", "0.00 [0.00, 0.00]; none")


def test_a_picture_shows_two_groups_as_two_dots(answered: Profile) -> None:
    marked = [line for line in picture(answered).axes[0].lines if line.get_marker() == "o"]
    assert [float(np.asarray(line.get_xdata())[0]) for line in marked] == [0.02, 0.97]


def test_a_profile_without_an_answer_can_still_be_read(answered: Profile, tmp_path: Path) -> None:
    old = json.loads(answered.to_json())
    del old["answer"]
    for axis in old["axes"]:
        for measure in axis["measures"]:
            del measure["differences"]
    (tmp_path / profile.FILE).write_text(json.dumps(old))
    assert profile.read(tmp_path / profile.FILE).answer is None


def test_figures_know_the_windows_groups_and_differences_of_their_seeds() -> None:
    seeds = {
        "score/episodic/rule": np.array([0.0, 0.02, 0.01, 0.95, 0.97, 0.99]),
        "score/episodic/rule-pin": np.array([0.0, 0.0, 0.0, 0.9, 0.9, 0.9]),
    }
    found = Results(
        "exposure",
        "",
        {},
        6,
        rows(
            "exposure",
            dict.fromkeys(seeds, HALF),
            {f"seeds/{key}": values for key, values in seeds.items()},
        ),
        (),
        {f"seeds/{key}": values for key, values in seeds.items()},
    )
    [score] = profile_axes.competence({"exposure": found}).measures
    groups = score.figures[RULE].groups
    assert groups is not None
    assert (groups.below, groups.above) == (3, 3)
    assert (groups.low, groups.high) == pytest.approx((0.01, 0.97))
    difference = score.differences[PINNED]
    assert difference.value == pytest.approx(np.mean([0.01, 0.02, 0.05, 0.07]))
    assert difference.n == 6
    widths = {"width/catch/live/0.8": Window(2.0, 0.1, 10.0, "interval")}
    grid: dict[str, tuple[str | float, ...]] = {"scale": (0.1, 10.0)}
    best = {"best/catch/live": HALF}
    scale = Results(
        "E1",
        "",
        grid,
        6,
        rows("E1", best | dict.fromkeys(widths, HALF), {}, windows=widths),
        (),
    )
    measures = {one.key: one for one in profile_axes.scale({"E1": scale}).measures}
    assert measures["0.8"].figures[RULE].window == Scales("interval", 0.1, 10.0)
