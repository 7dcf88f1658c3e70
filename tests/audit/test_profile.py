"""A profile goes to a file and comes back; its lines are where the assays put them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rulescope.assays.results import Results
from rulescope.audit import optimiser, profile, reading
from rulescope.audit.profile import RULE, Axis, Figure, Measure, Profile
from rulescope.errors import RecordError
from rulescope.report.profile import LOOKS, picture, table, write_profile
from rulescope.stats import Estimate

HALF = Estimate(0.5, 0.4, 0.6, n=3)


def results(assay: str, estimates: dict[str, Estimate], **axes: tuple[str | float, ...]) -> Results:
    return Results(assay, "", axes, 3, estimates, ())


@pytest.fixture
def whole() -> Profile:
    found = {
        "exposure": results(
            "exposure",
            {
                f"{kind}/{where}/{arm}": HALF
                for kind in ("score", "steps", "fraction")
                for where in ("episodic", "masked", "natural")
                for arm in ("disco", "disco-pin", "a2c")
            },
        ),
        "E1": results(
            "E1",
            {
                f"width/catch/{arm}/{c}": HALF
                for arm in ("live", "pin")
                for c in ("0.8", "half-best")
            }
            | {"contrast/catch/half-best": HALF, "threshold/catch/live": HALF},
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
            "E-A5", {"found/disco/8": HALF, "solved/disco/8": HALF}, task=("deep-sea-8",)
        ),
    }
    return Profile("mine", "quick", "Somebody", reading.axes_of(found), ("a note",))


def test_lines_take_their_numbers_from_the_assays(whole: Profile) -> None:
    axes = {axis.name: axis for axis in whole.axes}
    assert len(axes) == 6
    pace = {measure.key: measure for measure in axes["Competence and pace"].measures}["pace"]
    assert pace.figures[RULE].value == pytest.approx(0.0005)  # in thousands
    assert set(pace.figures) == {RULE, "without history", "A2C"}
    keys = [measure.key for measure in axes["Inheritance"].measures]
    assert keys == ["live/0.1", "interaction/0.1"]
    scale = {measure.key: measure for measure in axes["Reward scale"].measures}
    assert scale["best"].figures[RULE].value == 1.0  # the threshold is half of it
    assert scale["0.8"].title == "Decades of reward scale, of 4, with score ≥ 0.8"


def test_no_two_lines_of_an_axis_are_called_alike(whole: Profile) -> None:
    for axis in whole.axes:
        titles = [measure.title for measure in axis.measures]
        assert len(set(titles)) == len(titles)


def test_what_was_not_run_is_not_judged() -> None:
    assert {(axis.measures, axis.verdict) for axis in reading.axes_of({})} == {
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
    assert row[-1] == "3"
    lonely = next(row for row in made.rows if str(row[1]).startswith("Harm of"))
    assert lonely[heads.index("A2C")] is None


def test_missing_numbers_survive_the_file() -> None:
    none = Estimate(math.nan, math.nan, math.nan, n=0, method="none")
    assert Figure.of(none).value is None
    assert math.isnan(Figure.of(none).estimate().value)


def test_a_picture_leaves_out_what_could_not_be_measured() -> None:
    gone = Figure(None, None, None, 0, "none")
    measures = (
        Measure("a", "Seen", "score", {RULE: Figure.of(HALF)}, "E1"),
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
    axes = {axis.name: axis for axis in optimiser.axes_of(found)}
    first = axes["Competence and pace"].measures[0]
    assert first.title == "Breakout, scale 1: reward"
    assert set(first.figures) == {RULE, "Adam"}
    assert axes["Inheritance"].verdict.startswith("1 of 1 differences")
    assert axes["Exploration"].verdict.startswith("Does not apply")


def test_every_column_of_a_picture_has_a_look_of_its_own() -> None:
    columns = [*reading.LEARNERS.values(), *optimiser.ARMS.values()]
    looks = {name: (LOOKS[name].colour, LOOKS[name].marker) for name in columns}
    assert len(set(looks.values())) == len(looks)


def test_the_names_of_all_measures_are_on_the_page() -> None:
    conditions = ("action-flip", "reward-move")
    found = {
        "E2": results("E2", {"score/0.001/cross-natural": HALF}, scale=(0.001,)),
        "E3": results(
            "E3",
            {f"time/{each}/catch/disco/0.8": HALF for each in conditions}
            | {f"contrast/{each}/cleared": HALF for each in conditions},
            condition=conditions,
        ),
        "F2": results("F2", {"mastery/disco": HALF}),
    }
    drawn = picture(Profile("mine", "paper", "", reading.axes_of(found)))
    drawn.canvas.draw()
    names = [label for axes in drawn.axes for label in axes.get_yticklabels()]
    assert len(names) == 6
    assert min(label.get_window_extent().x0 for label in names) >= 0
