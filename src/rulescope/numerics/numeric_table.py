"""``tab:numeric`` (also printed as ``v5:tab:app-port-forward``): our check beside the published."""

from __future__ import annotations

from rulescope.assays import published
from rulescope.assays.results import Column, Table, Value
from rulescope.numerics.parity_summary import NumericCheck

LABEL = "tab:numeric"


def numeric_table(check: NumericCheck) -> Table:
    """Return every published family: its outputs and largest error, as published and ours."""
    printed = {row["Test family"]: row for row in published.tables()[LABEL]}
    rows: list[tuple[Value, ...]] = [
        (
            ours.name,
            ours.precision,
            int(printed[ours.name]["Outputs"]),
            _scientific(printed[ours.name]["Max. absolute error"]),
            ours.outputs,
            ours.comparisons,
            _scientific(ours.absolute),
            _scientific(ours.relative),
        )
        for ours in check.families
    ]
    return Table(
        LABEL,
        "This implementation against the original, on the same inputs",
        (
            Column("Test family"),
            Column("Precision"),
            Column("Outputs, published"),
            Column("Max. absolute error, published"),
            Column("Outputs, ours"),
            Column("Comparisons, ours"),
            Column("Max. absolute error, ours"),
            Column("Max. relative error, ours"),
        ),
        tuple(rows),
        "Precision: ours / of what it is compared with. Published: a port of its own, on inputs of "
        "its own, so outputs and errors are of the same kind but not of the same arrays. Ours: "
        f"weights of {', '.join(check.rules)}, in the reference agent; outputs are counted once, "
        "comparisons for each start, step and form of the update. Updated parameters: after one "
        "step of Adam. The last family compares the two precisions of this implementation.",
    )


def _scientific(error: float | None) -> str | None:
    """Return an error with four digits.

    >>> _scientific(0.0002733)
    '2.733e-04'
    """
    return None if error is None else f"{error:.3e}"
