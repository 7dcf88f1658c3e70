"""Continual Backprop: replace the hidden units that contribute least, a few at a time.

After every step of the optimiser each hidden layer makes its units one step older and moves their
utility toward the mean size of their activations times the mean size of their outgoing weights.
Of the units older than the maturity a small share is replaced, those of least utility: new
incoming weights, no bias, no effect on the outputs (Dohare et al., 2024). The moments of the
optimiser stay as they are, as in the authors' experiments in reinforcement learning. Among units
of equal utility, such as those that are never active, the first ones are replaced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core.arrays import Arrays
from rulescope.learners.adam import array, write
from rulescope.learners.learner import Carrier
from rulescope.learners.learner_base import UnitReplacement
from rulescope.learners.torso import HiddenLayer

REPLACEMENT_METRICS = ("replaced_share", "unit_age", "unit_utility")
"""Log columns: replacements so far for each hidden unit; mean age in updates; mean utility."""
STREAM = "replacement"
"""The random stream of new weights, and of whether there are any."""


class Replacement:
    """Ages and utilities of the units in ``layers``, whose weights it replaces in place.

    The carrier holds for each layer k: ``age.k`` [units] int64, the updates since the unit was new,
    and ``utility.k`` [units] float32, without correction of its bias toward zero; and
    ``replaced``, the number of replacements so far.
    """

    def __init__(self, config: UnitReplacement, layers: Sequence[HiddenLayer]) -> None:
        self.config = config
        self.layers = tuple(layers)
        device = layers[0].bias.device
        self.ages = [torch.zeros(layer.units, dtype=torch.int64, device=device) for layer in layers]
        """[units] of each layer"""
        self.utilities = [torch.zeros(layer.units, device=device) for layer in layers]
        """[units] of each layer"""
        self.replaced = 0
        self.carrier = Carrier(self._get, self._set)

    def step_(self, activations: Sequence[Tensor], rng: Generator) -> None:
        """Age all units by one update and replace those that are due.

        ``activations`` [R, places, units] of each layer are those that the update was computed
        from; the weights are those after it.
        """
        due = [self._choose(k, shown, rng) for k, shown in enumerate(activations)]
        for k, units in enumerate(due):
            if len(units):
                self._replace_(k, units, rng)

    def metrics(self) -> dict[str, float]:
        """Return the log columns."""
        units = sum(layer.units for layer in self.layers)
        utilities = torch.cat([self._corrected(k) for k in range(len(self.layers))])
        return {
            "replaced_share": self.replaced / units,
            "unit_age": float(torch.cat(self.ages).double().mean()),
            "unit_utility": float(utilities.double().mean()),
        }

    def _choose(self, k: int, activations: Tensor, rng: Generator) -> Tensor:
        """Update ages and utilities of layer k; return the units that are due [count]."""
        config, decay = self.config, self.config.decay
        self.ages[k] += 1
        outgoing = self.layers[k].outgoing.abs().mean(dim=2)  # [places, units]
        contribution = (outgoing * activations.abs().mean(dim=0)).mean(dim=0)
        self.utilities[k].mul_(decay).add_(contribution, alpha=1.0 - decay)
        mature = torch.where(self.ages[k] > config.maturity)[0]
        wanted = config.rate * len(mature)
        if 0.0 < wanted < 1.0:
            wanted = float(rng.random() <= wanted)
        if int(wanted) == 0:
            return mature[:0]
        if config.utility == "random":
            rank = torch.from_numpy(rng.random(len(mature))).to(mature.device)
        else:
            rank = self._corrected(k)[mature]
        return mature[rank.argsort(stable=True)[: int(wanted)]]

    def _corrected(self, k: int) -> Tensor:
        """Return the utilities [units] of layer k as means since the units were new."""
        seen = 1.0 - self.config.decay ** self.ages[k]
        return torch.where(self.ages[k] > 0, self.utilities[k] / seen, 0.0)

    def _replace_(self, k: int, units: Tensor, rng: Generator) -> None:
        """Make ``units`` [count] of layer k new."""
        layer = self.layers[k]
        inputs = len(layer.incoming)
        bound = math.sqrt((3.0 if self.config.initial == "lecun" else 1.0) / inputs)
        fresh = rng.uniform(-bound, bound, size=(len(units), inputs)).astype(np.float32)
        layer.incoming[:, units] = torch.from_numpy(fresh).to(layer.incoming.device).T
        layer.bias[units] = 0.0
        layer.outgoing[:, units] = 0.0
        self.ages[k][units] = 0
        self.utilities[k][units] = 0.0
        self.replaced += len(units)

    def _get(self) -> dict[str, NDArray[Any]]:
        held: dict[str, NDArray[Any]] = {"replaced": np.array(self.replaced, dtype=np.int64)}
        for k, (age, utility) in enumerate(zip(self.ages, self.utilities, strict=True)):
            held |= {f"age.{k}": array(age), f"utility.{k}": array(utility)}
        return held

    def _set(self, content: Arrays) -> None:
        self.replaced = int(content["replaced"])
        for k, (age, utility) in enumerate(zip(self.ages, self.utilities, strict=True)):
            write(content[f"age.{k}"], age)
            write(content[f"utility.{k}"], utility)
