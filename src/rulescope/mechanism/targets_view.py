"""Targets: what the rule would say on the same batch if its recurrent state were another.

After some iterations a batch is drawn from the learner's own replay (by a stream of its own) and
one update is made on it, on copies: with the state as it is, with zero (pin), with the state that a
lifetime of the same scale and another seed has at that age (match), and with that of a lifetime of
the opposite scale (cross). Nothing else differs, and nothing of the lifetime changes.

Only the hidden half h of a state can make a difference within one update. Values have targets too,
but those come before the rule is asked: no state moves them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from torch import Tensor

from rulescope.assays.results import Column, Results, Table, Value, counted, scale_label
from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.diagnostics import measurements
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco.rule_network import RuleState
from rulescope.learners.disco.update import LearnerState, Step
from rulescope.lifetime import Lifetime
from rulescope.mechanism.target_divergence import (
    Floats,
    cosine,
    mean_kl,
    mean_total_variation,
    softmax,
)
from rulescope.mechanism.view_request import Group, Inquiry, Look, Observed, View
from rulescope.render.table_formats import RANGE_MARK
from rulescope.stats import Estimate

MOMENTS = 16
LIVE, PIN, MATCH, CROSS = "live", "pin", "match", "cross"
SWAPS = (PIN, MATCH, CROSS)
OUTPUTS = ("policy", "y", "z")
SHOWN = ("kl_policy", "kl_y", "kl_z", "agree", "size")
"""Quantities in the table."""


class Said(NamedTuple):
    """What the rule told the learner about a batch of N transitions, and what came of it."""

    policy: Floats
    """[N, A] probabilities"""
    y: Floats
    """[N, P] probabilities"""
    z: Floats
    """[N, P] probabilities"""
    value: Floats
    """[N] targets of the action values, which the rule has no part in"""
    gradient: Floats
    """[size] of the loss in the learner's parameters"""
    losses: dict[str, float]
    """How far the learner's outputs are from these targets: KL(target || output), by output."""


def moments(first: int, iterations: int) -> tuple[int, ...]:
    """Return after which iterations the rule is asked: denser at first, from ``first`` on."""
    places = np.geomspace(1, iterations - first + 1, MOMENTS)
    return tuple(sorted({first + round(float(place)) - 1 for place in places}))


def stages(inquiry: Inquiry) -> list[list[Group]]:
    """Return groups of two seeds (the last may have three or one) with all scales side by side."""
    when = moments(inquiry.first_update, inquiry.iterations)
    firsts = list(range(0, max(inquiry.seeds - 1, 1), 2))
    ends = [*firsts[1:], inquiry.seeds]
    return [
        [
            Group(
                {
                    f"{scale_label(scale)}/{seed}": inquiry.live(scale, seed)
                    for scale in inquiry.scales
                    for seed in range(first, end)
                },
                when,
            )
            for first, end in zip(firsts, ends, strict=True)
        ]
    ]


def observer(lives: Mapping[str, Lifetime]) -> Look:
    """Return a look that asks the rule about each learner's batch under every state."""
    sources = donors(list(lives))

    def look(iteration: int) -> Arrays:
        found: dict[str, Floats] = {}
        learners = {key: _disco(life) for key, life in lives.items()}
        for key, learner in learners.items():
            rng = seeds.stream(lives[key].spec.seed, "mechanism", "batch", iteration)
            batch = learner.batch(rng)
            live = ask(learner, batch, learner.state.recurrent)
            states = {PIN: learner.update.network.fresh()} | {
                swap: learners[source].state.recurrent for swap, source in sources[key].items()
            }
            seen = {LIVE: {f"loss_{name}": loss for name, loss in live.losses.items()}} | {
                swap: compared(live, ask(learner, batch, state)) for swap, state in states.items()
            }
            for state, numbers in seen.items():
                found |= {f"{key}/{state}/{name}": np.array(v) for name, v in numbers.items()}
        return found

    return look


def donors(keys: list[str]) -> dict[str, dict[str, str]]:
    """Return whose state each lifetime of a group gets in the arms match and cross, by its key.

    Keys are ``scale/seed``, scales ascending. Donors have the next seed of the group; a single one
    has no match, and a scale that is its own opposite has no cross.

    >>> donors(["0.1/0", "0.1/1", "10/0", "10/1"])["0.1/1"]
    {'match': '0.1/0', 'cross': '10/0'}
    """
    scales = list(dict.fromkeys(key.split("/")[0] for key in keys))
    pupils = list(dict.fromkeys(key.split("/")[1] for key in keys))
    found: dict[str, dict[str, str]] = {}
    for key in keys:
        scale, seed = key.split("/")
        other = pupils[(pupils.index(seed) + 1) % len(pupils)]
        opposite = scales[-1 - scales.index(scale)]
        found[key] = {MATCH: f"{scale}/{other}"} if other != seed else {}
        if opposite != scale:
            found[key][CROSS] = f"{opposite}/{other}"
    return found


