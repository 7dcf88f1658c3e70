"""What views might have seen: made up, so that nothing has to be lived."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rulescope.assays.results import Results
from rulescope.core.runtime import Identity
from rulescope.mechanism import replay_view, targets_view, trajectory_view
from rulescope.mechanism.view_request import Inquiry, Observed
from rulescope.spec.run_spec import Reset

PATHS = Inquiry("random:0", (1e-3, 0.1, 1.0, 10.0, 1e3), 2, 160)
SWAPS = Inquiry("random:0", (1e-3, 1.0, 1e3), 2, 160)
MADE: tuple[Identity, Identity] = ({"version": "made up"}, {"cpu": "none"})
AGES = Inquiry("random:0", (1.0,), 1, 600)


def seen_paths(inquiry: Inquiry = PATHS) -> list[Observed]:
    """Return states that walk from birth to a place that depends on the scale."""
    rng = np.random.default_rng(0)
    ways = rng.normal(size=(2, 128))
    found = []
    for stage in trajectory_view.stages(inquiry):
        for group in stage:
            [(name, run)] = group.runs.items()
            lived = np.maximum(np.array(group.moments) - inquiry.first_update + 1, 0)
            part = 1.0 - np.exp(-lived / 15.0)[:, np.newaxis]
            goal = ways[0] + np.log10(run.scale) * ways[1]
            noise = rng.normal(size=(len(lived), 128)) * 0.05 * (lived > 0)[:, np.newaxis]
            states = part * goal + noise
            if name.startswith("cross"):
                states = states + (1.0 - part) * (ways[0] - np.log10(run.scale) * ways[1])
            seen = {f"{name}/{half}": states.astype(np.float32) for half in "hc"}
            found.append(Observed(group, seen, {name: {}}, {name: "0" * 64}, *MADE))
    return found


def seen_swaps(inquiry: Inquiry = SWAPS) -> list[Observed]:
    """Return numbers of a likely size for everything that is compared."""
    rng = np.random.default_rng(1)
    found = []
    for group in targets_view.stages(inquiry)[0]:
        sources = targets_view.donors(list(group.runs))
        seen: dict[str, NDArray[np.float64]] = {}
        shape = len(group.moments)
        for key in group.runs:
            own = ["loss_policy", "loss_y", "loss_z"]
            seen |= {f"{key}/live/{name}": rng.uniform(0.01, 0.1, shape) for name in own}
            for swap in ("pin", *sources[key]):
                kinds = ["kl_policy", "kl_y", "kl_z", "moved", "value", "agree", "size"]
                seen |= {f"{key}/{swap}/{name}": rng.uniform(1e-4, 0.9, shape) for name in kinds}
        hashes = {key: "0" * 64 for key in group.runs}
        found.append(Observed(group, seen, {key: {} for key in group.runs}, hashes, *MADE))
    return found


def seen_ages(inquiry: Inquiry = AGES) -> list[Observed]:
    """Return what first-in-first-out makes a replay hold, and the same as drawn."""
    found = []
    logged = np.arange(20.0, inquiry.iterations + 1, 20)
    for group in replay_view.stages(inquiry)[0]:
        [(name, run)] = group.runs.items()
        assert run.change is not None
        rule, when = replay_view.fifo(run), np.array(group.moments)
        seen: dict[str, NDArray[np.float64]] = {}
        for kind in ("held", "drawn"):
            seen |= {
                f"{name}/{kind}/count": rule.stored(when).astype(np.float64),
                f"{name}/{kind}/before": rule.share_before(when, run.change.at),
                f"{name}/{kind}/mean": rule.mean_age(when),
                f"{name}/{kind}/quantiles": np.stack(
                    [rule.age_quantile(when, part) for part in replay_view.PARTS], axis=1
                ),
            }
        assert not run.interventions or isinstance(run.interventions[0], Reset)
        score = np.linspace(0.0, 1.0, len(logged))
        log = {"iteration": logged, "score": score}
        found.append(Observed(group, seen, {name: log}, {name: "0" * 64}, *MADE))
    return found


def all_results() -> dict[str, Results]:
    """Return results of every view, by the label of its figure."""
    return {
        "mechanism-trajectory": trajectory_view.analyse(PATHS, seen_paths()),
        "mechanism-targets": targets_view.analyse(SWAPS, seen_swaps()),
        "mechanism-replay": replay_view.analyse(AGES, seen_ages()),
    }
