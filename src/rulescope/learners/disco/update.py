"""One learner step, in two forms that a test proves equal.

``definition`` follows the equations line by line and is differentiable in the rule's weights (it is
what meta-training uses). ``DiscoUpdate.fast_`` does the same arithmetic once per distinct
observation and changes the state in place; it is what a lifetime runs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rulescope.core.errors import DivergedError
from rulescope.core.flat_vector import Parameters
from rulescope.learners.adam import Moments, clipped_adam, clipped_adam_
from rulescope.learners.disco.agent_backward import Evaluation
from rulescope.learners.disco.agent_network import Agent, Outputs
from rulescope.learners.disco.batch import Batch, loss_mask
from rulescope.learners.disco.features import Predictions
from rulescope.learners.disco.losses import Losses, losses, output_gradients, share, total
from rulescope.learners.disco.rule_network import MetaNetwork, RuleState, Targets, Trace
from rulescope.learners.disco.value_estimates import Averages, Estimate, estimate
from rulescope.learners.disco.value_interface import ValueInterface
from rulescope.learners.disco_config import Disco


class LearnerState(NamedTuple):
    """Everything a learner carries from one update to the next, replay aside."""

    params: Tensor
    """[size] the agent's flat parameter vector"""
    target: Tensor
    """[size] its slow average"""
    recurrent: RuleState
    averages: Averages
    moments: Moments

    @classmethod
    def fresh(cls, params: Tensor, recurrent: RuleState) -> LearnerState:
        """Return the state of a learner that starts from ``params`` [size]."""
        return cls(
            params=params,
            target=params.clone(),
            recurrent=recurrent,
            averages=Averages.fresh(params),
            moments=Moments.fresh(params),
        )


class Step(NamedTuple):
    """Intermediate results of one update."""

    batch: Batch
    probabilities: Outputs
    """Softmaxes of the agent's outputs on the distinct rows, before the update."""
    slow: Outputs
    """The same of its slow average."""
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
        self._views: dict[str, tuple[Tensor, Parameters]] = {}

    def fresh(self, params: Tensor) -> LearnerState:
        """Return the state of a learner that starts from ``params`` [size]."""
        return LearnerState.fresh(params, self.network.fresh())

    def definition(self, state: LearnerState, batch: Batch) -> tuple[LearnerState, Step]:
        """Return the state after one update on ``batch``; differentiable in weights and state."""
        layout, config = self.agent.layout, self.config
        outputs = self.agent.outputs(layout.views(state.params), batch.rows)
        probabilities = softmaxes(outputs)
        slow = softmaxes(self.agent.outputs(layout.views(state.target), batch.rows))
        targets, found, recurrent, averages, trace = self._consult(
            state, batch, probabilities, slow, outputs.logits.detach()
        )
        mask = loss_mask(batch, config.conventions.loss_mask)

        def objective(params: Tensor) -> tuple[Tensor, Losses]:
            # The rule's targets are constants of this derivative even where they depend on the
            # parameters: they were made outside of it.
            outputs = self.agent.outputs(layout.views(params), batch.rows)
            terms = losses(outputs, batch, targets, found.td, self.interface)
            return total(terms, mask, config.coefficients), terms

        differentiate = torch.func.grad_and_value(objective, has_aux=True)
        gradient, (loss, terms) = differentiate(state.params)
        params, moments = clipped_adam(state.params, gradient, state.moments, config.learning_rate)
        decay = config.target_decay
        target = decay * state.target + (1.0 - decay) * state.params
        step = Step(batch, probabilities, slow, targets, found, trace, mask, gradient, terms, loss)
        return LearnerState(params, target, recurrent, averages, moments), step

    @torch.inference_mode()
    def fast_(self, state: LearnerState, batch: Batch) -> tuple[LearnerState, Step]:
        """Do the same by closed-form output gradients, changing the flat vectors in place.

        The result is computed in inference mode, the fastest for small agents: it can be
        read and copied, but no graph can be built on it.
        """
        config = self.config
        agent = self._evaluated("params", state.params, batch.rows)
        probabilities = agent.probabilities
        slow = self._evaluated("target", state.target, batch.rows).probabilities
        targets, found, recurrent, averages, trace = self._consult(
            state, batch, probabilities, slow, agent.logits
        )
        if not bool(found.td.isfinite().all()):
            raise DivergedError("the learner's values are no longer finite")
        mask = loss_mask(batch, config.conventions.loss_mask)
        aim = self.interface.project(batch.taken(found.q) + found.td)
        pull = output_gradients(
            probabilities, batch, targets, aim, share(mask), config.coefficients
        )
        gradient = agent.gradient(pull)
        state.target.lerp_(state.params, 1.0 - config.target_decay)
        moments = clipped_adam_(state.params, gradient, state.moments, config.learning_rate)
        step = Step(batch, probabilities, slow, targets, found, trace, mask, gradient, None, None)
        return LearnerState(state.params, state.target, recurrent, averages, moments), step

    def _evaluated(self, role: str, flat: Tensor, rows: Tensor) -> Evaluation:
        """Evaluate the agent with parameters ``flat`` [size] on ``rows``.

        A lifetime changes its vectors in place, so the views of each are made once.
        """
        known = self._views.get(role)
        if known is None or known[0] is not flat:
            known = self._views[role] = flat, self.agent.layout.views(flat)
        return Evaluation(self.agent, known[1], rows)

    def _consult(
        self, state: LearnerState, batch: Batch, online: Outputs, slow: Outputs, logits: Tensor
    ) -> tuple[Targets, Estimate, RuleState, Averages, Trace]:
        """Estimate values and ask the rule for targets; ``online`` and ``slow`` are softmaxes."""
        config = self.config
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


def softmaxes(outputs: Outputs) -> Outputs:
    """Return the probabilities that the logits stand for."""
    return Outputs(*(logits.softmax(-1) for logits in outputs))
