"""P1, interface-state: does the effect of the rule's state depend on the value interface?

Each interface runs with its state live and pinned, at small, unit and large reward scales.
"""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import (
    CORE_DRAWS,
    SCORE,
    adjusted,
    collect_tail_warnings,
    estimate_cells,
    make_results,
    missing_estimate,
    note_missing,
    table_note,
    tail20,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import Budget
from rulescope.assays.comparison_families import INTERFACE_STATE
from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Cell, make_run, subject_learner, sweep
from rulescope.assays.pivot import Entry, Index, keep_filled, known, names, pivot, pivot_table
from rulescope.assays.results import Column, Results, Table, Value
from rulescope.run_spec import Pin, RunSpec
from rulescope.stats import (
    estimate,
    interaction_differences,
    paired_differences,
    seed_blocks,
    trimmed_mean,
)

INTERFACES = {"default": "Default", "support30": "S30", "linear": "Linear"}
ARMS = tuple(f"{name}{end}" for name in INTERFACES for end in ("", "-pin"))
SCALES = (1e-3, 1.0, 1e3)
CONTRASTED = {"effect": ("default", "support30", "linear"), "interaction": ("support30", "linear")}
"""Live minus pinned in each interface, and how much that is more than with the default one."""
TAIL = SCORE.format(part="fifth")


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every arm and scale of ``budget``."""

    def runs(at: Mapping[str, Label]) -> list[RunSpec]:
        arm, scale = str(at["arm"]), float(at["scale"])
        subject = subject_learner(budget, interface=arm.removesuffix("-pin"))
        done = (Pin(carrier="recurrent"),) if arm.endswith("-pin") else ()
        return [
            make_run(budget, subject, seed, scale=scale, interventions=done)
            for seed in range(budget.seeds)
        ]

    return sweep({"arm": budget.arms, "scale": budget.scales}, runs)


def analyse(frame: Frame) -> Results:
    """Estimate every cell, what the state does in each interface, and how that differs."""
    scores = tail20(frame)
    notes = note_missing(frame)
    with collect_tail_warnings(notes):
        found = estimate_cells(frame, "score", scores, CORE_DRAWS)
        found.update(_contrasts(frame, scores))
    tables = keep_filled(_complete(frame, found), _scores(frame, found))
    return make_results("P1", frame, found, tables, notes)


def _contrasts(frame: Frame, scores: Floats) -> Estimates:
    """Estimate every effect and interaction, alone and as a member of the family.

    Those of the published scales are planned, whether they were run or not.
    """
    found = Estimates()
    for quantity, interfaces in CONTRASTED.items():
        for interface in interfaces:
            for planned in SCALES:
                _add_both(found, quantity, interface, planned, None)
    arms = dict(zip(frame.axes["arm"], scores, strict=True))
    both = [name for name in INTERFACES if name in arms and f"{name}-pin" in arms]
    for j, scale in enumerate(frame.axes["scale"]):
        pairs = {name: (arms[name][j], arms[f"{name}-pin"][j]) for name in both}
        for name, pair in pairs.items():
            _add_both(found, "effect", name, scale, paired_differences(*pair))
            if name != "default" and "default" in pairs:
                each = interaction_differences(*pair, *pairs["default"])
                _add_both(found, "interaction", name, scale, each)
    return found


def _add_both(
    found: Estimates, quantity: str, interface: str, scale: Label, each: Floats | None
) -> None:
    """Add the mean of per-seed differences [seeds], pointwise and within the family."""
    at = {"arm": interface, "scale": scale}
    for labels, family in ((at, 1), ({**at, "level": "family"}, INTERFACE_STATE.size)):
        if each is None:
            found.add(quantity, missing_estimate(family), labels)
            continue
        one = estimate(each, seed_blocks(each.size, CORE_DRAWS), trimmed_mean, family)
        found.add(quantity, one, labels, seeds=each)


def _complete(frame: Frame, found: Estimates) -> Table:
    scale = Index("Scale", "scale", names(frame.axes["scale"]))
    headings = ("Estimate [pointwise 95%]", f"Estimate [family-{INTERFACE_STATE.size} interval]")
    columns = [Column(heading, 4) for heading in headings]
    rows: list[tuple[Value, ...]] = []
    for quantity, interfaces in CONTRASTED.items():
        less = "" if quantity == "effect" else " − Δ Default"
        shown: dict[Label, str] = {name: f"Δ {INTERFACES[name]}{less}" for name in interfaces}
        entries = (Entry(columns[0], quantity), Entry(columns[1], quantity, {"level": "family"}))
        rows += pivot(found, (Index("Contrast", "arm", shown), scale), entries, known)
    return Table(
        "tab:p1-complete",
        "What the state does in each value interface (Δ: live minus pinned)",
        (Column("Contrast"), Column("Scale"), *columns),
        tuple(rows),
        table_note(
            frame,
            f"differences of each seed, then the trimmed mean; {TAIL}",
            CORE_DRAWS,
            f"pointwise and {adjusted(INTERFACE_STATE)}",
        ),
    )


def _scores(frame: Frame, found: Estimates) -> Table:
    scales = names(frame.axes["scale"])
    return pivot_table(
        "tab:p1-scores",
        "Scores of every interface with its state live and pinned",
        found,
        [Index("Arm", "arm", names(frame.axes["arm"]))],
        [Entry(Column(f"Scale {t}", 4), "score", {"scale": s}) for s, t in scales.items()],
        table_note(frame, TAIL, CORE_DRAWS),
    )


PRESETS = {
    "smoke": Budget(seeds=1, iterations=60, arms=("default", "default-pin"), scales=(1e-3, 1e3)),
    "quick": Budget(seeds=2, iterations=600, arms=ARMS, scales=(1e-3,)),
    "standard": Budget(seeds=4, iterations=2000, arms=ARMS, scales=SCALES),
    "paper": Budget(seeds=12, iterations=2000, arms=ARMS, scales=SCALES),
}

ASSAY = Assay(
    id="P1",
    name="interface-state",
    question="Is what the rule's state does a matter of the value interface?",
    arms=ARMS,
    tasks=("catch",),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    tables=("tab:p1-complete",),
    figures=("interface-state",),
)
