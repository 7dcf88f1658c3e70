"""The published table with our numbers: lines, counts, and the file."""

from __future__ import annotations

from pathlib import Path

import pytest

import printed_tables
from rulescope.core.errors import RecordError
from rulescope.numerics.golden import Golden, default_directory
from rulescope.numerics.parity_checks import compare_all
from rulescope.numerics.parity_table import (
    FILE,
    PUBLISHED,
    NumericCheck,
    numeric_table,
    read_check,
    summarise_check,
)
from rulescope.numerics.tolerances import Comparison
from rulescope.numerics.update_parity import compare_meta_gradients, compare_precisions


@pytest.fixture(scope="module")
def golden() -> Golden:
    return Golden(default_directory())


@pytest.fixture(scope="module")
def found(golden: Golden) -> NumericCheck:
    return summarise_check(list(compare_all(golden)), list(golden.rules().values()), {"torch": "x"})


def test_the_lines_are_the_published_ones_in_their_order(found: NumericCheck) -> None:
    printed = printed_tables.tables()["tab:numeric"]
    assert [line.name for line in found.lines] == [row["Test family"] for row in printed]
    assert list(PUBLISHED) == [row["Test family"] for row in printed]
    ours = {line.name: line.outputs for line in found.lines}
    for same in ("Value estimator", "Meta-gradient", "Float32/float64 control"):
        assert ours[same] == {row["Test family"]: row["Outputs"] for row in printed}[same]
    assert found.passed


def test_meta_gradients_are_compared_in_float32_too(golden: Golden) -> None:
    single = [item for item in compare_meta_gradients(golden) if item.precision == "float32"]
    assert len(single) == 42
    assert all(item.passed for item in single)
    assert max(item.absolute for item in single) > 0.0


def test_the_precision_control_is_within_this_implementation(golden: Golden) -> None:
    """Stored gradients of the original have no effect."""
    before = list(compare_precisions(golden))
    other = Golden(default_directory())
    other._files["metagrad_rand_f64"] = {"k2_nonzero_warm/absmax/x": golden["metagrad_common"]["h"]}
    assert list(compare_precisions(other)) == before
    assert len(before) == 42


def test_the_table_has_published_and_our_numbers(found: NumericCheck) -> None:
    table = numeric_table(found)
    assert table.label == "tab:numeric"
    assert [row[2] for row in table.rows] == [26, 16, 12, 9, 42, 42]
    assert [row[3] for row in table.rows] == [
        "2.304e-03",
        "4.470e-05",
        "2.733e-04",
        "5.471e-14",
        "4.170e-07",
        "2.945e-07",
    ]
    assert [row[4] for row in table.rows] == [line.outputs for line in found.lines]


def test_parameters_are_those_after_one_step_of_adam() -> None:
    def item(where: str, error: float) -> Comparison:
        return Comparison("updated parameters", "float32", where, error, error, 1.0)

    found = [
        item("rand/definition/step0: params/a", 0.1),
        item("rand/definition/step1: params/a", 0.2),
        item("rand/definition/step0: target/a", 0.3),
    ]
    (line,) = summarise_check(found, [], {}).lines
    assert (line.comparisons, line.absolute) == (1, 0.1)


def test_a_nan_is_not_hidden_by_other_errors(tmp_path: Path) -> None:
    items = [Comparison("forward", "float32", f"a: {e}", e, e, 1.0) for e in (0.1, float("nan"))]
    check = summarise_check(items, [], {})
    (line,) = check.lines
    assert (line.absolute, line.passed, check.passed) == (None, False, False)
    path = tmp_path / FILE
    path.write_bytes(check.to_json())
    assert read_check(path) == check
    path.write_text("[]")
    with pytest.raises(RecordError, match="not a numerical check"):
        read_check(path)
