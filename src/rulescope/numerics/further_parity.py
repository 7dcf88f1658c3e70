"""DPO, LPO and LPG beside their original programs: values, gradients, whole updates.

The arrays come from the original functions (tests/golden/further/README.md). Values and gradients
are compared in both precisions; whole updates are those of the learners that run, in float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import arrays
from rulescope.core.arrays import ArrayFileError, Arrays, unprefix
from rulescope.core.flat_vector import Layout
from rulescope.learners.adam import Adam
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.dpo import DPO
from rulescope.learners.drift_rule import DriftRule, value_loss
from rulescope.learners.further_config import Dpo, Lpg, Lpo
from rulescope.learners.learner import Rollout
from rulescope.learners.lpg import LPG
from rulescope.learners.lpo import LPO
from rulescope.learners.sgd import Sgd
from rulescope.learners.update_rule import Setup, UpdateRule
from rulescope.numerics.golden import GoldenError
from rulescope.numerics.tolerances import PRECISIONS, Comparison, compare
from rulescope.rules import drift, lpg_format, lpo_format
from rulescope.rules.lpg_network import divergence, lpg_forward, lpg_loss
from rulescope.rules.weight_vectors import rule_of

SMALL = NetworkSizes(hidden=(8, 8))
"""The agent of these arrays: 4x4 observations, three actions."""
RATE = 0.05
STEP, LIFETIME = 17, 250
"""Updates that the agents of LPG had made, and those of their whole lifetime."""
NAMES = {"dpo": "DPO", "lpo": "LPO", "lpg": "LPG", "ta": "TA-LPG"}
VALUE, GRADIENT, UPDATE = "rule value", "rule gradient", "rule update"
"""Kinds of comparison."""


def default_folder() -> Path:
    """Return the folder of arrays that comes with the package."""
    here = Path(__file__).resolve()
    for candidate in (here.parent / "further", here.parents[3] / "tests" / "golden" / "further"):
        if candidate.is_dir():
            return candidate
    raise GoldenError("the package has no golden arrays of further rules")


class FurtherGolden:
    """The arrays of one rule."""

    def __init__(self, rule: str, folder: Path | None = None) -> None:
        self._rule, self._folder = rule, folder or default_folder()
        self.inputs = self._read("inputs")

    def outputs(self, precision: str) -> dict[str, NDArray[Any]]:
        """Return what the original computed in ``precision``."""
        return self._read(PRECISIONS[precision][0])

    def _read(self, part: str) -> dict[str, NDArray[Any]]:
        path = self._folder / f"{self._rule}_{part}.npz"
        try:
            return arrays.read(path)
        except (OSError, ArrayFileError) as fault:
            raise GoldenError(f"{path}: {fault}") from None

    def rollout(self) -> Rollout:
        """Return the stored rollout; it was acted by the policy of the stored parameters."""
        stored = unprefix("rollout", self.inputs)
        return Rollout(
            observations=stored["observations"],
            actions=stored["actions"],
            rewards=stored["rewards"],
            terminals=stored["terminals"],
            began=np.zeros(stored["actions"].shape[1], np.bool_),
            behaviour={},  # the learner computes it from its parameters, which are those stored
        )

    def policy(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probabilities now (with gradients), before, and advantages: [B] each."""
        now, before, advantages = (
            torch.tensor(self.inputs[f"policy/{name}"], dtype=dtype)
            for name in ("now", "before", "advantages")
        )
        return now.requires_grad_(), before, advantages


def compare_further(folder: Path | None = None) -> Iterator[Comparison]:
    """Yield all comparisons of DPO, LPO and LPG."""
    yield from compare_dpo(FurtherGolden("dpo", folder))
    yield from compare_lpo(FurtherGolden("lpo", folder))
    yield from compare_lpg(FurtherGolden("lpg", folder))


