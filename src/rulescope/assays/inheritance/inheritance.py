"""E2, inheritance: does it matter from which lifetime a learner inherits the rule's state?

A donor lives for a fifth of a lifetime, at the recipient's own reward scale (match) or at its
reciprocal (cross), in a world of its own. Its terminal state is where the recipient begins
(natural), or what the recipient is brought back to after every iteration (clamp).
"""

from __future__ import annotations

import numpy as np

from rulescope.assays.analysis import CORE_DRAWS, absent, by_seed, missing, noted, summed_up, tail20
from rulescope.assays.assay import LARGEST_SCALE, Assay, Budget, Cell, learner, lifetime
from rulescope.assays.comparison_families import INHERITANCE, PRIMARY
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.inheritance import inheritance_tables
from rulescope.assays.results import Results, scale_label
from rulescope.core.errors import SpecError
from rulescope.spec.run_spec import (
    Freeze,
    Intervention,
    Mode,
    Permute,
    Placebo,
    RandomState,
    RunSpec,
    Transplant,
)
from rulescope.stats import (
    Estimate,
    estimate,
    estimates,
    exact_iqm,
    interaction_differences,
    seed_blocks,
    trimmed_mean,
)

PUBLISHED = (
    "live",
    "freeze",
    "match-clamp",
    "match-natural",
    "cross-clamp",
    "cross-natural",
    "random-clamp",
    "random-natural",
)
CONTROLS = ("placebo", "null", "permute-natural", "permute-clamp")
CROSSED = ("match-clamp", "cross-clamp", "match-natural", "cross-natural")
"""The arms of the interaction, in the order of its definition."""
DONOR_WORLD = 1000
"""Added to the seed for the donor's world, so that what is inherited is no memory of the own."""
PANEL = range(4)
"""Seeds of the donors that a random state is modelled on."""


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every recipient scale and arm of ``budget``."""
    for scale in budget.scales:
        if scale == 1.0:
            raise SpecError(
                "--scales: at 1 a donor of the reciprocal scale is a donor of the same scale; "
                "choose a recipient scale other than 1, such as 0.001"
            )
        if reciprocal(scale) > LARGEST_SCALE:
            raise SpecError(
                f"--scales: the reciprocal of {scale:g}, for donors, is more than {LARGEST_SCALE:g}"
            )
    return [
        Cell(
            {"scale": scale, "arm": arm},
            tuple(_recipient(budget, arm, scale, seed) for seed in range(budget.seeds)),
        )
        for scale in budget.scales
        for arm in budget.arms
    ]


def _recipient(budget: Budget, arm: str, scale: float, seed: int) -> RunSpec:
    return lifetime(
        budget,
        learner(budget, null=arm == "null"),
        seed,
        scale=scale,
        interventions=_interventions(budget, arm, scale, seed),
    )


def _interventions(budget: Budget, arm: str, scale: float, seed: int) -> tuple[Intervention, ...]:
    """Return what is done in ``arm``."""
    if arm in ("live", "null"):
        return ()
    if arm == "freeze":
        return (Freeze(carrier="recurrent", at=budget.prefix),)
    if arm == "placebo":
        return (Placebo(carrier="recurrent"),)
    source, _, last = arm.partition("-")
    mode: Mode = "clamp" if last == "clamp" else "natural"
    if source == "permute":
        return (Permute(carrier="recurrent", at=budget.prefix, mode=mode),)
    if source == "random":
        return (RandomState(carrier="recurrent", donors=panel(budget, scale), mode=mode),)
    origin = scale if source == "match" else reciprocal(scale)
    return (Transplant(carrier="recurrent", donor=donor(budget, origin, seed), mode=mode),)


def donor(budget: Budget, scale: float, seed: int) -> RunSpec:
    """Return the donor of recipients with this ``seed``: the same learner in another world."""
    return RunSpec(
        learner=learner(budget),
        scale=scale,
        iterations=budget.prefix,
        log_every=min(budget.log_every, budget.prefix),
        seed=seed,
        world_seed=seed + DONOR_WORLD,
    )


def panel(budget: Budget, scale: float) -> tuple[RunSpec, ...]:
    """Return the donors that a random state is modelled on.

    They come from both scales, so that a state drawn like them has the magnitude that is usual
    for donors but tells neither scale from the other. They are the same eight whatever seeds and
    arms were asked for: the identity of a run must not depend on how its grid was narrowed.
    """
    low, high = sorted((scale, reciprocal(scale)))
    return tuple(donor(budget, origin, seed) for origin in (low, high) for seed in PANEL)


def reciprocal(scale: float) -> float:
    """Return 1 / ``scale`` such that its own reciprocal is ``scale`` again, to the bit.

    (1 / 1e-5 is 99999.99999999999: recipients at either end would have donors of their own.)
    """
    plain = 1.0 / scale
    short = float(f"{plain:.12g}")
    return short if 1.0 / short == scale else plain


def analyse(frame: Frame) -> Results:
    """Estimate every cell, the interaction at each recipient scale, and learning curves."""
    scores = tail20(frame)
    notes = missing(frame)
    found: dict[str, Estimate] = {}
    series = {"iteration": frame.iteration} | by_seed(frame, scores, "score")
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    with noted(notes):
        cells = estimates(scores, blocks)
        for i, scale in enumerate(frame.axes["scale"]):
            for j, arm in enumerate(frame.axes["arm"]):
                name = f"{scale_label(float(scale))}/{arm}"
                found[f"score/{name}"] = cells[i, j]
                series[f"seeds/score/{name}"] = scores[i, j]
                rows = estimates(frame.log("score", scale=scale, arm=arm).T, blocks)
                series[f"trajectory/{name}"] = np.stack([rows.value, rows.low, rows.high])
                series[f"seeds/{name}"] = scores[i, j]
        found |= _interactions(frame, scores)
    return summed_up("E2", frame, found, inheritance_tables.tables(frame, found), notes, series)


def _interactions(frame: Frame, scores: Floats) -> dict[str, Estimate]:
    """Estimate, for each scale, how much more the donor's scale matters under a clamp."""
    size = PRIMARY.size
    found = {key: absent(size) for name in INHERITANCE for key in (name, _sensitivity(name))}
    arms = frame.axes["arm"]
    if not set(CROSSED) <= set(arms):
        return found
    where = [arms.index(arm) for arm in CROSSED]
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    for scale, values in zip(frame.axes["scale"], scores, strict=True):
        each = interaction_differences(*values[where])
        name = f"interaction/{scale_label(float(scale))}"
        found[name] = estimate(each, blocks, trimmed_mean, size)
        found[_sensitivity(name)] = estimate(each, blocks, exact_iqm, size)
    return found


def _sensitivity(name: str) -> str:
    """Return the key of the same interaction by the exact interquartile mean."""
    return name.replace("interaction/", "interaction-iqm/")


_FEW = ("live", "match-clamp", "match-natural", "cross-clamp", "cross-natural")

PRESETS = {
    "smoke": Budget(seeds=1, iterations=60, arms=("live", "cross-natural"), scales=(1e-3, 1e3)),
    "quick": Budget(seeds=2, iterations=600, arms=_FEW, scales=(1e-3,)),
    "standard": Budget(seeds=4, iterations=2000, arms=PUBLISHED, scales=(1e-3, 1e3)),
    "paper": Budget(seeds=12, iterations=2000, arms=PUBLISHED, scales=(1e-3, 1e3)),
}

ASSAY = Assay(
    id="E2",
    name="inheritance",
    question="Does it matter from which lifetime a learner inherits the rule's state?",
    arms=(*PUBLISHED, *CONTROLS),
    tasks=("catch",),
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    figures=("fig:scale", "fig:detail-inheritance", "orig:scale"),
)
