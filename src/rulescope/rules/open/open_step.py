"""One step of the OPEN optimiser on a flat vector of parameters.

The rule processes every scalar parameter separately. Parameters interact in three places only:
features are normalised over the parameter's tensor, dormancy is relative to the units of a layer,
and the mean of all updates is subtracted at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.rules.open.open_network import FEATURES, RuleNetwork

DECAYS = (0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
"""Decays of the momenta."""
LOG_EPSILON = 1e-13
SCALE_EPSILON = 1e-5
ACTIVITY_EPSILON = 1e-11
STEP = 0.001
"""Multiplies the rule's magnitude, its exponent, and its noise."""

# Rows of the features; the first fifteen are normalised.
PARAMETER, SIGNS, LOGS = 0, slice(1, 7), slice(7, 13)
GRADIENT_SIGN, GRADIENT_LOG, NORMALISED = 13, 14, slice(0, 15)
TRAINING, DEPTH, EPOCH, DORMANCY = 15, 16, 17, 18


class Leaf(NamedTuple):
    """One parameter tensor of a dense layer: its weights or its bias."""

    shape: tuple[int, ...]
    axis: int
    """The axis of ``shape`` along which the layer's units lie."""
    layer: int
    """Index of its layer among all layers."""
    depth: float
    """Relative position of the layer in its network: 0 is the first, 1 the last."""

    @property
    def size(self) -> int:
        """Number of parameters."""
        return math.prod(self.shape)


def proportions(step: int, updates: int, epochs: int, minibatches: int) -> tuple[float, float]:
    """Return the progress of training and of the current data batch, each from 0 to 1.

    ``step`` counts the optimiser's steps from 0. There are ``updates`` batches of data, with
    ``epochs`` passes over each, of ``minibatches`` steps. The second proportion is that of epochs.
    """
    done = step // (epochs * minibatches)
    epoch = step // minibatches % epochs
    return done / max(updates - 1, 1), epoch / max(epochs - 1, 1)


def dormancy(activity: Tensor) -> Tensor:
    """Return the activity [units] of each unit relative to the mean of its layer.

    ``activity`` [units] is the mean absolute output of each unit.
    """
    raised = activity + ACTIVITY_EPSILON
    return raised / raised.abs().sum() * len(activity)


def clip_(gradient: Tensor, max_norm: float) -> float:
    """Scale ``gradient`` [size] down to norm ``max_norm`` if larger; return its norm before."""
    norm = math.sqrt(float(torch.dot(gradient, gradient)))
    if not norm < max_norm:
        gradient.div_(norm).mul_(max_norm)
    return norm


def centred_(update: Tensor) -> Tensor:
    """Subtract the mean over all networks' updates [parameters], in place."""
    return update.sub_(update.mean())


class Open:
    """The optimiser's state and its step; parameters are passed in, never stored."""

    def __init__(
        self,
        vector: NDArray[np.float32],
        leaves: Iterable[Leaf],
        explorers: int,
        device: torch.device | str = "cpu",
    ) -> None:
        """``vector`` are the rule's weights. The flat parameters are the ``leaves`` in order.

        The first ``explorers`` parameters (those of the policy) get noise.
        """
        self.leaves = tuple(leaves)
        self.parameters = sum(leaf.size for leaf in self.leaves)
        self.explorers = explorers
        device = torch.device(device)
        self.network = RuleNetwork(vector, device)
        self.momenta = torch.zeros(len(DECAYS), self.parameters, device=device)
        """[6, parameters]"""
        self.carry = torch.zeros(self.network.size.carry, self.parameters, device=device)
        """[G, parameters]: the GRU state of each parameter."""
        self._decays = torch.tensor(DECAYS, device=device)[:, None]
        self._rest = 1.0 - self._decays  # in float32: 1 - 0.9999 is not 1e-4 there
        self._features = torch.zeros(FEATURES, self.parameters, device=device)
        for leaf, (start, end) in zip(self.leaves, self._bounds(), strict=True):
            self._features[DEPTH, start:end] = leaf.depth

    def _bounds(self) -> list[tuple[int, int]]:
        ends = np.cumsum([leaf.size for leaf in self.leaves]).tolist()
        return list(zip([0, *ends], ends, strict=False))

    def update(
        self,
        params: Tensor,
        gradient: Tensor,
        activity: Sequence[Tensor],
        training: float,
        epoch: float,
        noise: Tensor,
    ) -> Tensor:
        """Return the update [parameters] to subtract from ``params``, and update the state.

        ``gradient`` [parameters] has been clipped. ``activity`` has the mean absolute output of
        each unit for every layer, [units] each. ``training`` and ``epoch`` are
        :func:`proportions`. ``noise`` [explorers] is standard normal.
        """
        self.momenta.mul_(self._decays).add_(self._rest * gradient)
        features = self._compute_features(params, gradient, activity, training, epoch)
        magnitude, exponent, spread = self.network(features, self.carry)
        update: Tensor = exponent.mul_(STEP).exp_().mul_(magnitude).mul_(STEP)
        update[: self.explorers] += (spread[: self.explorers] * STEP).mul_(noise)
        return centred_(update)

    def _compute_features(
        self,
        params: Tensor,
        gradient: Tensor,
        activity: Sequence[Tensor],
        training: float,
        epoch: float,
    ) -> Tensor:
        """Return the features [19, parameters]; the next step reuses the memory."""
        features = self._features
        features[PARAMETER] = params
        torch.sign(self.momenta, out=features[SIGNS])
        torch.abs(self.momenta, out=features[LOGS])
        features[LOGS].add_(LOG_EPSILON).log_()
        torch.sign(gradient, out=features[GRADIENT_SIGN])
        torch.abs(gradient, out=features[GRADIENT_LOG])
        features[GRADIENT_LOG].add_(LOG_EPSILON).log_()
        features[TRAINING].fill_(training)
        features[EPOCH].fill_(epoch)
        states = [dormancy(layer) for layer in activity]
        for leaf, (start, end) in zip(self.leaves, self._bounds(), strict=True):
            normalised = features[NORMALISED, start:end]
            normalised.mul_(
                (normalised * normalised).mean(dim=1, keepdim=True).add_(SCALE_EPSILON).rsqrt_()
            )
            along = [1] * len(leaf.shape)
            along[leaf.axis] = -1
            features[DORMANCY, start:end].view(leaf.shape).copy_(states[leaf.layer].view(along))
        return features
