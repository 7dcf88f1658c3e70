"""The published table of numerical parity (``tab:numeric``) with our numbers beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from rulescope.assays import published
from rulescope.assays.results import Column, Table, Value
from rulescope.core import disk
from rulescope.core.runtime import Identity
from rulescope.numerics.tolerances import Comparison

FOLDER, FILE = "check", "check.json"
"""Where ``rulescope check`` records its result, below a folder of results."""
LABEL = "tab:numeric"


class ParityLine(msgspec.Struct, frozen=True):
    """Our numbers for one line of the published table."""

    name: str
    """As published."""
    precision: str
    """Ours / of the reference."""
    outputs: int
    """Different outputs compared."""
    comparisons: int
    """Over all weights, starts, forms and steps."""
    absolute: float | None
    """Largest absolute error; None if it is not finite."""
    relative: float | None
    """Largest error relative to the scale of its array; likewise."""
    passed: bool


class NumericCheck(msgspec.Struct, frozen=True):
    """The recorded result of ``rulescope check``."""

    lines: tuple[ParityLine, ...] = msgspec.field(name="families")
    """Lines of the published table."""
    rules: tuple[str, ...]
    """Rules whose weights were used."""
    runtime: Identity
    """Versions and machine, on which the last digits of float32 depend."""
    passed: bool
    """Whether every comparison, also of kinds that were not published, is within tolerance."""

    def to_json(self) -> bytes:
        """Return the file of this check."""
        return disk.as_json(self)


def _of(*kinds: str, precision: str = "float32") -> Callable[[Comparison], bool]:
    return lambda item: item.kind in kinds and item.precision == precision


def _first_parameters(item: Comparison) -> bool:
    """Return whether these are parameters after one step of the optimiser, as was published."""
    return _of("updated parameters")(item) and "/step0: params/" in item.output


PUBLISHED: dict[str, tuple[str, Callable[[Comparison], bool]]] = {
    "Forward outputs": ("float32 / float32", _of("forward")),
    "Inner outputs/gradients": ("float32 / float32", _of("inner outputs", "gradients")),
    "Updated parameters": ("float32 / float32", _first_parameters),
    "Value estimator": ("float64 / float64", _of("value estimator", precision="float64")),
    "Meta-gradient": ("float32 / float32", _of("meta-gradient")),
    "Float32/float64 control": ("float32 / float64, both ours", _of("float32/float64")),
}
"""The published lines in the printed order: the precision of ours / of the reference, and whether a
comparison belongs to the line."""


def summarise_check(
    found: Sequence[Comparison], rules: Sequence[str], runtime: Identity
) -> NumericCheck:
    """Return the published lines of ``found``; those without comparisons are left out."""
    lines = []
    for name, (precision, belongs) in PUBLISHED.items():
        items = [item for item in found if belongs(item)]
        if items:
            lines.append(
                ParityLine(
                    name,
                    precision,
                    outputs=len({item.output.rpartition(": ")[2] for item in items}),
                    comparisons=len(items),
                    absolute=_largest(item.absolute for item in items),
                    relative=_largest(item.relative for item in items),
                    passed=all(item.passed for item in items),
                )
            )
    passed = all(item.passed for item in found)
    return NumericCheck(tuple(lines), tuple(rules), runtime, passed)


def _largest(errors: Iterable[float]) -> float | None:
    largest = float(np.max(list(errors)))  # a NaN is the largest
    return largest if np.isfinite(largest) else None


def read_check(path: Path) -> NumericCheck:
    """Return the check that :meth:`NumericCheck.to_json` wrote."""
    return disk.read_json(path, NumericCheck, "a numerical check")


def numeric_table(check: NumericCheck) -> Table:
    """Return the published lines with their outputs and largest error, published and ours."""
    printed = published.estimates("check")
    rows: list[tuple[Value, ...]] = [
        (
            ours.name,
            ours.precision,
            int(printed[f"outputs/{ours.name}"].value),
            _scientific(printed[f"error/{ours.name}"].value),
            ours.outputs,
            ours.comparisons,
            _scientific(ours.absolute),
            _scientific(ours.relative),
        )
        for ours in check.lines
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
        "Precision: ours / of the reference. Published: another port on other inputs, so outputs "
        "and errors are of the same kind but not of the same arrays. Ours: "
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