def _disco(life: Lifetime) -> DiscoLearner:
    if not isinstance(life.learner, DiscoLearner):
        raise SpecError(f"learner: {type(life.learner).__name__} has no rule that sets targets")
    return life.learner


def ask(learner: DiscoLearner, batch: Batch, recurrent: RuleState) -> Said:
    """Return what the rule says to ``learner`` about ``batch`` with a ``recurrent`` state.

    A whole update is made, on copies of all that an update changes in place.
    """
    state = learner.state
    copy = LearnerState(
        params=state.params.clone(),
        target=state.target.clone(),
        recurrent=recurrent,
        averages=state.averages,
        moments=state.moments._replace(
            first=state.moments.first.clone(), second=state.moments.second.clone()
        ),
    )
    after, step = learner.update.fast_(copy, batch)
    losses = measurements(step, after, learner.update.interface)
    return _said(step, {name: losses[f"loss_{name}"] for name in OUTPUTS})


def _said(step: Step, losses: dict[str, float]) -> Said:
    targets = step.targets
    return Said(
        policy=softmax(_array(targets.policy.flatten(0, 1))),
        y=_array(targets.y.flatten(0, 1)),
        z=_array(targets.z.flatten(0, 1)),
        value=_array(step.estimate.q_target.flatten()),
        gradient=_array(step.gradient),
        losses=losses,
    )


def compared(live: Said, other: Said) -> dict[str, float]:
    """Return how what the rule says with another state differs from what it says with its own.

    ``kl_*`` are KL(with its own || with the other), ``value`` is the largest change of a value
    target; ``agree`` is the cosine between the two gradients and ``size`` the ratio of their
    lengths (other to own).
    """
    length = float(np.linalg.norm(live.gradient))
    return {
        "kl_policy": mean_kl(live.policy, other.policy),
        "kl_y": mean_kl(live.y, other.y),
        "kl_z": mean_kl(live.z, other.z),
        "moved": mean_total_variation(live.policy, other.policy),
        "value": float(np.abs(live.value - other.value).max()),
        "agree": cosine(live.gradient, other.gradient),
        "size": float(np.linalg.norm(other.gradient)) / length if length > 0 else float("nan"),
    }


def _array(tensor: Tensor) -> Floats:
    return tensor.cpu().numpy().astype(np.float64)


def analyse(inquiry: Inquiry, observed: list[Observed]) -> Results:
    """Gather every quantity by scale and state: [seeds, moments]."""
    when = np.array(observed[0].group.moments, dtype=np.float64)
    lines: dict[str, list[Floats]] = {}
    for one in observed:
        for key, values in one.seen.items():
            scale, _, state, quantity = key.split("/")
            lines.setdefault(f"{quantity}/{scale}/{state}", []).append(values)
    series = {key: np.stack(found) for key, found in lines.items()}
    late = when >= inquiry.iterations / 2
    found = {
        key: _ranged(values[:, late])
        for key, values in series.items()
        if np.isfinite(values[:, late]).any()
    }
    series |= {"iteration": when, "first": np.array([float(inquiry.first_update)])}
    table = _table(inquiry, found, int(late.sum()))
    return inquiry.results(VIEW, {"scale": inquiry.scales}, found, table, series)


def _ranged(values: Floats) -> Estimate:
    """Return the mean of ``values`` [seeds, moments] with the lowest and the highest of them."""
    known = values[np.isfinite(values)]
    low, high = float(known.min()), float(known.max())
    return Estimate(float(known.mean()), low, high, n=len(known), method="range")


def _table(inquiry: Inquiry, found: Mapping[str, Estimate], late: int) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scale in inquiry.scales:
        label = scale_label(scale)
        for state in SWAPS:
            kept = [found.get(f"{name}/{label}/{state}") for name in SHOWN]
            if any(one is not None for one in kept):
                rows.append((label, state, *kept))
    return Table(
        VIEW.label,
        "What the rule's targets do when its state is swapped",
        (
            Column("Reward scale"),
            Column("State"),
            Column("KL of the policy target", 6),
            Column("KL of the y target", 4),
            Column("KL of the z target", 4),
            Column("Cosine of gradients", 2),
            Column("Length of the gradient", 2),
        ),
        tuple(rows),
        f"{inquiry.in_words()}; same batch, same learner; KL(own state || other state) in nats; "
        "length of the gradient with the other state, in lengths of that with its own; mean, and "
        f"{RANGE_MARK}: lowest and highest, over {counted(inquiry.seeds, 'seed')} and the "
        f"{counted(late, 'moment')} looked at in the second half of a lifetime.",
        tells_n=False,
    )


VIEW = View(
    name="targets",
    title="What the rule's targets do when its state is swapped",
    question="On the same batch, what would the rule say with another recurrent state?",
    default=Inquiry("disco103", (1e-3, 1.0, 1e3), 2, 160),
    stages=stages,
    observer=observer,
    analyse=analyse,
)
