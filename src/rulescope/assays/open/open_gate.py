"""The capability gate of OPEN: did the live learner learn at all, in every single lifetime?

A contrast of the carry says something only about a learner that has learned. So before any contrast
each cell is checked: every live lifetime must end with a policy that earns more than the policy it
started from and more than the random policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rulescope.assays.estimates import Estimates, label_text
from rulescope.assays.frame import Bools, Floats
from rulescope.assays.results import Column, Table
from rulescope.stats import Estimate, wilson

REFERENCES = ("initial", "random")
"""The policies that a live lifetime must end above."""
PUBLISHED = 1.0
"""Share of live lifetimes above both references in each of the six published cells."""

Place = tuple[str, float]
"""A game and a reward scale."""


def gates(rates: Mapping[tuple[str, str, float], Floats], places: Sequence[Place]) -> Estimates:
    """Return the share of live lifetimes above both references, and above each of them.

    ``rates`` are reward rates [seeds] by arm, game and scale. Quantities are ``gate``,
    ``gate-initial`` and ``gate-random``; a cell without values has none.
    """
    found = Estimates()
    for task, scale in places:
        cell = {arm: rates.get((arm, task, scale)) for arm in ("live", *REFERENCES)}
        values = [value for value in cell.values() if value is not None]
        if len(values) < len(cell):
            continue
        live, *references = values
        known: Bools = np.asarray(np.isfinite(np.stack(values)).all(axis=0))
        kinds = {"gate": references}
        kinds |= {f"gate-{name}": [one] for name, one in zip(REFERENCES, references, strict=True)}
        for kind, some in kinds.items():
            share = share_above(live[known], [one[known] for one in some])
            if share is not None:
                found.add(kind, share, {"task": task, "scale": scale})
    return found


def share_above(values: Floats, references: Sequence[Floats]) -> Estimate | None:
    """Return the share of lifetimes [seeds] above every one of ``references`` [seeds].

    Seeds without a value or a reference do not count; None if no seed is left.
    """
    known: Bools = np.asarray(np.isfinite(np.stack([values, *references])).all(axis=0))
    if not known.any():
        return None
    above = [values[known] > reference[known] for reference in references]
    return wilson(int(np.logical_and.reduce(above).sum()), int(known.sum()))


def passed(gate: Estimate) -> bool:
    """Tell whether every lifetime behind a share is above its references."""
    return gate.value == 1.0


def summary(found: Estimates, places: Sequence[Place], names: Mapping[str, str]) -> str:
    """Return the result of the gate over all cells; empty if no cell has one.

    ``names`` are those of the games.
    """
    shares = {place: found.lookup("gate", task=place[0], scale=place[1]) for place in places}
    cells = {place: share for place, share in shares.items() if share is not None}
    if not cells:
        return ""
    clear = sum(passed(gate) for gate in cells.values())
    failed = [
        f"{names[task]}, scale {scale:g} ({_count(gate)})"
        for (task, scale), gate in cells.items()
        if not passed(gate)
    ]
    above = "every live lifetime ends above its initial policy and above the random policy"
    text = f"capability gate passed in {clear} of {len(cells)} cells (a cell passes if {above})"
    return f"{text}; not passed in {'; '.join(failed)}" if failed else text


def table(found: Estimates, places: Sequence[Place], names: Mapping[str, str], note: str) -> Table:
    """Return the gate cell by cell; ``note`` stands below it."""
    rows = []
    for task, scale in places:
        kinds = ("gate-initial", "gate-random", "gate")
        shares = [found.lookup(kind, task=task, scale=scale) for kind in kinds]
        known = [share for share in shares if share is not None]
        if len(known) == len(kinds):
            counts = [f"{round(share.value * share.n)}/{share.n}" for share in known]
            result = "passed" if passed(known[-1]) else "failed"
            rows.append((names[task], label_text(scale), *counts, result))
    return Table(
        "open-gate",
        "OPEN: the capability gate, before any contrast",
        (
            Column("Game"),
            Column("Scale"),
            Column("Live above initial"),
            Column("Live above random"),
            Column("Above both"),
            Column("Gate"),
        ),
        tuple(rows),
        note,
    )


def _count(gate: Estimate) -> str:
    return f"{round(gate.value * gate.n)} of {gate.n}"