def compare_dpo(golden: FurtherGolden) -> Iterator[Comparison]:
    """Compare drift, advantages, the loss of a minibatch, and three updates."""
    for precision, (_, dtype) in PRECISIONS.items():
        theirs = golden.outputs(precision)
        now, before, advantages = golden.policy(dtype)
        found = drift.drift_loss(
            now - before, advantages, drift.dpo_drift(now - before, advantages)
        )
        yield from _with_gradient("DPO", precision, "drift", found, now, theirs)
        yield from _compare_minibatch(golden, precision, unprefix("away", theirs), theirs)
    for case, entropy in (("update", 0.0), ("update/entropy", 0.01)):
        learner = _small_learner(DPO, _one_batch(Dpo(entropy_coefficient=entropy)), golden)
        yield from _compare_updates("DPO", case, learner, golden, 1)


def _compare_minibatch(
    golden: FurtherGolden, precision: str, away: Arrays, theirs: Arrays
) -> Iterator[Comparison]:
    """Compare the whole loss of DPO, value and entropy too, under parameters that did not act."""
    dtype, own = PRECISIONS[precision][1], Dpo()
    learner = _small_learner(DPO, _one_batch(own), golden)
    rollout, layout = golden.rollout(), learner.network.layout
    acted = _outputs(learner, unprefix("params", golden.inputs), rollout, dtype)
    before = _chosen(acted[:-1, :, :-1], rollout)
    stored = {name: torch.tensor(theirs[name]) for name in ("advantages", "targets")}
    params = _flat(layout, unprefix("params", away), dtype).requires_grad_()
    outputs = _outputs(learner, layout.views(params), rollout, dtype)
    logits, values = outputs[:-1, :, :-1], outputs[:-1, :, -1]
    advantages = drift.normalise(stored["advantages"])
    log_ratio = _chosen(logits, rollout) - before
    parts = {
        "policy": drift.drift_loss(log_ratio, advantages, drift.dpo_drift(log_ratio, advantages)),
        "value": value_loss(values, acted[:-1, :, -1], stored["targets"], own.value_clip),
        "entropy": -(logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean(),
    }
    parts["total"] = parts["policy"] + own.value_coefficient * parts["value"]
    for name, part in parts.items():
        yield compare(VALUE, precision, f"DPO/minibatch: {name}", part, away[name])
    [gradient] = torch.autograd.grad(parts["total"], params)
    for name, view in layout.views(gradient).items():
        yield compare(GRADIENT, precision, f"DPO/minibatch: {name}", view, away[f"gradient/{name}"])


def compare_lpo(golden: FurtherGolden) -> Iterator[Comparison]:
    """Compare the drift in the forms of both public programs, and updates with the second."""
    weights = _lpo_weights(golden)
    forms: dict[str, tuple[drift.Features, float | None]] = {
        "first/ppo": ("log-first", drift.CLIP),
        "first/plain": ("log-first", None),
        "second/ppo": ("ratio-first", drift.CLIP),
    }
    for precision, (_, dtype) in PRECISIONS.items():
        theirs = golden.outputs(precision)
        own = {name: torch.tensor(each, dtype=dtype) for name, each in weights.items()}
        for case, (features, clip) in forms.items():
            now, before, advantages = golden.policy(dtype)
            normal = drift.normalise(advantages)
            term = drift.lpo_drift(own, now - before, normal, features, clip)
            found = drift.drift_loss(now - before, normal, term)
            yield from _with_gradient("LPO", precision, case, found, now, unprefix(case, theirs))
    for steps in (1, 3):
        config = Lpo(features="ratio-first", entropy_coefficient=0.01)
        learner = _small_learner(LPO, _one_batch(config, steps), golden, weights)
        yield from _compare_updates("LPO", f"second/update{steps}", learner, golden, 1)


def _lpo_weights(golden: FurtherGolden) -> dict[str, NDArray[Any]]:
    stored = unprefix("weights", golden.inputs)
    return {f"{lpo_format.PREFIX}{name}": each for name, each in stored.items()}


def compare_lpg(golden: FurtherGolden) -> Iterator[Comparison]:
    """Compare the network, the agent's gradients, one tabular update, and three of a network."""
    for kind in ("lpg", "ta"):
        weights = from_flax(unprefix(kind, golden.inputs))
        for precision in PRECISIONS:
            theirs = unprefix(kind, golden.outputs(precision))
            yield from _compare_tabular(golden, kind, weights, precision, theirs)
        form: Any = "raw" if kind == "ta" else "none"
        for steps in (1, 3):
            config = Lpg(agent=SMALL, learning_rate=RATE, lifetime_inputs=form)
            learner = _small_learner(LPG, config, golden, weights)
            case = f"{kind}/network{steps}"
            yield from _compare_updates(NAMES[kind], case, learner, golden, steps)


def _compare_tabular(
    golden: FurtherGolden,
    kind: str,
    weights: Arrays,
    precision: str,
    theirs: Arrays,
) -> Iterator[Comparison]:
    """Compare the rule's outputs and an agent whose every observation is a state of its own."""
    dtype, name = PRECISIONS[precision][1], NAMES[kind]
    own = {key: torch.tensor(each, dtype=dtype) for key, each in weights.items()}
    rollout = golden.rollout()
    logits, y_logits = (_time_first(golden.inputs[key], dtype) for key in ("logits", "y"))
    y, chosen = y_logits.softmax(-1), _chosen(logits[:-1], rollout).exp()
    rewards = torch.tensor(rollout.rewards, dtype=dtype)
    terminals = torch.tensor(rollout.terminals, dtype=dtype)
    lifetime = (STEP, LIFETIME) if kind == "ta" else None
    given = (own, rewards, terminals)
    output = lpg_forward(*given, chosen.detach(), y.detach(), lifetime)
    loss = lpg_loss(*given, chosen, y, 0.5, lifetime)
    gradients = torch.autograd.grad(loss, (logits, y_logits))
    target = lpg_forward(*given, chosen.detach() + 1e-8, y.detach(), lifetime)
    found = {
        "forward/pi_hat": output.policy,
        "forward/y_hat": output.y,
        "tabular/pi_l2": target.policy.square().mean(),
        "tabular/y_l2": target.y.square().sum(-1).mean(),
        "tabular/kl": divergence(y[:-1], target.y).mean(),
    }
    for key, value in found.items():
        yield compare(VALUE, precision, f"{name}: {key}", _lanes_first(value), theirs[key])
    for part, gradient in zip(("actor", "critic"), gradients, strict=True):
        key = f"tabular/{part}_gradient"
        yield compare(GRADIENT, precision, f"{name}: {key}", _lanes_first(gradient), theirs[key])
    yield from _compare_tables(name, precision, (logits, y_logits), gradients, theirs)


def _compare_tables(
    name: str,
    precision: str,
    tables: tuple[Tensor, Tensor],
    gradients: tuple[Tensor, ...],
    theirs: Arrays,
) -> Iterator[Comparison]:
    """Compare both tables after one step of each optimiser; ours of Adam is in float32 only."""
    for part, table, gradient, rate in zip(
        ("actor", "critic"), tables, gradients, (40.0, 4.0), strict=True
    ):
        makers: dict[str, Any] = {"sgd": lambda p, rate=rate: Sgd(p, rate, 0.5)}
        if precision == "float32":
            makers["adam"] = lambda p: Adam(p, 1e-3, np.inf)
        for optimiser, make in makers.items():
            flat = table.detach().clone().flatten()
            make(flat).step_(gradient.clone().flatten())
            ours, key = _lanes_first(flat.view_as(table)), f"{optimiser}/{part}"
            yield compare(UPDATE, precision, f"{name}: {key}", ours, theirs[key])


FLAX_LAYERS = {
    "embedding.0": "MLP_0/Dense_0",
    "embedding.1": "MLP_0/Dense_1",
    "policy": "Dense_0",
    "y": "Dense_1",
}
"""Our layer names, and those of groove's parameters."""
_CELL = "LPGGRU_0/GRUCell_0"


def from_flax(stored: Arrays) -> dict[str, NDArray[Any]]:
    """Return the parameters of groove's LPG, by their names there, as a rule of ours."""
    found = {
        f"{layer}/{ours}": stored[f"{name}/{theirs}"]
        for layer, name in FLAX_LAYERS.items()
        for ours, theirs in (("w", "kernel"), ("b", "bias"))
    }
    for part, ours in (("i", "gru/input/w"), ("h", "gru/state/w")):
        gates = [stored[f"{_CELL}/{part}{gate}/kernel"] for gate in "rzn"]
        found[ours] = np.concatenate(gates, axis=1)
    found["gru/input/b"] = np.concatenate([stored[f"{_CELL}/i{gate}/bias"] for gate in "rzn"])
    found["gru/state/b"] = stored[f"{_CELL}/hn/bias"]
    return {f"{lpg_format.PREFIX}{name}": each for name, each in sorted(found.items())}


def _with_gradient(
    name: str, precision: str, case: str, loss: Tensor, at: Tensor, theirs: Arrays
) -> Iterator[Comparison]:
    [gradient] = torch.autograd.grad(loss, at)
    yield compare(VALUE, precision, f"{name}/{case}: loss", loss, theirs["loss"])
    yield compare(GRADIENT, precision, f"{name}/{case}: gradient", gradient, theirs["gradient"])


def _one_batch(config: Any, epochs: int = 3) -> Any:
    """Return ``config`` with whole rollouts as minibatches, and a large step."""
    return msgspec.structs.replace(
        config, agent=SMALL, learning_rate=RATE, epochs=epochs, minibatches=1
    )


def _small_learner(
    build: type[DriftRule | LPG], config: Any, golden: FurtherGolden, weights: Arrays | None = None
) -> UpdateRule:
    """Return a learner with the stored parameters."""
    setup = Setup(
        (4, 4),
        3,
        learning_rate=config.learning_rate,
        agent=SMALL,
        iterations=LIFETIME,
        options=config,
        rule=None if weights is None else rule_of(weights, config.kind),
    )
    learner: UpdateRule = build(setup)
    stored = to_our_heads(learner.network.layout, unprefix("params", golden.inputs))
    flat = _flat(learner.network.layout, stored, torch.float32)
    learner.carriers["params"].set({"flat": flat.numpy()})
    return learner


def to_our_heads(layout: Layout, stored: Arrays) -> dict[str, NDArray[Any]]:
    """Return stored parameters with the last columns of their head as the head y, if ours has one.

    The original was given one head: logits, value, y.
    """
    if "head.y.w" not in layout.shapes:
        return dict(stored)
    main = layout.shapes["head.b"][0]
    cut = {f"head.y.{part}": stored[f"head.{part}"][..., main:] for part in ("w", "b")} | {
        f"head.{part}": stored[f"head.{part}"][..., :main] for part in ("w", "b")
    }
    return {**stored, **cut}


def _compare_updates(
    name: str, case: str, learner: UpdateRule, golden: FurtherGolden, updates: int
) -> Iterator[Comparison]:
    """Compare the parameters after ``updates`` calls of the learner, which is in float32."""
    for _ in range(updates):
        learner.learn(golden.rollout(), measure=False)
    layout = learner.network.layout
    theirs = to_our_heads(layout, unprefix(f"{case}/params", golden.outputs("float32")))
    for key, ours in layout.views(learner.params).items():
        yield compare(UPDATE, "float32", f"{name}/{case}: {key}", ours, theirs[key])


def _flat(layout: Layout, stored: Arrays, dtype: torch.dtype) -> Tensor:
    return layout.flatten({key: torch.tensor(each, dtype=dtype) for key, each in stored.items()})


def _outputs(
    learner: UpdateRule, params: Mapping[str, Any], rollout: Rollout, dtype: torch.dtype
) -> Tensor:
    """Return the main outputs [S + 1, N, A + 1] under ``params``."""
    views = {name: torch.as_tensor(each).to(dtype) for name, each in params.items()}
    observations = torch.tensor(rollout.observations, dtype=dtype)
    found = learner.network.outputs(views, observations.flatten(0, 1))
    return found.view(*observations.shape[:2], -1)


def _chosen(logits: Tensor, rollout: Rollout) -> Tensor:
    """Return log pi(action) [S, N] of ``logits`` [S, N, A]."""
    taken = torch.from_numpy(rollout.actions).unsqueeze(-1)
    return logits.log_softmax(-1).gather(-1, taken).squeeze(-1)


def _time_first(stored: NDArray[Any], dtype: torch.dtype) -> Tensor:
    """Return a stored array [N, S + 1, ...] as a leaf [S + 1, N, ...]."""
    return torch.tensor(stored, dtype=dtype).transpose(0, 1).contiguous().requires_grad_()


def _lanes_first(ours: Tensor) -> Tensor:
    return ours if ours.dim() < 2 else ours.transpose(0, 1)
