"""P1, interface-state: is what the state does a matter of the value interface?

Each interface lives with its state live and pinned, at small, unit and large reward scales.
"""

from __future__ import annotations

from collections.abc import Mapping

from rulescope.assays.analysis import (
    CORE_DRAWS,
    SCORE,
    absent,
    adjusted,
    below,
    by_seed,
    missing,
    noted,
    summed_up,
    tail20,
)
from rulescope.assays.assay import Assay, Budget, Cell, learner, lifetime
from rulescope.assays.comparison_families import INTERFACE_STATE, STATE_EFFECTS, STATE_INTERACTIONS
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import Column, Results, Table, Value, scale_label
from rulescope.spec.run_spec import Pin
from rulescope.stats import (
    Estimate,
    estimate,
    estimates,
    interaction_differences,
    paired_differences,
    seed_blocks,
    trimmed_mean,
)

INTERFACES = {"default": "Default", "support30": "S30", "linear": "Linear"}
ARMS = tuple(f"{name}{end}" for name in INTERFACES for end in ("", "-pin"))
SCALES = (1e-3, 1.0, 1e3)
TAIL = SCORE.format(part="fifth")


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every arm and scale of ``budget``."""
    return [
        Cell(
            {"arm": arm, "scale": scale},
            tuple(
                lifetime(
                    budget,
                    learner(budget, interface=arm.removesuffix("-pin")),
                    seed,
                    scale=scale,
                    interventions=(Pin(carrier="recurrent"),) if arm.endswith("-pin") else (),
                )
                for seed in range(budget.seeds)
            ),
        )
        for arm in budget.arms
        for scale in budget.scales
    ]


def analyse(frame: Frame) -> Results:
    """Estimate every cell, what the state does in each interface, and how that differs."""
    scores = tail20(frame)
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    with noted(notes):
        cells = estimates(scores, seed_blocks(len(frame.seeds), CORE_DRAWS))
        for i, arm in enumerate(frame.axes["arm"]):
            for j, scale in enumerate(frame.axes["scale"]):
                found[f"score/{arm}/{scale_label(float(scale))}"] = cells[i, j]
        contrasts, effects = _contrasts(frame, scores)
        found |= contrasts
    series = {**by_seed(frame, scores, "score"), **effects}
    return summed_up("P1", frame, found, _tables(frame, found), notes, series)


def _contrasts(frame: Frame, scores: Floats) -> tuple[dict[str, Estimate], dict[str, Floats]]:
    """Estimate every effect and interaction, alone and as a member of the family.

    And return the effects of every seed.
    """
    found: dict[str, Estimate] = {}
    series: dict[str, Floats] = {}
    for name in (*STATE_EFFECTS, *STATE_INTERACTIONS):
        found |= {name: absent(), f"{name}/family": absent(INTERFACE_STATE.size)}
    arms = dict(zip(frame.axes["arm"], scores, strict=True))
    both = [name for name in INTERFACES if name in arms and f"{name}-pin" in arms]
    for j, scale in enumerate(frame.axes["scale"]):
        label = scale_label(float(scale))
        pairs = {name: (arms[name][j], arms[f"{name}-pin"][j]) for name in both}
        for name, pair in pairs.items():
            effects = paired_differences(*pair)
            found |= _both_ways(f"effect/{name}/{label}", effects)
            series[f"seeds/effect/{name}/{label}"] = effects
            if name != "default" and "default" in pairs:
                each = interaction_differences(*pair, *pairs["default"])
                found |= _both_ways(f"interaction/{name}/{label}", each)
    return found, series


def _both_ways(name: str, each: Floats) -> dict[str, Estimate]:
    """Estimate the mean of per-seed differences [n] pointwise and within the family."""
    blocks = seed_blocks(each.size, CORE_DRAWS)
    return {
        name: estimate(each, blocks, trimmed_mean),
        f"{name}/family": estimate(each, blocks, trimmed_mean, INTERFACE_STATE.size),
    }


def _tables(frame: Frame, found: Mapping[str, Estimate]) -> tuple[Table, ...]:
    made = (_complete(frame, found), _scores(frame, found))
    return tuple(table for table in made if table.rows)


def _complete(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    named = [(f"effect/{name}", f"Δ {shown}") for name, shown in INTERFACES.items()]
    named += [
        (f"interaction/{name}", f"Δ {shown} − Δ Default")
        for name, shown in INTERFACES.items()
        if name != "default"
    ]
    rows: list[tuple[Value, ...]] = []
    for prefix, shown in named:
        for scale in frame.axes["scale"]:
            label = scale_label(float(scale))
            alone = found.get(f"{prefix}/{label}", absent())
            if alone.n:
                rows.append((shown, label, alone, found[f"{prefix}/{label}/family"]))
    return Table(
        "tab:p1-complete",
        "What the state does in each value interface (Δ: live minus pinned)",
        (
            Column("Contrast"),
            Column("Scale"),
            Column("Estimate [pointwise 95%]", 4),
            Column(f"Estimate [family-{INTERFACE_STATE.size} interval]", 4),
        ),
        tuple(rows),
        below(
            frame,
            f"differences of each seed, then the trimmed mean; {TAIL}",
            CORE_DRAWS,
            f"pointwise and {adjusted(INTERFACE_STATE)}",
        ),
    )


def _scores(frame: Frame, found: Mapping[str, Estimate]) -> Table:
    labels = [scale_label(float(scale)) for scale in frame.axes["scale"]]
    return Table(
        "tab:p1-scores",
        "Scores of every interface with its state live and pinned",
        (Column("Arm"), *(Column(f"Scale {label}", 4) for label in labels)),
        tuple(
            (str(arm), *(found[f"score/{arm}/{label}"] for label in labels))
            for arm in frame.axes["arm"]
        ),
        below(frame, TAIL, CORE_DRAWS),
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
    figures=("interface-state",),
)
