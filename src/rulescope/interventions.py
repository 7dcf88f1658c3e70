"""What is done to a carrier, and nothing else: the causal handle of every experiment.

An intervention is data (:mod:`rulescope.spec.run_spec`). A :class:`Treatment` applies one: it is
called once before the first iteration and once after each, and all it can do is to replace the
content of its one carrier. The functions that make up a new content are pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.core.errors import RecordError
from rulescope.learners.learner import Learner, under
from rulescope.spec.run_spec import (
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
"""What a carrier holds: arrays by name."""
States = Mapping[str, Arrays]
"""Terminal states of donors by run id, as records keep them (``carrier/array``)."""


class Treatment:
    """One intervention at work on one learner."""

    def __init__(
        self,
        intervention: Intervention,
        learner: Learner,
        states: States,
        seed: int,
        start: int = 0,
    ) -> None:
        """``start`` is the iteration after which the lifetime begins: 0, or that of a fork."""
        self._plan = intervention
        self._start = start
        self._carrier = learner.carriers[intervention.carrier]
        self._fresh = self._carrier.get()
        self._states = states
        self._seed = seed
        self._held: Content | None = None
        self._along: Directions | None = None
        if isinstance(intervention, PinSteps):
            nothing = zeros(self._fresh)
            learner.after_step.append(lambda: self._carrier.set(nothing))

    def act(self, iteration: int) -> None:
        """Do what is planned for the moment after ``iteration`` (0: the learner is newborn)."""
        value = self._change(iteration)
        if value is not None:
            self._carrier.set(value)
            self._held = value if self._restores else None
        elif self._held is not None:
            self._carrier.set(self._held)

    @property
    def _restores(self) -> bool:
        """Whether what was written once is to be restored after every later iteration."""
        if isinstance(self._plan, Ablate):
            return False  # it is made anew from what the learner made of it
        return isinstance(self._plan, Freeze | Hold) or getattr(self._plan, "mode", "") == "clamp"

    def _change(self, iteration: int) -> Content | None:
        """Return the content to write that is not the one held already, if there is any."""
        newborn = iteration == self._start
        match self._plan:
            case Pin():
                return None if iteration == 0 else zeros(self._carrier.get())
            case Placebo():
                return None if iteration == 0 else self._carrier.get()
            case Freeze(at=at):
                return self._carrier.get() if iteration == at else None
            case Hold():
                own = self._carrier.get()
                if newborn:
                    self._fresh = own  # what another intervention has made of it at birth
                return own if self._held is None and not same(own, self._fresh) else None
            case Reset(at=at):
                return self._fresh if iteration == at else None
            case Transplant(donor=donor):
                return self._terminal(donor) if newborn else None
            case RandomState(donors=donors):
                terminal = [self._terminal(donor) for donor in donors] if newborn else []
                return resembling(terminal, self._fresh, self._stream()) if newborn else None
            case Permute(at=at):
                return permuted(self._carrier.get(), self._stream()) if iteration == at else None
            case Ablate(at=at, mode=mode) as plan:
                due = iteration == at or (mode == "clamp" and iteration > at)
                return self._ablated(plan) if due else None

    def _ablated(self, plan: Ablate) -> Content:
        if self._along is None:
            terminal = [self._terminal(donor) for donor in plan.donors]
            rng = self._stream() if plan.which == "random" else None
            self._along = directions(terminal, plan.components, rng)
        return ablated(self._carrier.get(), self._along, complement=plan.which == "complement")

    def _stream(self) -> Generator:
        """Return the random stream of this intervention, which is drawn from at one moment only."""
        return seeds.stream(self._seed, "intervention", self._plan.operation, self._plan.carrier)

    def _terminal(self, donor: RunSpec) -> Content:
        """Return the donor's terminal content of the carrier, which must fit the recipient."""
        content = under(self._plan.carrier, self._states[donor.id])
        if set(content) != set(self._fresh):
            raise RecordError(
                f"donor {donor.id[:12]}: its carrier {self._plan.carrier!r} holds "
                f"{sorted(content)}, the recipient's {sorted(self._fresh)}"
            )
        for name, array in content.items():
            own = self._fresh[name]
            # A replay's arrays grow with what is stored; the rest of a shape is the learner's.
            first = 1 if self._plan.carrier == "replay" else 0
            if array.ndim != own.ndim or array.shape[first:] != own.shape[first:]:
                raise RecordError(
                    f"donor {donor.id[:12]}: its {self._plan.carrier}/{name} has shape "
                    f"{array.shape}, the recipient's {own.shape}"
                )
        return content

    def save(self) -> dict[str, NDArray[Any]]:
        """Return what a continuation needs: the content held, if any."""
        return dict(self._held or {})

    def load(self, saved: Arrays) -> None:
        """Continue from what :meth:`save` returned."""
        self._held = dict(saved) or None


def zeros(content: Content) -> Content:
    """Return arrays of zeros: the learner goes on without this part of its history."""
    return {name: np.zeros_like(array) for name, array in content.items()}


def same(one: Arrays, other: Arrays) -> bool:
    """Tell whether two contents are equal to the bit."""
    return set(one) == set(other) and all(
        array.shape == other[name].shape and array.tobytes() == other[name].tobytes()
        for name, array in one.items()
    )


def resembling(donors: Sequence[Arrays], own: Arrays, rng: Generator) -> Content:
    """Return a random content with the mean and spread that each unit has over the ``donors``.

    Arrays that are not of floating point are taken from ``own``.
    """
    drawn = {}
    for name in sorted(own):  # so that the draws do not depend on the order of a dictionary
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


def permuted(content: Arrays, rng: Generator) -> Content:
    """Return ``content`` with its units (the last axis) shuffled, alike in all arrays of a width.

    Only arrays of floating point have units; counters and indices stay.
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
    """Some directions in which donors differ, and where the donors are on average."""

    mean: NDArray[np.float64]
    """[units]"""
    basis: NDArray[np.float64]
    """[components, units]: orthonormal."""


def directions(
    donors: Sequence[Arrays], components: int, rng: Generator | None = None
) -> Directions:
    """Return the directions along which ``donors`` vary most; with ``rng``, as many random ones.

    Random directions are evenly distributed over all those in which the donors vary at all: in
    any others there would be nothing to take out.
    """
    states = np.stack([flat(donor) for donor in donors])
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


def ablated(content: Arrays, along: Directions, *, complement: bool = False) -> Content:
    """Return ``content`` with the donors' mean along the directions, or else across them."""
    own = flat(content)
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


def flat(content: Arrays) -> NDArray[np.float64]:
    """Return all arrays of floating point as one vector [units], in the order of their names."""
    parts = [content[name].reshape(-1) for name in sorted(content)]
    return np.concatenate([np.zeros(0), *(part for part in parts if part.dtype.kind == "f")])
