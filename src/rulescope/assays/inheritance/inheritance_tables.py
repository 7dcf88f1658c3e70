"""The published tables of E2, with our numbers in them and only what was run."""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import CORE_DRAWS, SCORE, adjusted, below
from rulescope.assays.assay import prefix
from rulescope.assays.comparison_families import PRIMARY
from rulescope.assays.frame import Frame
from rulescope.assays.results import Column, Table, Value, scale_label
from rulescope.stats import Estimate

ARM_NAMES = {
    "live": "Live",
    "freeze": "Own freeze at {prefix}",
    "match-natural": "Matched / init",
    "cross-natural": "Cross / init",
    "random-natural": "Random / init",
    "match-clamp": "Matched / clamp",
    "cross-clamp": "Cross / clamp",
    "random-clamp": "Random / clamp",
    "placebo": "Placebo",
    "null": "Null rule",
    "permute-natural": "Own permuted at {prefix} / init",
    "permute-clamp": "Own permuted at {prefix} / clamp",
}
"""In the order of the long table."""
TAIL = SCORE.format(part="fifth")


def tables(frame: Frame, estimates: Mapping[str, Estimate]) -> tuple[Table, ...]:
    """Return every table of E2 that has a row."""
    made = (_arms(frame, estimates), _cells(frame, estimates), _interactions(frame, estimates))
    return tuple(table for table in made if table.rows)


def _scales(frame: Frame) -> list[str]:
    return [scale_label(float(scale)) for scale in frame.axes["scale"]]


def _arm(arm: str, frame: Frame) -> str:
    return ARM_NAMES[arm].format(prefix=prefix(frame.iterations))


def _note(frame: Frame) -> str:
    return (
        f"{TAIL}; donors live for {prefix(frame.iterations):,} iterations; init: inherited once "
        "and let go, clamp: restored after every iteration"
    )


def _arms(frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    scales = _scales(frame)
    return Table(
        "tab:e2-arms",
        "Scores by what is inherited, at each recipient scale",
        (Column("Condition"), *(Column(f"{scale} [95% CI]", 4) for scale in scales)),
        tuple(
            (_arm(str(arm), frame), *(estimates[f"score/{scale}/{arm}"] for scale in scales))
            for arm in frame.axes["arm"]
        ),
        below(frame, _note(frame), CORE_DRAWS),
    )


def _cells(frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scale in _scales(frame):
        for arm in (arm for arm in ARM_NAMES if arm in frame.axes["arm"]):
            cell = estimates[f"score/{scale}/{arm}"]
            rows.append((scale, _arm(arm, frame), cell.n, cell))
    return Table(
        "v5:tab:app-transplant",
        "Scores of all transplants",
        (
            Column("Recipient scale"),
            Column("Condition"),
            Column("n"),
            Column("Tail score [95% interval]", 5),
        ),
        tuple(rows),
        below(frame, _note(frame), CORE_DRAWS),
    )


def _interactions(frame: Frame, estimates: Mapping[str, Estimate]) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scale in _scales(frame):
        found = estimates.get(f"interaction/{scale}")
        if found is not None and not found.missing:
            rows.append((scale, found.n, found, estimates[f"interaction-iqm/{scale}"]))
    return Table(
        "tab:e2-interaction",
        "How much more the donor's scale matters under a clamp than in a natural transplant",
        (
            Column("Recipient scale"),
            Column("n"),
            Column("Interaction, trimmed mean [adjusted CI]", 5),
            Column("Interaction, exact IQM [adjusted CI]", 5),
        ),
        tuple(rows),
        below(
            frame,
            "(match clamp − cross clamp) − (match init − cross init) of each seed, then the mean "
            f"over seeds; {TAIL}",
            CORE_DRAWS,
            adjusted(PRIMARY),
        ),
    )
