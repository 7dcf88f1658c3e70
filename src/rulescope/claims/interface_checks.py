"""Exact claims about the value interface: projection, readout, effective bins, value loss.

Everything is computed in float64.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from rulescope.claims.exact_result import ExactCheck, Inputs
from rulescope.claims.printed_numbers import WorkedWeights, printed
from rulescope.learners.disco.agent_network import Outputs
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.losses import losses, output_gradients
from rulescope.learners.disco.rule_network import Targets
from rulescope.learners.disco.value_interface import ValueInterface
from rulescope.learners.disco.value_interface import effective_bins as bins_of_mean
from rulescope.learners.disco_config import AGENTS, INTERFACES, Coefficients, Conventions
from rulescope.stats import effective_bins

AGENT = "published"
"""The agent whose arithmetic is checked. That of ``reference`` has 1e-5 in the denominator of the
projection, which moves the mean by about as much."""
TARGETS = 20_000
SEED = 20240
STEP = 1e-4
"""Of the central differences: their error is about 1e-9 in float64."""
SPREAD = 2.0
"""Standard deviation of the logits of a random prediction."""


def check_projection(_: Inputs) -> ExactCheck:
    """Compare means, readouts and worked examples of the projection with their targets."""
    moment, readout = projection_errors(AGENTS[AGENT])
    return ExactCheck(
        f"{TARGETS:,} random targets, inside and outside the support, were projected by each of "
        f"{len(INTERFACES)} interfaces and read out again; the worked examples were recomputed.",
        {
            "x:first-moment-error": moment,
            "x:readout-error": readout,
            "x:worked-weights-error": worked_weights_error(printed().worked_weights),
        },
    )


def projection_errors(conventions: Conventions) -> tuple[float, float]:
    """Return the largest error of the mean, and the largest relative error of the readout.

    The mean of the weights should be the clipped, transformed target. The readout is compared for
    targets inside the support only. Both are maxima over the three interfaces.
    """
    targets = _random_targets()
    moment = readout = 0.0
    for name, config in INTERFACES.items():
        interface = make_interface(name, conventions)
        weights = interface.project(targets).dense(config.bins)
        atoms = torch.arange(config.bins, dtype=torch.float64)
        support = atoms * (2.0 * config.bound / (config.bins - 1)) - config.bound
        wanted = interface.transform(targets)
        inside = wanted.abs() <= config.bound
        mean = (weights * support).sum(-1)
        moment = max(moment, _largest(mean - wanted.clamp(-config.bound, config.bound)))
        found = interface.readout(weights[inside])
        readout = max(readout, _largest((found - targets[inside]) / targets[inside]))
    return moment, readout


def worked_weights_error(examples: Iterable[WorkedWeights]) -> float:
    """Return the largest difference between printed and computed weights, of all atoms."""
    largest = 0.0
    for example in examples:
        bins = INTERFACES[example.interface].bins
        target = torch.tensor([example.target], dtype=torch.float64)
        weights = make_interface(example.interface).project(target).dense(bins)[0]
        expected = torch.zeros(bins, dtype=torch.float64)
        for atom, weight in example.weights.items():
            expected[atom] = weight
        largest = max(largest, _largest(weights - expected))
    return largest


def check_effective_bins(_: Inputs) -> ExactCheck:
    """Count the effective bins of one-hot and uniform predictions, by both of our functions."""
    expected = printed().bins
    bins = INTERFACES["default"].bins
    one_hot = np.where(np.eye(bins) > 0, 0.0, -1e4)  # logits whose softmax is exactly one-hot
    cases = {"one": one_hot[:1], "two": one_hot[[10, 400]], "uniform": np.zeros((1, bins))}
    errors = {}
    for name, logits in cases.items():
        mean = torch.tensor(logits).softmax(-1).mean(0)
        counts = (effective_bins(logits), bins_of_mean(mean))
        errors[name] = max(abs(count - expected[name]) for count in counts)
    return ExactCheck(
        "Effective bins of one one-hot prediction, of two on different atoms, and of a uniform "
        "one, from logits (as in analyses) and from probabilities (as in the log).",
        {
            "x:bins-of-one-onehot-minus-1": errors["one"],
            "x:bins-of-two-onehots-minus-2": errors["two"],
            "x:bins-of-uniform-minus-601": errors["uniform"],
        },
    )


def check_value_gradient(_: Inputs) -> ExactCheck:
    """Compare central differences of the value loss, and our closed form, with c (p - w)."""
    return ExactCheck(
        "Central differences of the value loss in every logit of a random prediction, and the "
        "closed-form gradient that lifetimes use, against coefficient x (prediction - weight), "
        f"for {len(INTERFACES)} interfaces.",
        {"x:gradient-error": max(value_gradient_error(name) for name in INTERFACES)},
    )


def value_gradient_error(name: str, coefficient: float | None = None) -> float:
    """Return the largest error of either gradient of the value loss under one interface.

    ``coefficient`` is that of the expected gradient, if not that of the loss itself.
    """
    c = Coefficients().value
    interface = make_interface(name)
    generator = torch.Generator().manual_seed(SEED)
    bins = interface.config.bins
    logits = SPREAD * torch.randn(1, bins, generator=generator, dtype=torch.float64)
    probabilities = logits.softmax(-1)
    target = interface.readout(probabilities) + 0.7
    weights = interface.project(target).dense(bins)
    expected = (c if coefficient is None else coefficient) * (probabilities - weights)[0]
    moved = STEP * torch.eye(bins, dtype=torch.float64)
    above, below = (_value_losses(logits + sign * moved, target, interface) for sign in (1.0, -1.0))
    differences = c * (above - below) / (2.0 * STEP)
    closed = _closed_form(probabilities, target, interface, c)
    return max(_largest(differences - expected), _largest(closed - expected))


def check_linear_support(_: Inputs) -> ExactCheck:
    """Transform a large target by the linear, the default and the narrow interface."""
    target = torch.tensor(printed().large_target, dtype=torch.float64)
    found = {name: float(make_interface(name).transform(target)) for name in INTERFACES}
    bounds = {name: config.bound for name, config in INTERFACES.items()}
    narrow = make_interface("support30")
    weights = narrow.project(target.reshape(1)).dense(narrow.config.bins)
    back = float(narrow.readout(weights)[0])
    return ExactCheck(
        f"A target of {float(target):g} in the coordinate of each support: "
        + ", ".join(f"{name} {found[name]:.4g} of {bounds[name]:g}" for name in INTERFACES)
        + f"; the narrow support returns it as {back:.1f}.",
        {
            "x:linear-target": found["linear"],
            "x:transformed-target": found["default"],
            "x:linear-bound": bounds["linear"],
            "x:narrow-target": found["support30"],
            "x:narrow-readout": back,
        },
    )


def make_interface(name: str, conventions: Conventions = AGENTS[AGENT]) -> ValueInterface:
    """Return one of :data:`INTERFACES` with the arithmetic of ``conventions``."""
    return ValueInterface(INTERFACES[name], conventions, torch.device("cpu"))


def _random_targets() -> Tensor:
    """Return targets [TARGETS] of both signs, their magnitudes log-uniform from 1e-3 to 1e6."""
    generator = torch.Generator().manual_seed(SEED)
    exponent, side = torch.rand(2, TARGETS, generator=generator, dtype=torch.float64)
    magnitude = torch.pow(10.0, 9.0 * exponent - 3.0)
    return torch.where(side < 0.5, -magnitude, magnitude)


def _largest(errors: Tensor) -> float:
    return float(errors.abs().max())


def _value_losses(logits: Tensor, target: Tensor, interface: ValueInterface) -> Tensor:
    """Return the unweighted value loss [K] of each prediction [K, bins] for one ``target``."""
    outputs, batch, targets = _single_steps(logits)
    # The loss is given the difference to its own readout, so this keeps the target where it is.
    td = (target - interface.readout(logits.softmax(-1))).unsqueeze(1)
    return losses(outputs, batch, targets, td, interface).value[:, 0]


def _closed_form(
    probabilities: Tensor, target: Tensor, interface: ValueInterface, coefficient: float
) -> Tensor:
    """Return the gradient [bins] that a lifetime would use for one prediction [1, bins]."""
    outputs, batch, targets = _single_steps(probabilities)
    only_value = Coefficients(policy=0.0, y=0.0, z=0.0, aux=0.0, value=coefficient)
    aim = interface.project(target.reshape(1, 1))
    share = torch.ones(1, 1, dtype=torch.float64)
    return output_gradients(outputs, batch, targets, aim, share, only_value).q[0]


def _single_steps(values: Tensor) -> tuple[Outputs, Batch, Targets]:
    """Return a batch in which each row of ``values`` [K, bins] is one transition of its own.

    There is one action, so that ``values`` are all that the outputs have; the rest is zero.
    """
    count = len(values)
    one = values.new_zeros(count + 1, 1)
    outputs = Outputs(
        logits=one,
        y=one,
        z=one.unsqueeze(1),
        aux=one.unsqueeze(1),
        q=torch.cat([values, values[-1:]]).unsqueeze(1),  # the last row is only arrived at
    )
    batch = Batch(
        rows=one,
        index=torch.arange(count + 1).unsqueeze(1),
        actions=torch.zeros(count, 1, dtype=torch.int64),
        rewards=one[1:],
        terminals=one[1:],
        behaviour=one[1:].unsqueeze(1),
        began=one[0],
    )
    aims = one[1:].unsqueeze(1)
    return outputs, batch, Targets(aims, aims, aims, aims, aims)
