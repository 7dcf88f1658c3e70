"""Profiles of several rules become rows, compared within seeds, with the worth of each history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import t as student  # type: ignore[import-untyped]

from audit.made_up_audits import audit, change_of
from audit.made_up_profiles import ASSET, BURDEN, DEAD, NEITHER, made_up
from named_rows import rows as named_rows
from rulescope.assays.results import Results
from rulescope.audit import evidence, optimiser_profile, profile, profile_axes
from rulescope.audit.atlas import axis_worths, find_reference, label_profiles, make_atlas
from rulescope.audit.atlas_rows import (
    ABSENT,
    IS_REFERENCE,
    NO_COMMON_SEED,
    NOT_BY_SEED,
    OTHER_BUDGET,
    OTHER_UNIT,
    UNKNOWN_BUDGET,
    Atlas,
    AtlasRow,
)
from rulescope.audit.atlas_sentences import describe
from rulescope.audit.atlas_tables import axis_text, explain, measures_table
from rulescope.audit.profile import (
    PINNED,
    RULE,
    Answer,
    Axis,
    Comparison,
    Measure,
    Profile,
    ProfileValue,
    Result,
    with_seeds,
)
from rulescope.core.errors import SpecError
from rulescope.stats import Estimate

HALF = Estimate(0.5, 0.4, 0.6, n=4)


def one_line(rule: str, seeds: Sequence[float | None], budget: str = "60 iterations") -> Profile:
    """Return a profile with a single line, the score, whose lifetimes have these values."""
    known = [value for value in seeds if value is not None]
    value = ProfileValue(sum(known) / len(known), None, None, len(known), "none")
    line = Measure("score", "Score", "score", {RULE: replace(value, seeds=tuple(seeds))}, "E1")
    axes = (Axis("Competence and pace", "", (line,), ""),)
    return Profile(rule, "quick", "", axes, budgets={"E1": budget} if budget else {})


def atlas_of(*profiles: Profile, reference: str | None = None) -> Atlas:
    return make_atlas({f"folder-{i}": one for i, one in enumerate(profiles)}, reference)


def only(atlas: Atlas, rule: str) -> AtlasRow:
    [row] = [row for row in atlas.rows if row.rule == rule]
    return row


# --- differences between rules --------------------------------------------------------------------


def test_a_difference_is_the_centre_of_the_differences_of_equal_seeds() -> None:
    own, other = (0.9, 0.7, 0.8, 0.2, 0.95, 0.6), (0.5, 0.6, 0.1, 0.3, 0.35, 0.2)
    made = atlas_of(one_line("mine", own), one_line("a2c", other))
    found = only(made, "mine").difference
    assert found is not None
    apart = sorted(a - b for a, b in zip(own, other, strict=True))
    assert found.value == pytest.approx(sum(apart[1:-1]) / 4)  # the extremes are trimmed
    assert (found.n, found.family) == (6, 1)
    # At least as wide as Student's t of the same differences.
    half = student.ppf(0.975, 5) * np.std(apart, ddof=1) / 6**0.5
    assert found.low is not None
    assert found.high is not None
    assert found.low <= np.mean(apart) - half + 1e-9
    assert found.high >= np.mean(apart) + half - 1e-9


def test_pairing_ignores_what_both_seeds_share_and_unequal_numbers_of_seeds() -> None:
    luck = np.array([0.0, 0.4, -0.3, 0.25, 0.1])
    made = atlas_of(
        one_line("mine", [*(0.55 + luck).tolist(), 0.0, 0.0]),  # seeds that the other lacks
        one_line("a2c", (0.5 + luck).tolist()),
    )
    found = only(made, "mine").difference
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((0.05, 0.05, 0.05))
    assert found.n == 5


def test_a_missing_lifetime_leaves_its_pair_out() -> None:
    made = atlas_of(
        one_line("mine", [1.0, None, 1.0, 1.0, 1.0]), one_line("a2c", [0.5, 0.5, 0.5, None, 0.5])
    )
    row = only(made, "mine")
    assert row.seeds == (0, 2, 3, 4)
    assert row.difference is not None
    assert (row.difference.value, row.difference.n) == (0.5, 3)


def test_rules_with_other_budgets_are_marked_and_never_compared() -> None:
    made = atlas_of(
        one_line("longer", [0.9] * 5, "600 iterations"),
        one_line("old", [0.9] * 5, ""),
        one_line("mine", [0.9] * 5),
        one_line("a2c", [0.5] * 5),
    )
    notes = {row.rule: (row.note, row.difference is None) for row in made.rows}
    assert notes == {
        "longer": (OTHER_BUDGET, True),
        "old": (UNKNOWN_BUDGET, True),
        "mine": ("", False),
        "a2c": (IS_REFERENCE, True),
    }
    assert [rule.other_budgets for rule in made.rules] == [("E1",), (), (), ()]
    assert any("longer was run with another budget than a2c in E1" in s for s in made.sentences)
    assert [note.partition(":")[0] for note in made.notes] == ["old"]


def test_rows_of_different_worlds_are_different_measures() -> None:
    mine = replace(one_line("mine", [0.9] * 5), world="echo")
    both = replace(one_line("a2c", [0.5] * 5), world="echo")
    usual = one_line("usual", [0.4] * 5)
    made = atlas_of(mine, usual, both)
    titles = {row.rule: row.title for row in made.rows}
    assert titles == {"mine": "Score, in echo", "usual": "Score", "a2c": "Score, in echo"}
    assert only(made, "usual").note == ABSENT
    assert only(made, "mine").difference is not None
    said = [text for text in made.sentences if "ompetent" in text]
    assert said == []  # without intervals nothing is judged
    assert measures_table(made, made.rows, "").rows[0][1] == "Score, in echo"


def test_the_note_says_what_scores_are_measured_by_in_every_world() -> None:
    usual = one_line("a2c", [0.5] * 5)
    known = "score: mean return of an episode, 0 is random play, 1 is 475 (threshold)"
    there = replace(usual, rule="there", world="echo", references=known)
    [line] = usual.axes[0].measures
    axes = (replace(usual.axes[0], measures=(replace(line, unit="raw"),)),)
    raw = replace(there, rule="raw", world="pole", references="no reference", axes=axes)
    both = explain(atlas_of(usual, there, raw))
    assert "1 is optimal" in both
    assert f"In echo: {known}. A score of 0.8 counts as competent." in both
    assert "In pole: no reference. Differences" in both
    named = explain(atlas_of(there))
    assert "optimal" not in named
    assert "optimal" not in explain(atlas_of(raw))
    assert explain(atlas_of(there, replace(there, rule="two"))).count("In echo") == 1


def test_a_history_that_is_both_shows_the_strongest_of_each_direction() -> None:
    def at(place: str, worth: float, result: Result) -> Comparison:
        value = replace(ProfileValue.of(HALF), value=worth, low=worth - 0.1, high=worth + 0.1)
        return Comparison("reward scale", place, PINNED, value, value, value, 0.1, result)

    found = axis_worths(
        [
            at("at 0.1", 0.3, "asset"),
            at("at 1", 0.7, "asset"),
            at("at 10", -0.5, "burden"),
            at("at 100", -0.2, "burden"),
            at("at 1e3", 0.9, "undecided"),
        ]
    )["reward scale"]
    assert (found.verdict, found.place, found.opposite_place) == ("both", "at 1", "at 10")
    made = atlas_of(one_line("mine", [0.5] * 5))
    text = axis_text(made.rules[0], found)
    assert text == "both at 1: 0.70 [0.60, 0.80]; at 10: −0.50 [−0.60, −0.40]"
    told = replace(made.rules[0], verdict="both", axes={"reward scale": found})
    [sentence] = describe(replace(made, rules=(told,)))[:1]
    assert "reward scale at 1: 0.70 [0.60, 0.80], at 10: −0.50 [−0.60, −0.40]" in sentence
    assert axis_worths([at("at 1", 0.7, "asset")])["reward scale"].opposite is None


def test_one_rule_in_two_worlds_is_called_by_them() -> None:
    usual = one_line("a2c", [0.5] * 5)
    made = label_profiles({"one": usual, "two": replace(usual, world="echo")})
    assert made == {"one": "a2c (quick)", "two": "a2c (quick, in echo)"}


def test_values_in_other_units_are_never_compared() -> None:
    raw = one_line("raw", [90.0] * 5)
    [line] = raw.axes[0].measures
    raw = replace(raw, axes=(replace(raw.axes[0], measures=(replace(line, unit="raw"),)),))
    row = only(atlas_of(raw, one_line("a2c", [0.5] * 5)), "raw")
    assert (row.note, row.difference) == (OTHER_UNIT, None)


def test_what_cannot_be_paired_says_why() -> None:
    share = one_line("share", [0.5] * 4)
    [line] = share.axes[0].measures
    unknown = replace(line, figures={RULE: ProfileValue.of(HALF)})
    share = replace(share, axes=(replace(share.axes[0], measures=(unknown,)),))
    apart = one_line("apart", [None, None, None, None, 0.5])
    made = atlas_of(share, apart, one_line("a2c", [0.5] * 4))
    assert only(made, "share").note == NOT_BY_SEED
    assert only(made, "apart").note == NO_COMMON_SEED
    other = replace(line, key="another")
    alone = replace(share, rule="alone", axes=(replace(share.axes[0], measures=(other,)),))
    made = atlas_of(alone, one_line("a2c", [0.5] * 4))
    assert only(made, "alone").note == ABSENT


def test_all_differences_of_one_measure_share_one_error_rate() -> None:
    draws = np.random.default_rng(0)
    one, two, three, standard = (draws.normal(0.5, 0.1, 6).tolist() for _ in range(4))
    made = atlas_of(
        one_line("one", one),
        one_line("two", two),
        one_line("three", three),
        one_line("longer", three, "600 iterations"),
        one_line("a2c", standard),
    )
    found = {row.rule: row.difference for row in made.rows if row.difference is not None}
    assert {rule: one.family for rule, one in found.items()} == {"one": 3, "two": 3, "three": 3}
    alone = only(atlas_of(one_line("one", one), one_line("a2c", standard)), "one").difference
    assert alone is not None
    assert found["one"].high is not None
    assert alone.high is not None
    assert found["one"].high > alone.high


# --- which rule is which --------------------------------------------------------------------------


def test_rules_of_one_name_are_called_by_preset_or_folder() -> None:
    one, two = one_line("mine", [0.5]), one_line("other", [0.5])
    three = replace(one, preset="standard")
    assert label_profiles({"a": one, "b": two}) == {"a": "mine", "b": "other"}
    assert label_profiles({"a": one, "b": two, "c": three}) == {
        "a": "mine (quick)",
        "b": "other",
        "c": "mine (standard)",
    }
    assert label_profiles({"a": one, "b": one, "c": three}) == {
        "a": "mine (a)",
        "b": "mine (b)",
        "c": "mine (standard)",
    }


def test_the_reference_is_a2c_or_the_first_or_the_one_that_is_named() -> None:
    profiles = {name: one_line(name, [0.5]) for name in ("sprout", "a2c", "ppo")}
    labels = label_profiles(profiles)
    assert find_reference(labels, profiles, None) == "a2c"
    assert find_reference(labels, profiles, "ppo") == "ppo"
    del profiles["a2c"], labels["a2c"]
    assert find_reference(labels, profiles, None) == "sprout"
    with pytest.raises(SpecError, match="--reference: no profile of 'sprut'; nearest: 'sprout'"):
        find_reference(labels, profiles, "sprut")
    twice = {"a": one_line("ppo", [0.5]), "b": replace(one_line("ppo", [0.5]), preset="paper")}
    labels = label_profiles(twice)
    assert find_reference(labels, twice, "ppo (paper)") == "ppo (paper)"
    with pytest.raises(SpecError, match=r"several profiles of 'ppo': name one of 'ppo \(quick\)'"):
        find_reference(labels, twice, "ppo")


# --- what a history is worth ----------------------------------------------------------------------


def test_the_worth_of_a_history_is_that_of_the_answer() -> None:
    mine = made_up("mine", ASSET)
    assert mine.answer is not None
    made = atlas_of(mine, made_up("a2c", NEITHER, history=False))
    rows = {row.key: row for row in made.rows if row.rule == "mine"}
    for one in mine.answer.comparisons:
        row = rows[one.measure]
        assert (row.worth, row.result, row.against) == (one.difference, one.result, PINNED)
        assert row.verdict == "asset"
        live, without = (
            np.array(row.value.seeds),
            np.array(row.without.seeds if row.without else ()),
        )
        assert row.worth is not None
        np.testing.assert_allclose(np.array(row.worth.seeds), live - without)
    assert rows["best"].worth is not None  # measured, though not a place of the answer
    assert rows["best"].result is None
    own = made.rules[0]
    assert {axis: one.verdict for axis, one in own.axes.items()} == {
        "competence": "asset",
        "reward scale": "asset",
        "streams": "asset",
    }
    assert own.axes["reward scale"].places == 4
    largest = max(abs(rows[f"score/{at}"].worth.value or 0) for at in ("0.1", "1", "10", "100"))  # type: ignore[union-attr]
    shown = own.axes["reward scale"].worth
    assert shown is not None
    assert shown.value == pytest.approx(largest)


def test_a_rule_without_history_is_worth_nothing_known_rather_than_zero() -> None:
    made = atlas_of(made_up("a2c", NEITHER, history=False), made_up("mine", BURDEN))
    own = [row for row in made.rows if row.rule == "a2c"]
    assert own
    assert all(row.worth is None and row.without is None and row.result is None for row in own)
    rule = made.rules[0]
    assert (rule.verdict, rule.axes) == ("no history", {})
    assert made.rules[1].axes["competence"].verdict == "burden"


def test_an_axis_without_a_competent_arm_is_undecided_with_its_reason() -> None:
    [rule] = atlas_of(made_up("dead", DEAD)).rules
    assert {(one.verdict, one.reason) for one in rule.axes.values()} == {
        ("undecided", "neither arm is competent")
    }


def test_every_place_of_the_answer_is_a_line_of_the_profile() -> None:
    found = audit(ASSET, 4, np.random.default_rng(0))
    found["E3"] = change_of((0.95, 0.95), (0.9, 0.2))
    compared = evidence.comparisons(found, draws=1000)
    axes = profile_axes.axes_of(found)
    lines = {one.key: one for axis in axes for one in (*axis.measures, *axis.further)}
    assert {one.axis for one in compared} == {"competence", "reward scale", "streams", "change"}
    for one in compared:
        line = lines[one.measure]
        assert line.source == one.source
        assert {RULE, one.against} <= set(line.figures)
        np.testing.assert_allclose(
            np.array(one.difference.seeds),
            np.array(line.figures[RULE].seeds) - np.array(line.figures[one.against].seeds),
        )


def test_lines_of_an_axis_have_keys_of_their_own_everywhere() -> None:
    found = audit(ASSET, 4, np.random.default_rng(0))
    axes = profile_axes.axes_of(found)
    keys = [one.key for axis in axes for one in (*axis.measures, *axis.further)]
    assert len(set(keys)) == len(keys)


def test_an_optimiser_has_its_own_places_and_no_rows_twice() -> None:
    seeds = {"live": [2.0, 2.1, 1.9, 2.2], "zero": [0.1, 0.2, 0.1, 0.3], "initial": [0.0] * 4}
    games, scales = ("gymnax-breakout",), (1.0, 10.0)
    rates = {
        f"rate/{games[0]}/{arm}/{at:g}": np.array(seeds.get(arm, [0.0] * 4))
        for arm in ("live", "zero", "initial", "random")
        for at in scales
    }
    contrasts = {f"live-minus-zero/{games[0]}/{at:g}": HALF for at in scales}
    found = Results(
        "OPEN",
        "",
        {"task": games, "scale": scales},
        4,
        named_rows(
            "OPEN",
            dict.fromkeys(rates, HALF) | contrasts,
            {f"seeds/{key}": values for key, values in rates.items()},
        ),
        (),
    )
    compared = optimiser_profile.comparisons({"OPEN": found})
    mine = Profile(
        "open",
        "quick",
        "",
        optimiser_profile.axes_of({"OPEN": found}),
        answer=Answer("asset", "History: asset.", compared),
        budgets={"OPEN": "1 iteration"},
    )
    made = atlas_of(mine, made_up("a2c", NEITHER, history=False))
    rows = [row for row in made.rows if row.result is not None]
    assert [(row.key, row.unit, row.digits) for row in rows] == [
        ("rate/gymnax-breakout", "rate", 4),
        ("history/Breakout/at scale 10", "rate", 4),
    ]
    assert [row.note for row in rows] == [ABSENT, ABSENT]
    assert made.rules[0].axes["Breakout"].verdict == "asset"


# --- profiles on disk -----------------------------------------------------------------------------


def test_values_by_seed_survive_the_file_and_old_files_can_be_read(tmp_path: Path) -> None:
    mine = made_up("mine", ASSET)
    path = tmp_path / profile.FILE
    path.write_bytes(mine.to_json())
    assert profile.read(path) == mine
    old = json.loads(mine.to_json())
    del old["budgets"]
    for axis in old["axes"]:
        del axis["further"]
        for measure in axis["measures"]:
            for one in (*measure["figures"].values(), *measure["differences"].values()):
                del one["seeds"]
    for one in old["answer"]["comparisons"]:
        for name in ("measure", "unit", "source"):
            del one[name]
        for name in ("live", "other", "difference"):
            del one[name]["seeds"]
    path.write_text(json.dumps(old))
    made = atlas_of(profile.read(path), made_up("a2c", NEITHER, history=False))
    assert {row.note for row in made.rows if row.rule == "mine"} == {UNKNOWN_BUDGET}
    judged = {row.key for row in made.rows if row.result is not None}
    assert "history/reward scale/at 10" in judged
    assert made.rules[0].verdict == "asset"


def test_values_of_lifetimes_that_are_missing_are_none() -> None:
    figure = with_seeds(ProfileValue.of(HALF), [0.5, float("nan"), 0.25])
    assert figure.seeds == (0.5, None, 0.25)
    assert profile.divided(figure, 0.5).seeds == (1.0, None, 0.5)
    assert with_seeds(figure, None) is figure
