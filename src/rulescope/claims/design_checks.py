"""Exact claims about the design: budgets, counts, families, estimators and references."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import chain

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rulescope.assays import ASSAYS, Cell
from rulescope.assays.analysis import CORE_DRAWS
from rulescope.assays.change.change import DISCO
from rulescope.assays.comparison_families import (
    INTERFACE_STATE,
    MINATAR_CONTEXT,
    OPEN_CARRY,
    PRIMARY,
)
from rulescope.assays.exploration.discovery import CHANCE
from rulescope.claims.exact_result import ExactCheck, Inputs
from rulescope.claims.printed_numbers import PrintedReferences, printed
from rulescope.envs.references import catch_references, tracking_references
from rulescope.envs.world_config import WORLDS, Catch, Tracking
from rulescope.run_spec import Reset, RunSpec
from rulescope.stats import (
    Family,
    exact_iqm,
    normalised_score,
    rows_between,
    tail,
    tail_from,
    trimmed_mean,
)

CENTRAL = ("E1", "E2", "E3")
"""Assays whose interactions are printed as a total."""
COUNTED = ("E1", "E2", "minatar-context", "P1", "E-A5")
"""Assays whose runs are counted together, whatever the arm."""


def check_budgets(_: Inputs) -> ExactCheck:
    """Compare the interactions of the published grids with the printed ones."""
    found = count_interactions()
    return ExactCheck(
        "Interactions of E1, E2 and E3 with their published budgets, of donors, of the long "
        "horizon, and of OPEN's lineages before and after the reset, against the printed numbers.",
        {"x:budget-error": float(sum_differences(found, printed().interactions))},
    )


def count_interactions() -> dict[str, Collection[int]]:
    """Return the interactions of whole assays, and the lengths of single lifetimes, by name.

    A length that all lifetimes share is a set of one number.
    """
    totals = {name: {sum(run.interactions for run in paper_runs(name))} for name in CENTRAL}
    carries = paper_runs("OPEN")
    resets = [
        (run, item.at * run.lanes * run.steps)
        for run in carries
        for item in run.interventions
        if isinstance(item, Reset)
    ]
    return {
        **totals,
        "donor": {donor.interactions for run in paper_runs("E2") for donor in run.donors},
        "horizon": {run.interactions for run in paper_runs("F2")},
        "open-lineage": {run.interactions for run in carries},
        "open-prefix": {before for _, before in resets},
        "open-suffix": {run.interactions - before for run, before in resets},
    }


def check_counts(_: Inputs) -> ExactCheck:
    """Compare runs, cells, families, log rows and iterations of the design with printed counts."""
    found = {name: {count} for name, count in count_design().items()}
    return ExactCheck(
        f"{len(found)} counts of the published grids (runs, cells, members of families, log rows, "
        "iterations in DeepSea), against the printed numbers.",
        {"x:count-error": float(sum_differences(found, printed().counts))},
    )


def count_design() -> dict[str, int]:
    """Return the counts of the published grids, by the names of ``printed.json``."""
    change, discovery = paper_cells("E3"), paper_cells("discovery")
    families: tuple[Family, ...] = (PRIMARY, INTERFACE_STATE, MINATAR_CONTEXT, OPEN_CARRY)
    return {
        **{f"runs/{name}": len(paper_runs(name)) for name in COUNTED},
        "runs/E3/rule": _runs(change, lambda arm: arm in DISCO),
        "runs/E3/dqn": _runs(change, lambda arm: arm not in DISCO),
        "runs/OPEN/carry": _runs(paper_cells("OPEN"), lambda arm: arm != "adam"),
        "runs/OPEN/adam": _runs(paper_cells("OPEN"), lambda arm: arm == "adam"),
        "runs/discovery/learners": _runs(discovery, lambda arm: arm != CHANCE),
        "runs/discovery/random": _runs(discovery, lambda arm: arm == CHANCE),
        "cells/change": sum(len(paper_cells(name)) for name in ("E3", "E-A4x", "E-A4m")),
        **{f"family/{family.name}": family.size for family in families},
        "rows/E1": _tail_rows(paper_runs("E1")[0]),
        "rows/E3": _rows_after_switch(paper_runs("E3")[0]),
        **{
            f"iterations/{cell.labels['task']}": cell.runs[0].iterations
            for cell in paper_cells("E-A5")
        },
    }


def check_tails(_: Inputs) -> ExactCheck:
    """Compare level and tail of one member of the primary family with the printed ones."""
    beyond = tail(PRIMARY.size)
    coverage, draws = 1.0 - 2.0 * beyond, CORE_DRAWS * beyond
    return ExactCheck(
        f"A member of a family of {PRIMARY.size} has a level of {coverage:.5f} and {draws:.2f} of "
        f"{CORE_DRAWS:,} draws beyond each bound.",
        {
            "x:coverage-error": coverage - printed().coverage,
            "x:tail-draws-error": draws - printed().tail_draws,
        },
    )


def check_estimators(_: Inputs) -> ExactCheck:
    """Compare the weights that both estimators give to each rank."""
    sizes = (8, 12, 15, 18)
    return ExactCheck(
        "The weight of each rank in the trimmed mean and in the exact interquartile mean of "
        f"{', '.join(map(str, sizes))} values: the largest difference.",
        {f"x:weights-differ-at-{n}": rank_weights_difference(n) for n in sizes},
    )


def rank_weights_difference(n: int) -> float:
    """Return the largest difference of rank weights between the two estimators at ``n`` values."""
    trimmed, exact = (rank_weights(centre, n) for centre in (trimmed_mean, exact_iqm))
    return float(np.abs(trimmed - exact).max())


def rank_weights(centre: Callable[[ArrayLike], NDArray[np.float64]], n: int) -> NDArray[np.float64]:
    """Return the weight [n] that a weighted mean of sorted values gives to each rank.

    It is read off samples of zeros and ones: the mean of a sample whose ones begin at rank j is the
    weight of all ranks from j on.
    """
    from_rank_on = centre(np.triu(np.ones((n, n))))
    weights: NDArray[np.float64] = from_rank_on - np.append(from_rank_on[1:], 0.0)
    return weights


def check_references(_: Inputs) -> ExactCheck:
    """Compare printed references with exact ones, and both formulas of a score with each other."""
    errors = reference_errors(printed().references, printed().tracking_random_rate)
    return ExactCheck(
        "Exact returns of random and optimal play against the printed references (that of random "
        "play in dense Catch is a sample mean); both printed formulas of a score, on random "
        "returns.",
        {**errors, "x:score-formula-error": score_formula_error()},
    )


def reference_errors(
    references: Mapping[str, PrintedReferences], tracking_rate: float
) -> dict[str, float]:
    """Return the largest error of the exact references, and that of the sampled one."""
    errors = [abs(tracking_references(Tracking()).random_rate - tracking_rate)]
    sampled: list[float] = []
    for name, theirs in references.items():
        world = WORLDS[name]
        assert isinstance(world, Catch)
        exact = catch_references(msgspec.structs.replace(world, references="exact"))
        errors.append(abs(exact.oracle_return - theirs.optimal))
        (sampled if world.dense else errors).append(abs(exact.random_return - theirs.random))
    return {"x:reference-error": max(errors), "x:dense-reference-error": max(sampled)}


def score_formula_error() -> float:
    """Return the largest difference between the two printed formulas of a score.

    One divides the return by the reward scale; the other multiplies both references by it.
    """
    rng = np.random.default_rng(0)
    scales = 10.0 ** rng.uniform(-3.0, 3.0, size=1000)
    returns = scales * rng.uniform(-4.0, 1.0, size=1000)
    largest = 0.0
    for one in printed().references.values():
        divided = normalised_score(returns, scales, one.random, one.optimal)
        multiplied = normalised_score(returns, 1.0, scales * one.random, scales * one.optimal)
        largest = max(largest, float(np.abs(divided - multiplied).max()))
    return largest


def sum_differences(found: Mapping[str, Collection[int]], expected: Mapping[str, int]) -> int:
    """Return the sum of all differences from ``expected``; a name in only one of them raises."""
    if found.keys() != expected.keys():
        raise KeyError(*sorted(found.keys() ^ expected.keys()))
    return sum(abs(one - expected[name]) for name, each in found.items() for one in each)


def paper_cells(assay: str) -> list[Cell]:
    """Return the published grid of an assay, by id."""
    return ASSAYS[assay].grid(ASSAYS[assay].budget("paper"))


def paper_runs(assay: str) -> list[RunSpec]:
    """Return the runs of the published grid of an assay, by id."""
    return list(chain.from_iterable(cell.runs for cell in paper_cells(assay)))


def _runs(cells: Collection[Cell], belongs: Callable[[str], bool]) -> int:
    return sum(len(cell.runs) for cell in cells if belongs(str(cell.labels["arm"])))


def _logged(run: RunSpec) -> NDArray[np.int64]:
    """Return the iterations [rows] at which ``run`` logs."""
    return np.arange(run.log_every, run.iterations + 1, run.log_every)


def _tail_rows(run: RunSpec) -> int:
    return int(tail_from(_logged(run), 0.8, run.iterations).sum())


def _rows_after_switch(run: RunSpec) -> int:
    assert run.change is not None
    return int(rows_between(_logged(run), run.change.at, run.iterations).sum())
