"""The comparison of DPO, LPO and LPG with their original programs, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rulescope.assays.results import Column, Table, Value
from rulescope.numerics.tolerances import Comparison

FOLDER, LABEL = "further-rules", "further-rules"
"""Where ``rulescope check rules`` writes the table, below a folder of results."""


def rule_of_comparison(item: Comparison) -> str:
    """Return the rule that ``item`` is about: the first word of its output."""
    return item.output.partition(":")[0].partition("/")[0]


def further_table(found: Sequence[Comparison]) -> Table:
    """Return a row for each rule, kind of comparison and precision."""
    groups: dict[tuple[str, str, str], list[Comparison]] = {}
    for item in found:
        kind = item.kind.removeprefix("rule ")
        groups.setdefault((rule_of_comparison(item), kind, item.precision), []).append(item)
    rows: list[tuple[Value, ...]] = [
        (
            *key,
            len(items),
            f"{max(item.absolute for item in items):.1e}",
            f"{max(item.relative for item in items):.1e}",
            f"{items[0].tolerance:.0e}",
            "yes" if all(item.passed for item in items) else "NO",
        )
        for key, items in groups.items()
    ]
    return Table(
        LABEL,
        "DPO, LPO and LPG against their original programs, on the same inputs",
        (
            Column("Rule"),
            Column("Compared"),
            Column("Precision"),
            Column("Arrays"),
            Column("Max. absolute error"),
            Column("Max. relative error"),
            Column("Tolerance"),
            Column("Agrees"),
        ),
        tuple(rows),
        "Value: losses, and the outputs of LPG's network. Gradient: at log-probabilities, logits, "
        "predictions, or parameters. Update: parameters after one to three updates of the learner "
        "that runs (float32), or of a table of logits and predictions under LPG. Weights are "
        "random. In float32 an error is relative to 1 or to the largest entry of its array.",
    )
