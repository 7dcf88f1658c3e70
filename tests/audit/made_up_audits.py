"""Audits of rules whose truth is known: scores drawn from it, then the real analyses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from rulescope.assays import ASSAYS
from rulescope.assays.estimates import Label
from rulescope.assays.frame import Floats, Frame
from rulescope.assays.results import Results

Draw = Callable[[Generator, int], Floats]
"""The scores [seeds] of an arm."""
SCALES = (0.1, 1.0, 10.0, 100.0)
CONDITIONS = ("episodic", "masked", "natural")


def around(mean: float, spread: float) -> Draw:
    return lambda draws, n: draws.normal(mean, spread, n)


def humped(share: float) -> Draw:
    """Return the scores of an arm that learns in a ``share`` of its lifetimes."""

    def draw(draws: Generator, n: int) -> Floats:
        learned = draws.random(n) < share
        return np.where(learned, 0.95, 0.03) + draws.normal(0, 0.03, n)

    return draw


class Truth(NamedTuple):
    """A rule with its history and without, at unit scale, at other scales and in streams."""

    live: Draw
    pinned: Draw
    streams: tuple[Draw, Draw] | None = None
    """Live and pinned, if streams are another story."""


def frame(
    axes: Mapping[str, tuple[Label, ...]], column: str, values: Floats, rows: int = 5
) -> Frame:
    """Return lifetimes whose log says ``values`` [*axes, seeds] in every row."""
    log = np.repeat(values[..., np.newaxis], rows, axis=-1)
    lived = np.isfinite(values)
    episodes = np.broadcast_to(1e3 * np.arange(1.0, rows + 1), log.shape)
    return Frame(
        axes=axes,
        seeds=tuple(range(values.shape[-1])),
        iteration=np.arange(20.0, 20.0 * rows + 1, 20.0),
        columns={column: log, "episodes": episodes},
        states={},
        iterations=20 * rows,
        interactions=58 * 20 * rows,
        completed=lived,
        planned=np.ones_like(lived),
        lengths=np.full(values.shape[:-1], 20 * rows),
        rule="made-up",
    )


def audit(truth: Truth, n: int, draws: Generator, *, pinned: bool = True) -> dict[str, Results]:
    """Return the results of an audit with ``n`` seeds, of a rule without history not ``pinned``."""
    arms = 2 if pinned else 1
    pairs = (truth.live, truth.pinned)[:arms]
    flowing = (truth.streams or pairs)[:arms]
    scores = np.array([[[arm(draws, n) for _ in SCALES] for arm in pairs]])
    exposed = np.array(
        [
            [arm(draws, n) for arm in (pairs if condition == "episodic" else flowing)]
            for condition in CONDITIONS
        ]
    )
    both = ("rule", "rule-pin")[:arms]
    exposure = frame({"condition": CONDITIONS, "arm": both}, "rate_score", exposed)
    return {
        "E1": _scaled(SCALES, scores),
        "exposure": ASSAYS["exposure"].analyse(exposure),
    }


def change_of(pre: tuple[float, float], after: tuple[float, float], n: int = 8) -> Results:
    """Return E3 for the rule and its frozen arm, with these scores before and after the change."""
    draws = np.random.default_rng(0)
    values = np.zeros((1, 1, 2, n))
    made = frame(
        {"condition": ("action-flip",), "task": ("catch",), "arm": ("rule", "rule-freeze")},
        "score",
        values,
        rows=12,
    )
    for arm in range(2):
        noise = draws.normal(0, 0.02, (n, 12))
        level = np.where(np.arange(12) < 6, pre[arm], after[arm])
        made.columns["score"][0, 0, arm] = level + noise
    return ASSAYS["E3"].analyse(made)


def scales_alone(truth: Truth, n: int, draws: Generator) -> dict[str, Results]:
    """Return the results of E1 alone, at two scales: the least that has windows and an answer."""
    some = (1.0, 100.0)
    scores = np.array([[[arm(draws, n) for _ in some] for arm in (truth.live, truth.pinned)]])
    return {"E1": _scaled(some, scores)}


def curves(live: Sequence[float], pinned: Sequence[float], n: int = 8) -> dict[str, Results]:
    """Return the results of E1 for two arms with these mean scores at the scales."""
    noise = np.random.default_rng(0).normal(0.0, 0.02, (1, 2, len(SCALES), n))
    return {"E1": _scaled(SCALES, np.array([live, pinned])[np.newaxis, ..., np.newaxis] + noise)}


def _scaled(scales: tuple[float, ...], scores: Floats) -> Results:
    arms = ("live", "pin")[: scores.shape[1]]
    axes: dict[str, tuple[Label, ...]] = {"task": ("catch",), "arm": arms, "scale": scales}
    return ASSAYS["E1"].analyse(frame(axes, "score", scores))
