"""Made-up lifetimes around a switch: they learn, drop where something changes, and recover."""

from __future__ import annotations

import numpy as np

from rulescope.assays.frame import Floats

from .lives import Labels

STEPS = {"catch": 7, "catch-long": 15}
"""Of an episode."""
PACE = {
    "rule": 0.12,
    "rule-freeze": 0.13,
    "rule-no-aux": 0.09,
    "a2c": 0.3,
    "ppo": 0.25,
    "dqn": 0.9,
    "dqn-28672": 0.14,
    "dqn-cleared": 0.04,
    "dqn-cleared-interactions": 0.03,
    "a2c-cbp": 0.25,
    "ppo-cbp": 0.2,
    "dqn-cbp": 0.7,
}
"""The share of a lifetime that an arm takes to recover."""


def recovering(labels: Labels, seed: int, rows: Floats) -> dict[str, Floats]:
    """Return a log for :func:`lives.lived`, with the columns of every assay of a change."""
    arm, task = str(labels["arm"]), str(labels.get("task", "catch"))
    draw = np.random.default_rng([seed, *(len(str(label)) for label in labels.values())])
    end = rows[-1]
    switch = end // 2 // rows[0] * rows[0]
    pace = PACE[arm] * end * (1.0 if task == "catch" else 1.6) * draw.uniform(0.7, 1.4)
    best = draw.normal(0.97, 0.015)
    score = best * (1 - np.exp(-rows / (0.08 * end)))
    if labels["condition"] != "none":
        since = np.clip(rows - switch, 0, None)
        after = best * (1 - np.exp(-since / pace)) - 0.14 * np.exp(-since / pace)
        score = np.where(rows > switch, after, score)
    score = score + draw.normal(0, 0.015, len(rows))
    episodes = 58 * rows // STEPS[task]
    found = {"score": score, "mean_return": 10 * score.clip(min=0), "episodes": episodes}
    if arm.startswith("dqn"):
        cleared = arm.startswith("dqn-cleared")
        found["stored"] = 58 * np.where(cleared & (rows > switch), rows - switch, rows)
    return found
