"""E2, inheritance: does it matter from which lifetime a learner inherits the rule's state?

A donor runs for a fifth of a lifetime, at the recipient's own reward scale (match) or at its
reciprocal (cross), in a world of its own. The recipient starts from the donor's terminal state
(natural), or is reset to it after every iteration (clamp).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    trajectories,
)
from rulescope.assays.assay import Assay
from rulescope.assays.budget import LARGEST_SCALE, Budget, prefix
from rulescope.assays.comparison_families import PRIMARY
from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.grid import Cell, make_run, subject_learner, sweep
from rulescope.assays.pivot import Entry, Index, count_of, keep_filled, known, names, pivot_table
from rulescope.assays.results import Column, Results, Table
from rulescope.assays.scale.scale_arms import ARMS as SCALE_ARMS
from rulescope.core.errors import SpecError
from rulescope.learners.learner_config import LearnerSpec, adapt_to_world
from rulescope.run_spec import (
    Freeze,
    Intervention,
    Mode,
    Permute,
    Placebo,
    RandomState,
    RunSpec,
    Transplant,
)
from rulescope.stats import estimate, exact_iqm, interaction_differences, seed_blocks, trimmed_mean

TASK = "catch"
SCALES = (1e-3, 1e3)
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
"""Added to the seed for the donor's world, so that the recipient inherits no memory of its own."""
PANEL = range(4)
"""Seeds of the donors that a random state is modelled on."""
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
_RANDOM = "a state drawn to resemble the donors'"
_PERMUTED = "the units of the own state shuffled at a fifth of the lifetime"
ARM_WORDS = {
    "freeze": "the own state, kept from a fifth of the lifetime on",
    "random-natural": _RANDOM,
    "random-clamp": _RANDOM,
    "placebo": SCALE_ARMS["placebo"].words,
    "null": SCALE_ARMS["null"].words,
    "permute-natural": _PERMUTED,
    "permute-clamp": _PERMUTED,
}
"""Phrases that explain arms below figures."""
TAIL = SCORE.format(part="fifth")


def grid(budget: Budget) -> list[Cell]:
    """Return a cell for every recipient scale and arm of ``budget``."""
    require_recipients(budget.scales)

    def runs(at: Mapping[str, Label]) -> list[RunSpec]:
        arm, scale = str(at["arm"]), float(at["scale"])
        recipient = subject_learner(budget, null=arm == "null")
        task = budget.one_task(TASK, "E2")
        return [
            make_run(
                budget,
                recipient,
                seed,
                scale=scale,
                task=task,
                interventions=_interventions(budget, arm, scale, seed),
            )
            for seed in range(budget.seeds)
        ]

    return sweep({"scale": budget.scales, "arm": budget.arms}, runs)


def require_recipients(scales: Iterable[float]) -> None:
    """Raise an error unless donors of the reciprocal of every one of ``scales`` can be others."""
    for scale in scales:
        if scale == 1.0:
            raise SpecError(
                "--scales: at 1 a donor of the reciprocal scale is a donor of the same scale; "
                "choose a recipient scale other than 1, such as 0.001"
            )
        if reciprocal(scale) > LARGEST_SCALE:
            raise SpecError(
                f"--scales: the reciprocal of {scale:g}, for donors, is more than {LARGEST_SCALE:g}"
            )


def _interventions(budget: Budget, arm: str, scale: float, seed: int) -> tuple[Intervention, ...]:
    """Return the interventions of ``arm``."""
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
    return donor_run(budget, subject_learner(budget), scale, seed, budget.subject.kept)


def donor_run(
    budget: Budget, learner: LearnerSpec, scale: float, seed: int, keep: tuple[str, ...]
) -> RunSpec:
    """Return the donor run of ``learner``, whose record has the carriers ``keep``."""
    world = budget.world(budget.one_task(TASK, "E2"))
    return RunSpec(
        learner=adapt_to_world(learner, world),
        environment=world,
        scale=scale,
        iterations=budget.prefix,
        log_every=min(budget.log_every, budget.prefix),
        keep=keep,
        seed=seed,
        world_seed=seed + DONOR_WORLD,
    )


