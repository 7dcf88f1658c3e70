"""Targets view: the rule's targets on one batch under another recurrent state.

After some iterations a batch is drawn from the learner's own replay (with a separate random stream)
and one update is made on it, on copies, under each of these recurrent states: the learner's own
(live), zero (pin), that of a lifetime of the same scale and another seed at the same age (match),
and that of a lifetime of the opposite scale (cross). Nothing else differs, and the lifetime does
not change.

Only the hidden half h of a state has an effect within one update. The targets of values are
computed before the rule is applied, so no state changes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rulescope.assays.estimates import Estimates, Label
from rulescope.assays.results import Column, Results, Table, Value, counted, scale_label
from rulescope.core import seeds
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.diagnostics import measurements
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco.rule_network import RuleState
from rulescope.learners.disco.update import LearnerState
from rulescope.lifetime import Lifetime
from rulescope.mechanism.targets_figure import CAPTION, draw_targets
from rulescope.mechanism.view_request import Observations, Observer, RunGroup, View, ViewRequest
from rulescope.render.tables import RANGE_MARK
from rulescope.stats import Estimate

MOMENTS = 16
LIVE, PIN, MATCH, CROSS = "live", "pin", "match", "cross"
OUTPUTS = ("policy", "y", "z")
TABLE_QUANTITIES = ("kl_policy", "kl_y", "kl_z", "agree", "size")

Floats = NDArray[np.float64]


class RuleResponse(NamedTuple):
    """The rule's targets for a batch of N transitions, and the update that follows from them."""

    policy: Floats
    """[N, A] probabilities."""
    y: Floats
    """[N, P] probabilities."""
    z: Floats
    """[N, P] probabilities."""
    value: Floats
    """[N] targets of the action values, which do not depend on the rule."""
    gradient: Floats
    """[size] of the loss in the learner's parameters."""
    losses: dict[str, float]
    """KL(target || learner's output), by output."""


def moments(first: int, iterations: int) -> tuple[int, ...]:
    """Return the iterations after which the rule is queried: log-spaced from ``first`` on."""
    places = np.geomspace(1, iterations - first + 1, MOMENTS)
    return tuple(sorted({first + round(float(place)) - 1 for place in places}))


def stages(request: ViewRequest) -> list[list[RunGroup]]:
    """Return groups of all scales and two seeds each (the last may have three or one)."""
    when = moments(request.first_update, request.iterations)
    firsts = list(range(0, max(request.seeds - 1, 1), 2))
    ends = [*firsts[1:], request.seeds]
    return [
        [
            RunGroup(
                {
                    f"{scale_label(scale)}/{seed}": request.run_without_intervention(scale, seed)
                    for scale in request.scales
                    for seed in range(first, end)
                },
                when,
            )
            for first, end in zip(firsts, ends, strict=True)
        ]
    ]


def attach_observer(lifetimes: Mapping[str, Lifetime]) -> Observer:
    """Return an observer that queries the rule on each learner's batch under every state."""
    donors = find_donors(list(lifetimes))

    def observe(iteration: int) -> Arrays:
        found: dict[str, Floats] = {}
        learners = {key: _disco_learner(lifetime) for key, lifetime in lifetimes.items()}
        for key, learner in learners.items():
            rng = seeds.stream(lifetimes[key].spec.seed, "mechanism", "batch", iteration)
            batch = learner.batch(rng)
            live = query_rule(learner, batch, learner.state.recurrent)
            swaps = {PIN: learner.update.network.fresh()} | {
                swap: learners[donor].state.recurrent for swap, donor in donors[key].items()
            }
            quantities = {LIVE: {f"loss_{name}": loss for name, loss in live.losses.items()}} | {
                swap: compare_responses(live, query_rule(learner, batch, state))
                for swap, state in swaps.items()
            }
            for state, numbers in quantities.items():
                found |= {f"{key}/{state}/{name}": np.array(v) for name, v in numbers.items()}
        return found

    return observe


def find_donors(keys: list[str]) -> dict[str, dict[str, str]]:
    """Return the donor of each lifetime of a group in the arms match and cross, by its key.

    Keys are ``scale/seed``, scales ascending. Donors have the next seed of the group; a single one
    has no match, and a scale that is its own opposite has no cross.

    >>> find_donors(["0.1/0", "0.1/1", "10/0", "10/1"])["0.1/1"]
    {'match': '0.1/0', 'cross': '10/0'}
    """
    scales = list(dict.fromkeys(key.split("/")[0] for key in keys))
    group_seeds = list(dict.fromkeys(key.split("/")[1] for key in keys))
    found: dict[str, dict[str, str]] = {}
    for key in keys:
        scale, seed = key.split("/")
        other = group_seeds[(group_seeds.index(seed) + 1) % len(group_seeds)]
        opposite = scales[-1 - scales.index(scale)]
        found[key] = {MATCH: f"{scale}/{other}"} if other != seed else {}
        if opposite != scale:
            found[key][CROSS] = f"{opposite}/{other}"
    return found


