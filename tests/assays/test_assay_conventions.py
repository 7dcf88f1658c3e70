"""Convention gaps: printed gaps, shifts within seeds, and lifetimes shared with other assays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import printed_tables
from rulescope.assays import ASSAYS, Assay, Budget, Selection, narrowed, published
from rulescope.assays.comparison import compare
from rulescope.assays.frame import Floats
from rulescope.assays.identity.conventions import COMPARISONS, analyse
from rulescope.assays.results import Results
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import ActionFlip, Boundary
from rulescope.learners.disco_config import AGENTS, Conventions, Disco
from rulescope.stats import Estimate

from .frames import bounds, drawn_seeds, our_name, trim
from .lives import Labels, lived

ASSAY = ASSAYS["conventions"]
PAPER = ASSAY.budget("paper")
KNOWN = published.estimates("conventions")
SEEDS = {
    "catch-big": 12,
    "catch-0.001": 12,
    "catch-1": 12,
    "catch-1000": 12,
    "masked": 18,
    "action-flip": 18,
    "deep-sea-12": 15,
    "deep-sea-14": 15,
}
PINNED = ("catch-0.001", "catch-1", "catch-1000")
"""Compared with pinned Disco, not with A2C."""


def test_published_gaps_come_back_as_they_are() -> None:
    """Comparators earn nothing, Disco the printed gap (before the reward is scaled)."""

    def printed(labels: Labels, _seed: int, _rows: Floats) -> Mapping[str, float]:
        name, arm = str(labels["comparison"]), str(labels["arm"])
        convention = {"rule": "reference", "rule-legacy": "legacy"}.get(arm)
        if convention is None:
            return {"mean_return": 0.0, "reward_rate": 0.0}
        gap = KNOWN[f"gap/{name}/{convention}"].value / COMPARISONS[name].scale
        # each is read from one of the two columns
        return (
            {"mean_return": np.nan, "reward_rate": gap}
            if name == "masked"
            else {
                "mean_return": gap,
                "reward_rate": np.nan,
            }
        )

    results = analyse(lived(ASSAY, PAPER, printed))
    for key, value in KNOWN.items():
        if key.startswith("gap/"):
            assert results.estimates[key].value == pytest.approx(value.value), key
    assert {key.split("/")[1]: one.n for key, one in results.estimates.items()} == SEEDS
    (table,) = results.tables
    theirs = printed_tables.tables()[table.label]
    assert [row[:2] for row in table.rows] == [(our_name(row[0]), row[1]) for row in theirs.rows]


def random_lives(generator: np.random.Generator) -> tuple[Results, dict[tuple[str, str], Floats]]:
    """Rows are 5 until the one or ones that are read."""
    values: dict[tuple[str, str], Floats] = {}

    def log(labels: Labels, seed: int, rows: Floats) -> Mapping[str, Floats]:
        key = (str(labels["comparison"]), str(labels["arm"]))
        if key not in values:
            values[key] = generator.uniform(size=18)
        read = rows >= 0.8 * rows[-1] if "deep-sea" in key[0] else rows == rows[-1]
        column = np.where(read, values[key][seed], 5.0)
        return {"mean_return": column, "reward_rate": column + 1}

    return analyse(lived(ASSAY, PAPER, log)), values


def test_gaps_and_shifts_are_those_of_plain_loops() -> None:
    results, values = random_lives(np.random.default_rng(5))
    for name, n in SEEDS.items():
        scale = (
            float(name.removeprefix("catch-")) if name[-1].isdigit() and "sea" not in name else 1
        )
        other = ("rule-pin-legacy", "rule-pin") if scale != 1 or name == "catch-1" else ("a2c",) * 2
        legacy, reference = (
            [scale * (values[name, arm][i] - values[name, against][i]) for i in range(n)]
            for arm, against in (("rule-legacy", other[0]), ("rule", other[1]))
        )
        shift = [b - a for a, b in zip(legacy, reference, strict=True)]
        draws = 2000 if "deep-sea" in name else 1000
        for key, each in (
            (f"gap/{name}/legacy", legacy),
            (f"gap/{name}/reference", reference),
            (f"shift/{name}", shift),
        ):
            ours = results.estimates[key]
            every = [trim(each[i] for i in block) for block in drawn_seeds(n, draws=draws)]
            assert ours.value == pytest.approx(trim(each)), key
            assert (ours.low, ours.high) == pytest.approx(bounds(every)), key
            assert (ours.n, ours.draws) == (n, draws)


def test_conventions_differ_in_the_retrace_index_alone_and_only_where_there_is_one() -> None:
    cells = {tuple(cell.labels.values()): cell.runs for cell in ASSAY.grid(PAPER)}
    assert sum(len(runs) for runs in cells.values()) == 378
    for name in SEEDS:
        legacy, other = (cells[name, arm][0] for arm in ("rule-legacy", "rule"))
        assert isinstance(legacy.learner, Disco)
        assert legacy.learner.conventions == Conventions(retrace="skip")
        assert replace_learner(legacy.learner) == other.learner
        assert (legacy.environment, legacy.change, legacy.boundary, legacy.scale) == (
            other.environment,
            other.change,
            other.boundary,
            other.scale,
        )
    assert cells["masked", "a2c"][0].boundary == Boundary(terminals="masked")
    assert cells["action-flip", "a2c"][0].change == ActionFlip(at=1500)


def replace_learner(legacy: Disco) -> Disco:
    return Disco(rule=legacy.rule, conventions=AGENTS["historical"])


def test_lifetimes_have_their_own_lengths_and_logs() -> None:
    made = {
        str(cell.labels["comparison"]): (cell.runs[0].iterations, cell.runs[0].log_every)
        for cell in ASSAY.grid(PAPER)
    }
    assert made == {
        "catch-big": (20_000, 50),
        **{f"catch-{scale}": (2000, 20) for scale in ("0.001", "1", "1000")},
        "masked": (6000, 40),
        "action-flip": (3000, 20),
        "deep-sea-12": (2483, 40),
        "deep-sea-14": (2897, 40),
    }
    short = narrowed(ASSAY, PAPER, Selection(iterations=2000, seeds=1))
    lengths = {str(c.labels["comparison"]): c.runs[0].iterations for c in ASSAY.grid(short)}
    assert lengths["catch-big"] == 2000
    assert lengths["action-flip"] == 300
    assert lengths["deep-sea-12"] == 248


@pytest.mark.parametrize(
    ("other", "shared"),
    [("F2", 24), ("E1", 72), ("E3", 18), ("exposure", 36), ("F1", 90), ("E-A5", 60)],
)
def test_what_other_assays_have_lived_is_not_lived_again(other: str, shared: int) -> None:
    if other not in ASSAYS:
        pytest.skip(f"no {other}")
    ours, theirs = (
        {run.id for cell in assay.grid(historical(assay)) for run in cell.runs}
        for assay in (ASSAY, ASSAYS[other])
    )
    assert len(ours & theirs) == shared


def historical(assay: Assay) -> Budget:
    return narrowed(assay, assay.budget("paper"), Selection(agent="historical"))


def test_seeds_are_those_asked_for_up_to_the_published() -> None:
    for asked, counts in ((4, {4}), (14, {12, 14}), (18, {12, 15, 18}), (30, {30})):
        cells = ASSAY.grid(narrowed(ASSAY, PAPER, Selection(seeds=asked)))
        assert {len(cell.runs) for cell in cells} == counts


def test_a_comparison_without_its_other_arm_has_no_gap() -> None:
    def unpinned(labels: Labels, _seed: int, _rows: Floats) -> Mapping[str, float] | None:
        return None if "pin" in str(labels["arm"]) else {"mean_return": 1.0, "reward_rate": 1.0}

    results = analyse(lived(ASSAY, PAPER, unpinned))
    assert np.isnan(results.estimates["gap/catch-1/reference"].value)
    assert results.estimates["gap/masked/reference"].value == 0.0


def test_nothing_is_lived_that_has_nothing_to_be_compared_with() -> None:
    alone = lived(
        ASSAY,
        replace(PAPER, arms=("rule", "a2c")),
        lambda *_: {"mean_return": 1.0, "reward_rate": 1.0},
    )
    assert alone.axes["comparison"] == tuple(name for name in SEEDS if name not in PINNED)
    results = analyse(alone)
    assert np.isnan(results.estimates["shift/masked"].value)
    assert results.estimates["gap/masked/reference"].n == 18
    for arms in (("a2c",), ("rule", "rule-legacy"), ("rule", "rule-pin-legacy")):
        with pytest.raises(SpecError, match="both of its arms"):
            ASSAY.grid(replace(PAPER, arms=arms))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"agent": "legacy"}, "--agent: the Retrace index of 'legacy'"),
        ({"scales": (0.1,)}, "--scales: each comparison has its own"),
        ({"conditions": ("masked",), "arms": ("rule-pin",)}, "no comparison is left"),
        ({"conditions": ("masked",), "tasks": ("catch-big",)}, "no comparison is left"),
    ],
)
def test_what_makes_no_comparison_is_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        ASSAY.grid(replace(PAPER, **wrong))  # type: ignore[arg-type]


def test_printed_gaps_are_of_sizes_that_their_units_allow() -> None:
    """A return of 100 episodes moves by 0.02, times the scale; 6 of 12 or 10 of 18 are kept."""
    for name, unit in (
        ("catch-big", 0.02 / 6),
        ("catch-0.001", 0.02e-3 / 6),
        ("catch-1", 0.02 / 6),
        ("catch-1000", 0.02e3 / 6),
        ("action-flip", 0.02 / 10),
        ("masked", 2 / 4000 / 10),
    ):
        for key in (f"gap/{name}/legacy", f"gap/{name}/reference", f"shift/{name}"):
            count = KNOWN[key].value / unit
            assert count == pytest.approx(round(count), abs=2e-2), key


def test_the_deep_sea_rows_are_printed_twice() -> None:
    for row in printed_tables.tables()["v5:tab:app-exploration-f1"]:
        value, low, high = row["Disco minus A2C [95% CI]"]
        ours = KNOWN[f"gap/deep-sea-{row['Depth']}/{row['Convention']}"]
        assert (ours.value, ours.low, ours.high, ours.n) == (value, low, high, row["n"])


def test_the_table_says_how_long_lifetimes_are() -> None:
    results, _ = random_lives(np.random.default_rng(6))
    assert "2,000 to 20,000 iterations (116,000 to 1,160,000 interactions)" in results.budget
    assert isinstance(results.tables[0].rows[0][2], Estimate)


@pytest.mark.parametrize(("iterations", "same"), [(20_000, True), (10_000, False)])
def test_a_part_of_the_comparisons_still_has_the_published_budget(
    iterations: int, same: bool
) -> None:
    budget = replace(PAPER, iterations=iterations, conditions=("catch-1", "deep-sea-12"))
    frame = lived(ASSAY, budget, lambda *_: {"mean_return": 1.0, "reward_rate": 1.0})
    found = compare(analyse(frame))
    assert len(found) == 6
    assert all(one.same_budget is same for one in found)
