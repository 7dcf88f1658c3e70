"""One learner step, in two forms that a test proves equal.

``definition`` follows the equations line by line and is differentiable in the rule's weights (it is
what meta-training uses). ``DiscoUpdate.fast_`` does the same arithmetic once per distinct
observation and changes the state in place; it is what a lifetime runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rulescope.agents.network import PER_ACTION_HEADS, Agent, Head, Outputs, Trunk
from rulescope.learners.adam import Moments, clipped_adam, clipped_adam_
from rulescope.learners.disco.batch import Batch, loss_mask
from rulescope.learners.disco.closed_form import Pull, output_gradients
from rulescope.learners.disco.config import Disco
from rulescope.learners.disco.features import Predictions
from rulescope.learners.disco.interface import ValueInterface
from rulescope.learners.disco.losses import Losses, losses, share, total
from rulescope.learners.disco.meta_net import MetaNetwork, RuleState, Targets, Trace
from rulescope.learners.disco.value import Averages, Estimate, estimate


class LearnerState(NamedTuple):
    """Everything a learner carries from one update to the next, replay aside."""

    params: Tensor
    """[size] the agent's flat parameter vector"""
    target: Tensor
    """[size] its slow average"""
    recurrent: RuleState
    averages: Averages
    moments: Moments


class Step(NamedTuple):
    """What one update looked like from inside."""

    batch: Batch
    outputs: Outputs
    """Logits on the distinct rows, before the update."""
    probabilities: Outputs
    """Their softmaxes."""
    targets: Targets
    estimate: Estimate
    trace: Trace
    mask: Tensor
    """[T, B]"""
    gradient: Tensor
    """[size]"""
    losses: Losses | None
    loss: Tensor | None
    """Only the definition evaluates the losses themselves."""


class DiscoUpdate:
    """A learner step for one agent, one rule and one configuration."""

    def __init__(self, agent: Agent, network: MetaNetwork, config: Disco) -> None:
        self.agent = agent
        self.network = network
        self.config = config
        self.interface = ValueInterface(config.interface, config.conventions, network.device)

    def fresh(self, params: Tensor) -> LearnerState:
        """Return the state of a learner that starts from ``params`` [size]."""
        return LearnerState(
            params=params,
            target=params.clone(),
            recurrent=self.network.fresh(),
            averages=Averages.fresh(params),
            moments=Moments.fresh(params),
        )

    def definition(self, state: LearnerState, batch: Batch) -> tuple[LearnerState, Step]:
        """Return the state after one update on ``batch``; differentiable in weights and state."""
        layout, config = self.agent.layout, self.config
        outputs = self.agent.outputs(layout.views(state.params), batch.rows)
        probabilities = softmaxes(outputs)
        targets, found, recurrent, averages, trace = self._consult(
            state, batch, probabilities, outputs.logits.detach()
        )
        # The rule's targets are constants of the inner derivative even where they depend on the
        # parameters, so the loss is taken at an alias that the targets do not know.
        alias = state.params.view_as(state.params)
        if not alias.requires_grad:
            alias = alias.detach().requires_grad_()
        mask = loss_mask(batch, config.conventions.loss_mask)
        terms = losses(
            self.agent.outputs(layout.views(alias), batch.rows),
            batch,
            targets,
            found.td,
            self.interface,
        )
        loss = total(terms, mask, config.coefficients)
        (gradient,) = torch.autograd.grad(loss, alias, create_graph=True)
        params, moments = clipped_adam(state.params, gradient, state.moments, config.learning_rate)
        decay = config.target_decay
        target = decay * state.target + (1.0 - decay) * state.params
        step = Step(
            batch, outputs, probabilities, targets, found, trace, mask, gradient, terms, loss
        )
        return LearnerState(params, target, recurrent, averages, moments), step

    @torch.no_grad()
    def fast_(self, state: LearnerState, batch: Batch) -> tuple[LearnerState, Step]:
        """Do the same by closed-form output gradients, changing the flat vectors in place."""
        layout, config = self.agent.layout, self.config
        leaves = layout.leaves(state.params)
        with torch.enable_grad():
            trunk = self.agent.trunk(leaves, batch.rows)
        heads = [Head(leaves, name, trunk.model) for name in PER_ACTION_HEADS]
        outputs = self.agent.join(trunk, heads)
        probabilities = softmaxes(outputs)
        targets, found, recurrent, averages, trace = self._consult(
            state, batch, probabilities, outputs.logits
        )
        mask = loss_mask(batch, config.conventions.loss_mask)
        aim = self.interface.project(batch.taken(found.q) + found.td)
        pull = output_gradients(
            probabilities, batch, targets, aim, share(mask), config.coefficients
        )
        gradient = layout.flatten(_backward(leaves, trunk, heads, pull))
        state.target.lerp_(state.params, 1.0 - config.target_decay)
        moments = clipped_adam_(state.params, gradient, state.moments, config.learning_rate)
        step = Step(
            batch, outputs, probabilities, targets, found, trace, mask, gradient, None, None
        )
        return LearnerState(state.params, state.target, recurrent, averages, moments), step

    def _consult(
        self, state: LearnerState, batch: Batch, online: Outputs, logits: Tensor
    ) -> tuple[Targets, Estimate, RuleState, Averages, Trace]:
        """Estimate values and ask the rule for targets; ``online`` are softmaxes on the rows."""
        config = self.config
        slow = softmaxes(self.agent.outputs(self.agent.layout.views(state.target), batch.rows))
        with torch.no_grad():
            found, averages = estimate(
                batch,
                logits.log_softmax(-1),
                self.interface.readout(online.q),
                self.interface.readout(slow.q),
                state.averages,
                discount=config.discount,
                trace=config.trace,
                decay=config.averages_decay,
                convention=config.conventions.retrace,
            )
        targets, recurrent, trace = self.network(
            batch,
            Predictions(online.logits, online.y, online.z),
            Predictions(slow.logits, slow.y, slow.z),
            found,
            state.recurrent,
        )
        return targets, found, recurrent, averages, trace


def _backward(
    leaves: Mapping[str, Tensor], trunk: Trunk, heads: Sequence[Head], pull: Pull
) -> dict[str, Tensor]:
    """Return the gradient of every parameter from the gradient at the agent's outputs."""
    gradients: dict[str, Tensor] = {}
    chosen = torch.zeros_like(trunk.model[: len(pull.taken)])
    for head, at_outputs in zip(heads, (pull.z, pull.aux, pull.q), strict=True):
        own, at_model = head.backward(pull.taken, at_outputs)
        gradients |= own
        chosen += at_model
    model = torch.zeros_like(trunk.model).index_copy_(0, pull.taken, chosen)
    rest = {name: leaf for name, leaf in leaves.items() if name not in gradients}
    found = torch.autograd.grad(trunk, list(rest.values()), (pull.logits, pull.y, model))
    return gradients | dict(zip(rest, found, strict=True))


def softmaxes(outputs: Outputs) -> Outputs:
    """Return the probabilities that the logits stand for."""
    return Outputs(*(logits.softmax(-1) for logits in outputs))
