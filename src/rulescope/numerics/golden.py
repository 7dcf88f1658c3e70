"""Golden arrays: outputs of the original JAX program, and how its array names map to ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import arrays
from rulescope.core.arrays import ArrayFileError, Arrays, unprefix
from rulescope.core.errors import RulescopeError
from rulescope.core.flat_vector import Layout
from rulescope.learners.disco.batch import Batch
from rulescope.rules import released_rules, weight_files
from rulescope.rules.rule_weights import load

RANDOM_RULE = "random:20240"
"""The rule that the weight-free golden arrays were computed with."""
RELEASED_RULE = "disco103"

LAYERS = {
    "torso.0": "mlp/~_embedding_pass/torso/~/linear_0",
    "torso.1": "mlp/~_embedding_pass/torso/~/linear_1",
    "policy": "mlp/~_head_pass/torso_head/~/linear_0",
    "y": "mlp/~_head_pass/torso_head_1/~/linear_0",
    "root": "mlp/linear",
    "z.0": "mlp/mlp/~/linear_0",
    "z.1": "mlp/mlp/~/linear_1",
    "aux.0": "mlp/mlp_1/~/linear_0",
    "aux.1": "mlp/mlp_1/~/linear_1",
    "q.0": "mlp/mlp_2/~/linear_0",
    "q.1": "mlp/mlp_2/~/linear_1",
}
"""Our layer names and the original's. Its action model has both weights in one array."""
ACTION_MODEL = "mlp/action_cond/linear"


class GoldenError(RulescopeError):
    """A directory of golden arrays is missing, incomplete or damaged."""


def default_directory() -> Path:
    """Return the directory of the weight-free arrays that come with the package."""
    here = Path(__file__).resolve()
    for candidate in (here.parent / "golden", here.parents[3] / "tests" / "golden" / "disco"):
        if candidate.is_dir():
            return candidate
    raise GoldenError("the package has no golden arrays; give a directory with --golden DIR")


class Golden:
    """A directory of golden arrays, and the device on which ours are computed.

    Files are read when first needed.
    """

    def __init__(self, directory: Path, device: str = "cpu") -> None:
        if not directory.is_dir():
            raise GoldenError(f"{directory}: no such directory of golden arrays")
        inner = directory / "disco"
        self.directory = inner if inner.is_dir() else directory
        self.device = device
        self._files: dict[str, dict[str, NDArray[Any]]] = {}
        if not self.has("inner_common"):
            raise GoldenError(f"{directory}: has no golden arrays (inner_common.npz is missing)")

    def has(self, name: str) -> bool:
        """Return whether the file ``name``.npz exists."""
        return (self.directory / f"{name}.npz").is_file()

    def __getitem__(self, name: str) -> dict[str, NDArray[Any]]:
        if name not in self._files:
            path = self.directory / f"{name}.npz"
            try:
                self._files[name] = arrays.read(path)
            except (OSError, ArrayFileError) as fault:
                raise GoldenError(f"{path}: {fault}") from None
        return self._files[name]

    def rules(self) -> dict[str, str]:
        """Return our names of the rules whose weights are available, by their key in the arrays."""
        named = {"rand": RANDOM_RULE, "real": RELEASED_RULE}
        return {
            key: name
            for key, name in named.items()
            if self.has(f"inner_{key}_f64") and (key == "rand" or _available(name))
        }

    def skipped(self) -> list[str]:
        """Return a message for each rule whose arrays cannot be compared, with the reason."""
        if self.has("inner_real_f64") and "real" not in self.rules():
            return [f"{RELEASED_RULE}: weights not found (try `rulescope weights fetch`)"]
        return []

    def tensor(self, array: NDArray[Any], dtype: torch.dtype | None = None) -> Tensor:
        """Return a stored array as a tensor on the device."""
        return torch.tensor(array, dtype=dtype, device=self.device)

    def rule_weights(self, name: str, dtype: torch.dtype) -> dict[str, Tensor]:
        """Return a rule's weights as tensors on the device."""
        return load_rule_weights(name, dtype, self.device)

    def rollout(self, number: int, dtype: torch.dtype) -> Batch:
        """Return a stored rollout [9 slots, 4 lanes] as a batch; every slot is its own row.

        Slot k has the reward and flag that *arrived with* its observation.
        """
        slots = unprefix(f"rollout{number}", self["inner_common"])
        observations = self.tensor(slots["observations"], dtype)
        length, lanes = observations.shape[:2]
        ended = self.tensor(slots["discounts"] == 0, dtype)
        return Batch(
            rows=observations.flatten(0, 1),
            index=torch.arange(length * lanes, device=self.device).view(length, lanes),
            actions=self.tensor(slots["actions"][:-1]).long(),
            rewards=self.tensor(slots["rewards"][1:], dtype),
            terminals=ended[1:],
            behaviour=self.tensor(slots["behaviour_logits"][:-1], dtype),
            began=ended[0],
        )


def _available(rule: str) -> bool:
    return weight_files.find(released_rules.get(rule)) is not None


def merge_equal_rows(batch: Batch) -> Batch:
    """Return ``batch`` with equal rows merged, as the replay samples it."""
    rows, inverse = torch.unique(batch.rows.flatten(1), dim=0, return_inverse=True)
    return Batch(
        rows=rows.view(-1, *batch.rows.shape[1:]),
        index=inverse[batch.index],
        actions=batch.actions,
        rewards=batch.rewards,
        terminals=batch.terminals,
        behaviour=batch.behaviour,
        began=batch.began,
    )


def load_rule_weights(name: str, dtype: torch.dtype, device: str = "cpu") -> dict[str, Tensor]:
    """Return a rule's weights as tensors."""
    return {
        key: torch.tensor(w, dtype=dtype, device=device) for key, w in load(name).arrays.items()
    }


def to_our_names(stored: Arrays, actions: int) -> dict[str, NDArray[Any]]:
    """Return agent arrays of the original under our names, in our layout."""
    ours = {
        f"{layer}.{part}": stored[f"{name}/{part}"]
        for layer, name in LAYERS.items()
        for part in ("w", "b")
    }
    prefix_names = stored[f"{ACTION_MODEL}/w"]
    return ours | {
        "model.action.w": prefix_names[:actions],
        "model.hidden.w": prefix_names[actions:],
        "model.b0": stored[f"{ACTION_MODEL}/b"],
    }


def to_original_names(views: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Return our agent arrays under the original's names, in its layout."""
    ours = {name: view.detach().cpu().numpy() for name, view in views.items()}
    theirs = {
        f"{name}/{part}": ours[f"{layer}.{part}"]
        for layer, name in LAYERS.items()
        for part in ("w", "b")
    }
    prefix_names = np.concatenate([ours["model.action.w"], ours["model.hidden.w"]])
    return theirs | {f"{ACTION_MODEL}/w": prefix_names, f"{ACTION_MODEL}/b": ours["model.b0"]}


def flatten_stored(
    layout: Layout, stored: Arrays, actions: int, dtype: torch.dtype, device: str = "cpu"
) -> Tensor:
    """Return stored agent arrays as one flat vector [size] of ours."""
    ours = to_our_names(stored, actions)
    return layout.flatten(
        {name: torch.tensor(array, dtype=dtype, device=device) for name, array in ours.items()}
    )