def panel(budget: Budget, scale: float) -> tuple[RunSpec, ...]:
    """Return the donors that a random state is modelled on.

    They come from both scales, so that a state drawn like them has the usual magnitude of donors
    but belongs to neither scale. They are the same eight whatever seeds and arms were asked for:
    the identity of a run must not depend on how its grid was narrowed.
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
    notes = note_missing(frame)
    with collect_tail_warnings(notes):
        found = estimate_cells(frame, "score", scores, CORE_DRAWS)
        series = {"iteration": frame.iteration, **trajectories(frame, "score", CORE_DRAWS)}
        found.update(_interactions(frame, scores))
    made = (_arms(frame, found), _cells(frame, found), _interaction_table(frame, found))
    return make_results("E2", frame, found, keep_filled(*made), notes, series)


def _interactions(frame: Frame, scores: Floats) -> Estimates:
    """Estimate, for each scale, how much more the donor's scale matters under a clamp.

    Those of the published scales are planned, whether they were run or not.
    """
    found = Estimates()
    arms, scales = frame.axes["arm"], frame.axes["scale"]
    complete = set(CROSSED) <= set(arms)
    blocks = seed_blocks(len(frame.seeds), CORE_DRAWS)
    for scale in dict.fromkeys((*SCALES, *(scales if complete else ()))):
        each = None
        if complete and scale in scales:
            where = [arms.index(arm) for arm in CROSSED]
            each = interaction_differences(*scores[scales.index(scale)][where])
        for quantity, centre in (("interaction", trimmed_mean), ("interaction-iqm", exact_iqm)):
            one = (
                missing_estimate(PRIMARY.size)
                if each is None
                else estimate(each, blocks, centre, PRIMARY.size)
            )
            found.add(quantity, one, {"scale": scale}, seeds=each)
    return found


def _arm_names(frame: Frame) -> dict[str, str]:
    at = prefix(frame.iterations)
    return {arm: name.format(prefix=at) for arm, name in ARM_NAMES.items()}


def _note(frame: Frame) -> str:
    words = (
        f"{TAIL}; donors run for {prefix(frame.iterations):,} iterations; init: inherited once "
        "and let go, clamp: restored after every iteration"
    )
    return table_note(frame, words, CORE_DRAWS)


def _arms(frame: Frame, found: Estimates) -> Table:
    scales = names(frame.axes["scale"])
    return pivot_table(
        "tab:e2-arms",
        "Scores by what is inherited, at each recipient scale",
        found,
        [Index("Condition", "arm", names(frame.axes["arm"], _arm_names(frame)))],
        [Entry(Column(f"{t} [95% CI]", 4), "score", {"scale": s}) for s, t in scales.items()],
        _note(frame),
    )


def _cells(frame: Frame, found: Estimates) -> Table:
    arms = [arm for arm in ARM_NAMES if arm in frame.axes["arm"]]
    return pivot_table(
        "v5:tab:app-transplant",
        "Scores of all transplants",
        found,
        (
            Index("Recipient scale", "scale", names(frame.axes["scale"])),
            Index("Condition", "arm", names(arms, _arm_names(frame))),
        ),
        (
            Entry(Column("n"), "score", show=count_of),
            Entry(Column("Tail score [95% interval]", 5), "score"),
        ),
        _note(frame),
    )


def _interaction_table(frame: Frame, found: Estimates) -> Table:
    return pivot_table(
        "tab:e2-interaction",
        "How much more the donor's scale matters under a clamp than in a natural transplant",
        found,
        [Index("Recipient scale", "scale", names(frame.axes["scale"]))],
        (
            Entry(Column("n"), "interaction", show=count_of),
            Entry(Column("Interaction, trimmed mean [adjusted CI]", 5), "interaction"),
            Entry(Column("Interaction, exact IQM [adjusted CI]", 5), "interaction-iqm"),
        ),
        table_note(
            frame,
            "(match clamp − cross clamp) − (match init − cross init) of each seed, then the mean "
            f"over seeds; {TAIL}",
            CORE_DRAWS,
            adjusted(PRIMARY),
        ),
        shown=known,
    )


_FEW = ("live", "match-clamp", "match-natural", "cross-clamp", "cross-natural")

PRESETS = {
    "smoke": Budget(seeds=1, iterations=60, arms=("live", "cross-natural"), scales=SCALES),
    "quick": Budget(seeds=2, iterations=600, arms=_FEW, scales=(1e-3,)),
    "standard": Budget(seeds=4, iterations=2000, arms=PUBLISHED, scales=SCALES),
    "paper": Budget(seeds=12, iterations=2000, arms=PUBLISHED, scales=SCALES),
}

ASSAY = Assay(
    id="E2",
    name="inheritance",
    question="Does it matter from which lifetime a learner inherits the rule's state?",
    arms=(*PUBLISHED, *CONTROLS),
    tasks=(TASK,),
    any_world=True,
    presets=PRESETS,
    grid=grid,
    analyse=analyse,
    tables=(
        "tab:e2-arms",
        "v5:tab:app-transplant",
    ),
    figures=("fig:scale", "fig:detail-inheritance", "orig:scale"),
    arm_words=ARM_WORDS,
)
