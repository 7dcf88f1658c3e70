"""agent-identity: candidates with a known truth, and lifetimes shared with E1 and E3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from rulescope.assays import ASSAYS, Selection, narrowed
from rulescope.assays.frame import Floats
from rulescope.assays.identity.agent_identity import (
    CANDIDATES,
    CELLS,
    FLIP,
    LEAST,
    READOUTS,
    Judged,
    analyse,
    verdict,
)
from rulescope.assays.results import Results
from rulescope.assays.subject import make_subject
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import ActionFlip
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.run_spec import RunSpec

from .lives import Labels, lived

ASSAY = ASSAYS["agent-identity"]
PAPER = ASSAY.budget("paper")
REFERENCE_INDEXED = {
    "live-0.001": [0.96, 0.51, 0.7, 0.2, 0.9, 0.95, 0.85, 0.99, 0.6, 0.8, 0.9, 0.92],
    "pin-0.1": [0.26, 0.55, 0.17, 0.3, 0.01, 0.02, 0.6, 0.1, 0.0, 0.05, 0.7, 0.2],
    "hold-0.01": [0.01, 0.0, 0.02, 0.01, 0.6, 0.01, 0.02, 0.0, 0.01, 0.3, 0.02, 0.01],
    FLIP: [0.5, 0.6, 0.55, 0.5, 0.65, 0.6, 0.45, 0.55, 0.6, 0.58, 0.52, 0.62],
}
"""Scores of made-up lifetimes that would print about what was published."""


def score(arm: str, cell: str, seed: int) -> float:
    """Return what a lifetime of ``arm`` scores if ``published`` made the reference-indexed cohort.

    Chained actions fail in two thirds of the pinned lifetimes at scale 1,000.
    """
    if arm == "historical" and cell == "pin-1000":
        return 0.0 if seed % 3 else 0.99
    if cell in REFERENCE_INDEXED and cell != FLIP:
        return REFERENCE_INDEXED[cell][seed]
    return 0.99


def log(labels: Labels, seed: int, rows: Floats) -> dict[str, float | Floats]:
    arm, cell = str(labels["arm"]), str(labels["cell"])
    height: float | Floats = score(arm, cell, seed)
    if cell == FLIP:
        after = np.clip((rows - 1500) / (2 * 1500 * (1 - REFERENCE_INDEXED[FLIP][seed])), 0, 0.97)
        height = np.where(rows <= 1500, 0.99, after)
    return {
        "score": height,
        "rate_score": np.where(rows >= (380 if arm == "historical" else 800), 0.9, 0.1),
        "effective_bins": 2.22,
        "episodes": 8 * rows,
        "mean_return": np.asarray(height) * 1.75 - 0.75,
    }


def state(labels: Labels, run: RunSpec) -> dict[str, Floats]:
    """Return terminal states around zero, shifted at scale 1,000 as published: 17 and 38 radii."""
    rng = np.random.default_rng(run.seed)
    away = float(labels["cell"] == "live-1000")
    cloud = {vector: rng.normal(size=256) for vector in "hc"}  # so their radius is near 16
    return {f"recurrent/{v}": cloud[v] + away * shift for v, shift in (("h", 16.0), ("c", 36.0))}


def results(seeds: int, keep: Callable[[Labels], bool] = lambda _labels: True) -> Results:
    budget = replace(PAPER, seeds=seeds, arms=("published", "historical"))
    return analyse(
        lived(
            ASSAY,
            budget,
            lambda labels, seed, rows: log(labels, seed, rows) if keep(labels) else None,
            state,
        )
    )


def test_the_agent_that_made_a_cohort_fits_it_and_the_other_is_excluded() -> None:
    found = results(12)
    said = dict(note.split(" cohort: ", 1) for note in found.notes if " cohort: " in note)
    assert said["reference-indexed"].startswith("of these agents only published fits")
    assert "excluded: historical (E1 score, pin at 1000" in said["reference-indexed"]
    assert said["historical"].startswith("of these agents only historical fits")
    assert "excluded: published (exposure: iterations to 0.8" in said["historical"]


def test_a_cell_in_which_most_fail_is_improbable() -> None:
    found = results(12).estimates
    assert found["probability/score/pin-1000/historical"].value < 0.01
    assert found["probability/score/pin-1000/published"].value > 0.5


@pytest.mark.parametrize("seeds", [1, 2, 5])
def test_few_seeds_decide_nothing(seeds: int) -> None:
    """Not even seeds 1 and 2, of which pinned lifetimes of the chained agent fail."""
    said = [note for note in results(seeds).notes if " cohort: " in note]
    assert said[0] == "reference-indexed cohort: undecided between published and historical"
    assert "excluded" not in " ".join(said)


def test_one_condition_alone_decides_nothing() -> None:
    found = results(12, lambda labels: labels["cell"] == "live-1")
    table = next(each for each in found.tables if each.label.endswith("verdicts"))
    assert {row[-1] for row in table.rows if row[0] == "reference-indexed"} == {
        "too few seeds to tell"
    }


def test_lifetimes_of_another_length_are_not_placed() -> None:
    budget = replace(PAPER, seeds=6, iterations=3000, conditions=("live-1", "pin-1000"))
    found = analyse(lived(ASSAY, budget, log, state))
    assert [table.label for table in found.tables] == ["agent-identity-values"]
    assert any(note.startswith("not placed among the published numbers") for note in found.notes)
    whole = analyse(lived(ASSAY, replace(budget, iterations=2000), log, state))
    assert len(whole.tables) == 3


def test_a_candidate_without_lifetimes_is_not_judged() -> None:
    found = results(12, lambda labels: labels["arm"] == "published")
    table = next(each for each in found.tables if each.label.endswith("verdicts"))
    assert {row[1] for row in table.rows} == {"published"}


@pytest.mark.parametrize(
    ("probability", "n", "standing"),
    [
        (0.04, LEAST, "excluded"),
        (0.06, LEAST, "fits"),
        (0.06, LEAST - 1, "too few seeds to tell"),
    ],
)
def test_standing_follows_from_probability_and_seeds(
    probability: float, n: int, standing: str
) -> None:
    assert Judged("a", 3, n, probability, ("score", "pin-1000")).standing == standing


def judged(arm: str, standing: str) -> Judged:
    """Return a candidate with this standing."""
    probability = {"excluded": 0.01}.get(standing, 0.5)
    return Judged(arm, 3, LEAST if standing == "fits" else 2, probability, ("score", "pin-1000"))


@pytest.mark.parametrize(
    ("standings", "said"),
    [
        (("fits", "excluded"), "of these agents only a fits; excluded: b"),
        (("fits", "fits"), "undecided between a and b"),
        (("fits", "few"), "undecided between a and b"),
        (("few", "excluded"), "only a is left, with too few seeds to say that it fits"),
        (("excluded", "excluded"), "none of these agents fits; excluded: a"),
    ],
)
def test_the_sentence_says_no_more_than_the_standings(
    standings: tuple[str, ...], said: str
) -> None:
    candidates = [judged(arm, each) for arm, each in zip("ab", standings, strict=True)]
    assert verdict("early", candidates).startswith(f"early cohort: {said}")


def test_lifetimes_are_those_of_the_scale_and_change_assays() -> None:
    grid = {(c.labels["cell"], c.labels["arm"]): c.runs for c in ASSAY.grid(PAPER)}
    for agent in AGENTS:
        if agent not in CANDIDATES:
            continue
        e1 = narrowed(
            ASSAYS["E1"], ASSAYS["E1"].budget("paper"), Selection(agent=agent, tasks=["catch"])
        )
        runs = {(c.labels["arm"], c.labels["scale"]): c.runs for c in ASSAYS["E1"].grid(e1)}
        for cell, place in CELLS.items():
            if cell != FLIP:
                assert [run.id for run in grid[cell, agent]] == [run.id for run in runs[place]]
    flip = grid[FLIP, "published"][0]
    assert (flip.iterations, flip.change) == (3000, ActionFlip(at=1500))
    e3 = ASSAYS["E3"]
    own = narrowed(
        e3,
        e3.budget("paper"),
        Selection(arms=["rule"], conditions=["action-flip"], tasks=["catch"]),
    )
    assert flip.id == e3.grid(own)[0].runs[0].id


def test_unmasked_differs_from_published_in_its_mask_alone() -> None:
    unmasked = {
        run.learner for c in ASSAY.grid(PAPER) if c.labels["arm"] == "unmasked" for run in c.runs
    }
    (learner,) = unmasked
    assert isinstance(learner, Disco)
    masked = msgspec.structs.replace(learner.conventions, loss_mask="in-trajectory")
    assert masked == AGENTS["published"] != learner.conventions


def test_every_readout_has_a_published_number_and_a_condition() -> None:
    for readout in READOUTS.values():
        assert np.isfinite(readout.printed.value)
        assert set(readout.cells) <= set(CELLS)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (Selection(agent="historical"), "--agent: agent-identity compares all"),
        (Selection(scales=[0.1]), "--scales: each cell has its own"),
        (Selection(subject=make_subject("sprout")), "--rule: 'sprout' has a learner of its own"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: Selection, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        ASSAY.grid(narrowed(ASSAY, PAPER, asked))


def test_other_rules_and_lengths_are_not_placed_among_the_published() -> None:
    budget = replace(PAPER, seeds=3, arms=("published",), subject=make_subject("random:0"))
    found = analyse(lived(ASSAY, budget, log, state))
    assert [table.label for table in found.tables] == ["agent-identity-values"]
    assert not [note for note in found.notes if " cohort: " in note]