def _disco_learner(lifetime: Lifetime) -> DiscoLearner:
    if not isinstance(lifetime.learner, DiscoLearner):
        raise SpecError(f"learner: {type(lifetime.learner).__name__} has no rule that sets targets")
    return lifetime.learner


def query_rule(learner: DiscoLearner, batch: Batch, recurrent: RuleState) -> RuleResponse:
    """Return the response of the learner's rule to ``batch`` with the state ``recurrent``.

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
    return RuleResponse(
        policy=softmax(_array(step.targets.policy.flatten(0, 1))),
        y=_array(step.targets.y.flatten(0, 1)),
        z=_array(step.targets.z.flatten(0, 1)),
        value=_array(step.estimate.q_target.flatten()),
        gradient=_array(step.gradient),
        losses={name: losses[f"loss_{name}"] for name in OUTPUTS},
    )


def _array(tensor: Tensor) -> Floats:
    return tensor.cpu().numpy().astype(np.float64)


def compare_responses(live: RuleResponse, other: RuleResponse) -> dict[str, float]:
    """Return how the response with another state differs from the one with the learner's own.

    ``kl_*`` are KL(own || other), ``moved`` is the total variation of the policy target, ``value``
    the largest change of a value target, ``agree`` the cosine between the two gradients and
    ``size`` the ratio of their lengths (other to own).
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


def softmax(logits: Floats) -> Floats:
    """Return the probabilities [..., K] of ``logits`` [..., K]."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def mean_kl(one: Floats, other: Floats) -> float:
    """Return the mean of KL(one || other) in nats, over distributions [..., K].

    Probabilities that have underflown to zero count as the smallest normal float32.
    """
    least = float(np.finfo(np.float32).tiny)
    ratio = np.log(np.maximum(one, least)) - np.log(np.maximum(other, least))
    # Rounding can leave the divergence of two equal distributions just below zero.
    return max(float((one * ratio).sum(axis=-1).mean()), 0.0)


def mean_total_variation(one: Floats, other: Floats) -> float:
    """Return the mean total variation distance of distributions [..., K]: 0 equal, 1 disjoint."""
    return float(0.5 * np.abs(one - other).sum(axis=-1).mean())


def cosine(one: Floats, other: Floats) -> float:
    """Return the cosine of the angle between two vectors [size]; NaN if either is zero."""
    sizes = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.vdot(one, other)) / sizes if sizes > 0 else float("nan")


def analyse(request: ViewRequest, observations: list[Observations]) -> Results:
    """Collect every quantity by scale and state: [seeds, moments]."""
    when = np.array(observations[0].group.moments, dtype=np.float64)
    lines: dict[str, list[Floats]] = {}
    for one in observations:
        for key, values in one.values.items():
            scale, _, state, quantity = key.split("/")
            lines.setdefault(f"{quantity}/{scale}/{state}", []).append(values)
    series = {key: np.stack(of_seeds) for key, of_seeds in lines.items()}
    late = when >= request.iterations / 2
    estimates = Estimates()
    for key, values in series.items():
        if np.isfinite(values[:, late]).any():
            quantity, scale, state = key.split("/")
            labels: dict[str, Label] = {"scale": float(scale), "state": state}
            estimates.add(quantity, _mean_with_range(values[:, late]), labels)
    series |= {"iteration": when, "first": np.array([float(request.first_update)])}
    table = _table(request, estimates, int(late.sum()))
    return request.results(VIEW, {"scale": request.scales}, estimates, table, series)


def _mean_with_range(values: Floats) -> Estimate:
    """Return the mean of ``values`` [seeds, moments] with the lowest and the highest of them."""
    known = values[np.isfinite(values)]
    low, high = float(known.min()), float(known.max())
    return Estimate(float(known.mean()), low, high, n=len(known), method="range")


def _table(request: ViewRequest, estimates: Estimates, late: int) -> Table:
    rows: list[tuple[Value, ...]] = []
    for scale in request.scales:
        for state in (PIN, MATCH, CROSS):
            cells = [estimates.lookup(name, scale=scale, state=state) for name in TABLE_QUANTITIES]
            if any(one is not None for one in cells):
                rows.append((scale_label(scale), state, *cells))
    return Table(
        VIEW.label,
        "Change of the rule's targets under another recurrent state",
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
        f"{request.describe()}; same batch, same learner; KL(own state || other state) in nats; "
        "length of the gradient with the other state, relative to that with its own; mean, and "
        f"{RANGE_MARK}: lowest and highest, over {counted(request.seeds, 'seed')} and the "
        f"{counted(late, 'moment')} observed in the second half of a lifetime.",
        tells_n=False,
    )


VIEW = View(
    name="targets",
    title="Targets of the rule under another recurrent state",
    question="How do the rule's targets for the same batch change with its recurrent state?",
    caption=CAPTION,
    default_request=ViewRequest("disco103", (1e-3, 1.0, 1e3), 2, 160),
    stages=stages,
    attach_observer=attach_observer,
    analyse=analyse,
    draw=draw_targets,
)
