"""Made-up observations of every view, so that no lifetime has to run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.results import Results
from rulescope.core.runtime import Identity
from rulescope.mechanism import replay_view, targets_view, trajectory_view
from rulescope.mechanism.view_request import Observations, ViewRequest
from rulescope.run_spec import Reset

TRAJECTORY = ViewRequest("random:0", (1e-3, 0.1, 1.0, 10.0, 1e3), 2, 160)
TARGETS = ViewRequest("random:0", (1e-3, 1.0, 1e3), 2, 160)
MADE_BY: tuple[Identity, Identity] = ({"version": "made up"}, {"cpu": "none"})
REPLAY = ViewRequest("random:0", (1.0,), 1, 600)


def trajectory_observations(request: ViewRequest = TRAJECTORY) -> list[Observations]:
    """Return states that move from the initial one to a place that depends on the scale."""
    rng = np.random.default_rng(0)
    ways = rng.normal(size=(2, 128))
    found = []
    for stage in trajectory_view.stages(request):
        for group in stage:
            [(name, run)] = group.runs.items()
            updates = np.maximum(np.array(group.moments) - request.first_update + 1, 0)
            part = 1.0 - np.exp(-updates / 15.0)[:, np.newaxis]
            goal = ways[0] + np.log10(run.scale) * ways[1]
            noise = rng.normal(size=(len(updates), 128)) * 0.05 * (updates > 0)[:, np.newaxis]
            states = part * goal + noise
            if name.startswith("cross"):
                states = states + (1.0 - part) * (ways[0] - np.log10(run.scale) * ways[1])
            values = {f"{name}/{half}": states.astype(np.float32) for half in "hc"}
            found.append(Observations(group, values, {name: {}}, {name: "0" * 64}, *MADE_BY))
    return found


def targets_observations(request: ViewRequest = TARGETS) -> list[Observations]:
    """Return plausible values of every compared quantity."""
    rng = np.random.default_rng(1)
    found = []
    for group in targets_view.stages(request)[0]:
        donors = targets_view.find_donors(list(group.runs))
        values: dict[str, NDArray[np.float64]] = {}
        shape = len(group.moments)
        for key in group.runs:
            own = ["loss_policy", "loss_y", "loss_z"]
            values |= {f"{key}/live/{name}": rng.uniform(0.01, 0.1, shape) for name in own}
            for swap in ("pin", *donors[key]):
                kinds = ["kl_policy", "kl_y", "kl_z", "moved", "value", "agree", "size"]
                values |= {f"{key}/{swap}/{name}": rng.uniform(1e-4, 0.9, shape) for name in kinds}
        hashes = {key: "0" * 64 for key in group.runs}
        found.append(Observations(group, values, {key: {} for key in group.runs}, hashes, *MADE_BY))
    return found


def replay_observations(request: ViewRequest = REPLAY) -> list[Observations]:
    """Return ages as first in, first out implies, for stored and for sampled entries."""
    found = []
    logged = np.arange(20.0, request.iterations + 1, 20)
    for group in replay_view.stages(request)[0]:
        [(name, run)] = group.runs.items()
        assert run.change is not None
        fifo, when = replay_view.expected_ages(run), np.array(group.moments)
        values: dict[str, NDArray[np.float64]] = {}
        for kind in ("held", "drawn"):
            values |= {
                f"{name}/{kind}/count": fifo.stored(when).astype(np.float64),
                f"{name}/{kind}/before": fifo.share_before(when, run.change.at),
                f"{name}/{kind}/mean": fifo.mean_age(when),
                f"{name}/{kind}/quantiles": np.stack(
                    [fifo.age_quantile(when, level) for level in replay_view.QUANTILES], axis=1
                ),
            }
        assert not run.interventions or isinstance(run.interventions[0], Reset)
        score = np.linspace(0.0, 1.0, len(logged))
        log = {"iteration": logged, "score": score}
        found.append(Observations(group, values, {name: log}, {name: "0" * 64}, *MADE_BY))
    return found


def all_results() -> dict[str, Results]:
    """Return results of every view by label."""
    return {
        "mechanism-trajectory": trajectory_view.analyse(TRAJECTORY, trajectory_observations()),
        "mechanism-targets": targets_view.analyse(TARGETS, targets_observations()),
        "mechanism-replay": replay_view.analyse(REPLAY, replay_observations()),
    }
