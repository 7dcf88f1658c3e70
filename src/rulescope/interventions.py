"""Interventions on carriers.

An intervention is data (:mod:`rulescope.run_spec`). A :class:`Treatment` applies one: it is
called before the first iteration and after each one, and can only replace the value of its
carrier. The functions that compute a new value are pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.arrays import Arrays, bit_equal, unprefix
from rulescope.core.errors import RecordError
from rulescope.learners.learner import Learner
from rulescope.run_spec import (
    Ablate,
    Freeze,
    Hold,
    Intervention,
    Permute,
    Pin,
    PinSteps,
    Placebo,
    RandomState,
    Reset,
    RunSpec,
    Transplant,
)

Content = dict[str, NDArray[Any]]
"""The value of a carrier: arrays by name."""
States = Mapping[str, Arrays]
"""Terminal states of donors by run id, as in records (named ``carrier/array``)."""


class Treatment:
    """One intervention on one learner."""

    def __init__(
        self,
        intervention: Intervention,
        learner: Learner,
        states: States,
        seed: int,
        start: int = 0,
    ) -> None:
        """``start`` is the iteration after which the run starts: 0, or that of a fork."""
        self._plan = intervention
        self._start = start
        self._carrier = learner.carriers[intervention.carrier]
        self._grows = intervention.carrier in learner.growing_carriers
        self._initial = self._carrier.get()
        self._states = states
        self._seed = seed
        self._held: Content | None = None
        self._directions: Directions | None = None
        if isinstance(intervention, PinSteps):
            zeros = zeros_like_content(self._initial)
            learner.after_step.append(lambda: self._carrier.set(zeros))

    def act(self, iteration: int) -> None:
        """Apply the intervention after ``iteration`` (0: before the first one)."""
        value = self._new_value(iteration)
        if value is not None:
            self._carrier.set(value)
            self._held = value if self._restores else None
        elif self._held is not None:
            self._carrier.set(self._held)

    @property
    def _restores(self) -> bool:
        """Whether the value written once is restored after every later iteration."""
        if isinstance(self._plan, Ablate):
            return False  # computed anew after every iteration from the current value
        return isinstance(self._plan, Freeze | Hold) or getattr(self._plan, "mode", "") == "clamp"

    def _new_value(self, iteration: int) -> Content | None:
        """Return the new carrier value for this iteration, or None."""
        initial = iteration == self._start
        match self._plan:
            case Pin():
                return None if iteration == 0 else zeros_like_content(self._carrier.get())
            case Placebo():
                return None if iteration == 0 else self._carrier.get()
            case Freeze(at=at):
                return self._carrier.get() if iteration == at else None
            case Hold():
                own = self._carrier.get()
                if initial:
                    self._initial = own  # another intervention may have changed it
                return own if self._held is None and not bit_equal(own, self._initial) else None
            case Reset(at=at):
                return self._initial if iteration == at else None
            case Transplant(donor=donor):
                return self._terminal_value(donor) if initial else None
            case RandomState(donors=donors):
                if not initial:
                    return None
                terminal = [self._terminal_value(donor) for donor in donors]
                return sample_like_donors(terminal, self._initial, self._stream())
            case Permute(at=at):
                due = iteration == at
                return permute_units(self._carrier.get(), self._stream()) if due else None
            case Ablate(at=at, mode=mode) as plan:
                due = iteration == at or (mode == "clamp" and iteration > at)
                return self._ablate(plan) if due else None

    def _ablate(self, plan: Ablate) -> Content:
        if self._directions is None:
            terminal = [self._terminal_value(donor) for donor in plan.donors]
            rng = self._stream() if plan.which == "random" else None
            self._directions = find_directions(terminal, plan.components, rng)
        complement = plan.which == "complement"
        return ablate_directions(self._carrier.get(), self._directions, complement=complement)

    def _stream(self) -> Generator:
        """Return the random stream of this intervention, which is used in one iteration only."""
        return seeds.stream(self._seed, "intervention", self._plan.operation, self._plan.carrier)

    def _terminal_value(self, donor: RunSpec) -> Content:
        """Return the donor's terminal value of the carrier; its shapes must be the recipient's."""
        content = unprefix(self._plan.carrier, self._states[donor.id])
        if set(content) != set(self._initial):
            raise RecordError(
                f"donor {donor.id[:12]}: its carrier {self._plan.carrier!r} holds "
                f"{sorted(content)}, the recipient's {sorted(self._initial)}"
            )
        for name, array in content.items():
            own = self._initial[name]
            # The first axis of a replay's arrays grows with the number of stored entries.
            first = 1 if self._grows else 0
            if array.ndim != own.ndim or array.shape[first:] != own.shape[first:]:
                raise RecordError(
                    f"donor {donor.id[:12]}: its {self._plan.carrier}/{name} has shape "
                    f"{array.shape}, the recipient's {own.shape}"
                )
        return content

    def save(self) -> dict[str, NDArray[Any]]:
        """Return the value to restore, if any; resuming needs nothing else."""
        return dict(self._held or {})

    def load(self, saved: Arrays) -> None:
        """Continue from what :meth:`save` returned."""
        self._held = dict(saved) or None


def zeros_like_content(content: Content) -> Content:
    """Return arrays of zeros of the same shapes."""
    return {name: np.zeros_like(array) for name, array in content.items()}


def sample_like_donors(donors: Sequence[Arrays], own: Arrays, rng: Generator) -> Content:
    """Return random values with the mean and deviation of each unit over the ``donors``.

    Arrays that are not of floating point are copied from ``own``.
    """
    drawn = {}
    for name in sorted(own):  # the draws must not depend on the order of a dictionary
        like = own[name]
        if like.dtype.kind != "f":
            drawn[name] = like.copy()
            continue
        shapes = {donor[name].shape for donor in donors}
        if shapes != {like.shape}:
            raise RecordError(f"{name}: donors have shapes {shapes}, the recipient {like.shape}")
        values = np.stack([donor[name] for donor in donors]).astype(np.float64)
        noise = rng.standard_normal(like.shape)
        drawn[name] = (values.mean(axis=0) + values.std(axis=0) * noise).astype(like.dtype)
    return drawn


def permute_units(content: Arrays, rng: Generator) -> Content:
    """Return ``content`` with its units (the last axis) permuted, equally in all arrays of a width.

    Only arrays of floating point have units; counters and indices are unchanged.
    """
    orders: dict[int, NDArray[np.int64]] = {}
    shuffled = {}
    for name in sorted(content):
        array = content[name]
        if array.dtype.kind != "f" or array.ndim == 0:
            shuffled[name] = array.copy()
            continue
        width = array.shape[-1]
        if width not in orders:
            orders[width] = rng.permutation(width)
        shuffled[name] = array[..., orders[width]]
    return shuffled


class Directions(NamedTuple):
    """Directions in which donors differ, and the mean of the donors."""

    mean: NDArray[np.float64]
    """[units]"""
    basis: NDArray[np.float64]
    """[components, units]: orthonormal."""


def find_directions(
    donors: Sequence[Arrays], components: int, rng: Generator | None = None
) -> Directions:
    """Return the directions along which ``donors`` vary most; with ``rng``, as many random ones.

    Random directions are uniform over the subspace in which the donors vary: in other directions
    there is nothing to remove.
    """
    states = np.stack([flatten_floats(donor) for donor in donors])
    mean = states.mean(axis=0)
    _, spread, axes = np.linalg.svd(states - mean, full_matrices=False)
    least = max(spread, default=0.0) * max(states.shape) * np.finfo(np.float64).eps
    rank = min(int((spread > least).sum()), len(donors) - 1)
    if components > rank:
        raise RecordError(f"the donors vary along {rank} directions only, not {components}")
    if rng is None:
        return Directions(mean, axes[:components])
    turned, _ = np.linalg.qr(rng.standard_normal((rank, components)))
    return Directions(mean, turned.T @ axes[:rank])


def ablate_directions(content: Arrays, along: Directions, *, complement: bool = False) -> Content:
    """Return ``content`` with the donors' mean along ``along``, or in its complement."""
    own = flatten_floats(content)
    part = (own - along.mean) @ along.basis.T @ along.basis
    left = along.mean + part if complement else own - part
    made, start = {}, 0
    for name in sorted(content):
        array = content[name]
        if array.dtype.kind != "f":
            made[name] = array.copy()
            continue
        made[name] = left[start : start + array.size].reshape(array.shape).astype(array.dtype)
        start += array.size
    return made


def flatten_floats(content: Arrays) -> NDArray[np.float64]:
    """Return all arrays of floating point as one vector [units], in the order of their names."""
    parts = [content[name].reshape(-1) for name in sorted(content)]
    return np.concatenate([np.zeros(0), *(part for part in parts if part.dtype.kind == "f")])
