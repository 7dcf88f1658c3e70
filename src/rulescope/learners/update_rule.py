"""The base of update rules that are a loss: a subclass defines it, and its initial state if any.

    class MyRule(UpdateRule):
        def start(self):
            return {"size": torch.zeros(())}

        def loss(self, seen, state):
            ...
            return loss, {"size": size}

One network outputs a policy and a value for every observation. After each rollout the rule gets
the outputs and the rollout, and returns a scalar loss, which Adam minimises, and its new state:
the carrier ``recurrent``, which an audit pins, freezes and transplants. A rule without
:meth:`~UpdateRule.start` has no state. See docs/plugins.md for further heads of the network,
several steps on one rollout, minibatches, and options.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rulescope.core import seeds
from rulescope.core.arrays import Arrays, digest
from rulescope.core.errors import DivergedError, SpecError
from rulescope.core.flat_vector import Parameters
from rulescope.learners import learner_config
from rulescope.learners.a2c import ActorCritic, generalised_advantages, log_softmax, rows
from rulescope.learners.adam import array, write
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.learners.learner import Carrier, Rollout
from rulescope.learners.learner_base import HISTORY
from rulescope.learners.plugin_rule import Setup
from rulescope.learners.torso import Evaluation, Network
from rulescope.rules.rule_weights import RuleWeights

__all__ = ["Seen", "Setup", "State", "UpdateRule"]

State = dict[str, Tensor]
"""The state of a rule: tensors by name, always of the same shapes and types."""
METRICS = ("loss", "entropy", "gradient_norm", "history_norm")


class Seen(NamedTuple):
    """One rollout of S steps and N lanes, and the network's current outputs; time comes first.

    A rule with several minibatches gets B transitions of the rollout instead, in random order and
    without time: then every shape [S, N, ...] or [S + 1, N, ...] below is [B, ...].
    """

    logits: Tensor
    """[S, N, A] of the policy; gradients flow through them."""
    values: Tensor
    """[S + 1, N]: the last row is of the observation after the last action. Gradients flow."""
    actions: Tensor
    """[S, N] int64"""
    rewards: Tensor
    """[S, N]: the reward of each action."""
    terminals: Tensor
    """[S, N] 0 or 1: whether the action ended an episode."""
    before: Tensor
    """[S, N] log pi(action) at the time of acting."""
    observations: Tensor
    """[S + 1, N, *shape]"""
    heads: Mapping[str, Tensor]
    """[S + 1, N, size] by name: the outputs of the rule's ``HEADS``. Gradients flow."""
    prepared: Mapping[str, Tensor]
    """[S, N, ...] by name: what :meth:`UpdateRule.prepare` returned, as constants."""

    @property
    def is_minibatch(self) -> bool:
        """Whether these are transitions in random order, and not a whole rollout."""
        return self.actions.dim() == 1

    def state_values(self) -> Tensor:
        """Return the values [S, N] of the observations of the actions."""
        return self.values if self.is_minibatch else self.values[:-1]

    def chosen(self) -> Tensor:
        """Return log pi(action) [S, N]."""
        # Not gather: on a GPU its gradient is summed in no fixed order.
        taken = functional.one_hot(self.actions, self.logits.shape[-1])
        return (self.logits.log_softmax(-1) * taken).sum(-1)

    def entropy(self) -> Tensor:
        """Return the policy's entropy [S, N]."""
        logs = self.logits.log_softmax(-1)
        return -(logs.exp() * logs).sum(-1)

    def advantages(
        self, rewards: Tensor, discount: float = 0.997, trace: float = 0.95
    ) -> tuple[Tensor, Tensor]:
        """Return generalised advantages and returns, [S, N] each, as constants.

        ``rewards`` [S, N] are in the units of the values: the rollout's own, or rescaled by the
        rule. A terminal cuts off later rewards; the last row of values is the bootstrap.
        """
        if self.is_minibatch:
            raise SpecError(
                "advantages() needs a whole rollout, and this is a minibatch: compute them in "
                "prepare(), and read seen.prepared in loss()"
            )
        values = self.values.detach()
        rewards_, terminals, estimates = (
            each.detach().cpu().numpy() for each in (rewards, self.terminals, values)
        )
        found = generalised_advantages(rewards_, terminals, estimates, discount, trace)
        advantages = torch.from_numpy(found).to(values)
        return advantages, advantages + values[:-1]


class Experience(NamedTuple):
    """The part of :class:`Seen` that does not depend on the network's parameters."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    terminals: Tensor
    before: Tensor

    def select(self, piece: Tensor) -> Experience:
        """Return the transitions ``piece`` [B] of a whole rollout."""
        acted_on = self._replace(observations=self.observations[:-1])
        return Experience(*(each.flatten(0, 1)[piece] for each in acted_on))


class UpdateRule(ActorCritic):
    """A learner that samples actions from its policy and learns by the loss of a subclass.

    A subclass that needs attributes of its own in :meth:`start` or :meth:`weights` sets them
    before it calls ``super().__init__(setup)``.
    """

    CARRIERS: ClassVar[tuple[str, ...]] = learner_config.CARRIERS
    """Its carriers; ``recurrent`` is left out if :meth:`start` is not defined."""
    LEARNING_RATE: float = learner_config.LEARNING_RATE
    """Learning rate of Adam, unless a run sets another. (One that an instance sets before
    ``super().__init__`` counts before that of the run.)"""
    MAX_NORM: float = 0.5
    """The gradient is scaled down to this norm."""
    EPOCHS: int = 1
    """Passes over each rollout; like the next two, it may be set per instance from options, before
    ``super().__init__``."""
    MINIBATCHES: int = 1
    """Parts into which the transitions are shuffled in each pass, one step each; 1 is the whole
    rollout in its order."""
    HEADS: Mapping[str, int] = {}
    """Outputs of further linear heads of the network, by name."""
    STEPWISE: ClassVar[bool] = False
    """Whether interventions can act after each step of the optimiser."""
    metrics: tuple[str, ...] = METRICS

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._check_attributes()
        made_of = A2C(
            agent=setup.agent,
            learning_rate=vars(self).get("LEARNING_RATE", setup.learning_rate),
            max_norm=self.MAX_NORM,
        )  # only for its network and optimiser; its coefficients are not used
        super().__init__(made_of, setup.observation_shape, setup.actions, setup.seed, setup.device)
        self.after_step: list[Callable[[], None]] = []
        if self.MINIBATCHES > 1:
            self.streams["minibatch"] = seeds.stream(setup.seed, "minibatch")
        self._state = self._initial_state()
        if self._state:
            self.carriers = {HISTORY: Carrier(self._get, self._set), **self.carriers}
        else:
            self.metrics = tuple(name for name in self.metrics if name != "history_norm")
        self.rule = self._identify_rule()

    @classmethod
    def declared_carriers(cls) -> tuple[str, ...]:
        """Return the carriers of such a learner, known without making one."""
        if cls.CARRIERS is not UpdateRule.CARRIERS:
            return cls.CARRIERS
        return learner_config.STATELESS if cls.start is UpdateRule.start else cls.CARRIERS

    def start(self) -> State:
        """Return the initial state; zero should mean "no history", as in a pinned carrier.

        Names, shapes and types stay the same for the whole lifetime. A rule without history does
        not define it.
        """
        return {}

    @abstractmethod
    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        """Return a scalar loss and the new state.

        It is called for every step, with the state that the call before returned.
        """

    def prepare(self, seen: Seen, state: State) -> Mapping[str, Tensor]:  # noqa: ARG002
        """Return constants [S, N, ...] of a whole rollout, computed once before the first step.

        They are in ``seen.prepared`` when the loss is computed, cut into minibatches as all else
        is. No gradients are recorded.
        """
        return {}

    def weights(self) -> Mapping[str, NDArray[Any]]:
        """Return the rule's learned weights that are in use, if any; they must never change.

        A rule with weights of its own uses ``setup.rule.arrays`` instead if ``setup.rule`` is
        given.
        """
        return {} if self.setup.rule is None else self.setup.rule.arrays

    def rule_digest(self) -> str | None:
        """Return the digest of the current :meth:`weights`."""
        if self.rule is None or not self.rule.arrays:
            return super().rule_digest()
        return digest(self._weights())

    def make_network(
        self, observation_shape: tuple[int, ...], actions: int, sizes: NetworkSizes
    ) -> Network:
        """Return the network: logits of ``actions`` and a value, and the rule's ``HEADS``."""
        return Network(observation_shape, actions + 1, sizes, self.HEADS)

    def network_outputs(
        self, params: Parameters, rows: Tensor
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the main outputs [R, A + 1] for ``rows`` [R, *shape], and those of each head.

        A subclass with a network of its own overrides this, :meth:`make_network` and :meth:`act`.
        Rows of a whole rollout are (S + 1) * N, time first.
        """
        evaluation = Evaluation(self.network, params, rows)
        return evaluation.outputs, evaluation.further_heads()

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        """Minimise the rule's loss on the rollout, and store the new state.

        The metrics are means over the steps.
        """
        experience = self._experience(rollout)
        prepared = self._prepare(experience)
        measured = [
            self._step(experience, prepared, piece, measure) for piece in self._pieces(rollout)
        ]
        if not measure:
            return {}
        means = {name: float(np.mean([one[name] for one in measured])) for name in measured[0]}
        return {**means, **self.carrier_metrics()}

    def _step(
        self,
        experience: Experience,
        prepared: Mapping[str, Tensor],
        piece: Tensor | None,
        measure: bool,
    ) -> dict[str, float]:
        """Make one step on the whole rollout or a ``piece`` of it, and store the new state."""
        params = self.params.detach().requires_grad_()
        with torch.enable_grad():
            seen = self._see(self.network.layout.views(params), experience, prepared, piece)
            loss, state = self._checked(self.loss(seen, dict(self._state)))
        [gradient] = torch.autograd.grad(loss, params, allow_unused=True)
        if gradient is None:
            raise self._fault("its loss does not depend on the network (was it detached?)")
        norm = self.optimiser.step_(gradient.contiguous())
        self._state = state
        for action in self.after_step:
            action()
        if not measure:
            return {}
        return {
            "loss": loss.item(),
            "entropy": seen.entropy().mean().item(),
            "gradient_norm": norm,
        }

    def _pieces(self, rollout: Rollout) -> Iterator[Tensor | None]:
        """Yield the transitions [B] of each step; None is the whole rollout in its order."""
        for _ in range(self.EPOCHS):
            if self.MINIBATCHES == 1:
                yield None
                continue
            order = self.streams["minibatch"].permutation(rollout.actions.size)
            for piece in np.array_split(order, min(self.MINIBATCHES, len(order))):
                yield torch.from_numpy(piece).to(self.device)

    def carrier_metrics(self) -> dict[str, float]:
        """Return the norm of the rule's history, all arrays together; nothing without one."""
        if not self._state:
            return {}
        square = sum(float(each.double().square().sum()) for each in self._state.values())
        return {"history_norm": square**0.5}

    def _experience(self, rollout: Rollout) -> Experience:
        logits = rollout.behaviour.get("logits")
        if logits is None:  # a rollout whose behaviour was not stored
            acted_on = rows(rollout)[: rollout.actions.size]
            logits = self.evaluate(self.tensor(acted_on)).output_array[:, :-1]
        taken = rollout.actions.ravel()
        logs = log_softmax(logits.reshape(len(taken), -1))[np.arange(len(taken)), taken]
        return Experience(
            observations=self.tensor(rollout.observations),
            actions=torch.from_numpy(rollout.actions).to(self.device),
            rewards=self.tensor(rollout.rewards),
            terminals=self.tensor(rollout.terminals.astype(np.float32)),
            before=self.tensor(logs.astype(np.float32)).view(rollout.actions.shape),
        )

    def _see(
        self,
        params: Parameters,
        experience: Experience,
        prepared: Mapping[str, Tensor],
        piece: Tensor | None,
    ) -> Seen:
        """Return the outputs for the rollout, or for the transitions ``piece`` [B] of it."""
        if piece is not None:
            experience = experience.select(piece)
            prepared = {name: each.flatten(0, 1)[piece] for name, each in prepared.items()}
        axes = experience.actions.dim()  # [S, N] or [B]
        observed = experience.observations
        lead = observed.shape[:axes]
        flat = observed if piece is not None else observed.flatten(0, 1)
        flat_outputs, heads = self.network_outputs(params, flat)
        outputs = flat_outputs.view(*lead, -1)
        acted = outputs if piece is not None else outputs[:-1]
        return Seen(
            logits=acted[..., :-1],
            values=outputs[..., -1],
            actions=experience.actions,
            rewards=experience.rewards,
            terminals=experience.terminals,
            before=experience.before,
            observations=observed,
            heads={name: each.view(*lead, -1) for name, each in heads.items()},
            prepared=prepared,
        )

    def _prepare(self, experience: Experience) -> Mapping[str, Tensor]:
        """Return the constants that the rule computes once per rollout."""
        if type(self).prepare is UpdateRule.prepare:
            return {}
        with torch.no_grad():
            seen = self._see(self.views, experience, {}, None)
            found = self.prepare(seen, dict(self._state))
        if not isinstance(found, Mapping):
            raise self._fault(f"prepare() must return tensors by name, not {type(found)}")
        shape = experience.actions.shape
        for name, each in found.items():
            if not isinstance(each, Tensor) or each.shape[:2] != shape:
                what = f"shape {list(each.shape)}" if isinstance(each, Tensor) else f"{type(each)}"
                raise self._fault(
                    f"prepare() must return tensors {list(shape)} or larger, but {name!r} has "
                    f"{what}"
                )
        return {name: each.detach() for name, each in found.items()}

    def _check_attributes(self) -> None:
        """Raise :class:`SpecError` if a class attribute cannot be used."""
        for name in ("EPOCHS", "MINIBATCHES"):
            count = getattr(self, name)
            if type(count) is not int or count < 1:
                raise self._fault(f"{name} must be a whole number from 1 on, not {count!r}")
        interactions = self.setup.lanes * self.setup.steps
        if interactions < self.MINIBATCHES:
            raise self._fault(
                f"MINIBATCHES: {self.MINIBATCHES} is more than an iteration has ({interactions})"
            )
        for name, size in self.HEADS.items():
            if not isinstance(name, str) or not name or type(size) is not int or size < 1:
                raise self._fault(f"HEADS must be sizes by name, not {name!r}: {size!r}")

    def _weights(self) -> dict[str, NDArray[np.float32]]:
        return {name: np.array(each, np.float32) for name, each in self.weights().items()}

    def _identify_rule(self) -> RuleWeights | None:
        """Return the weights in use, which are those of the setup if it has any."""
        weights, given = self._weights(), self.setup.rule
        if given is not None:
            if digest(weights) != given.content:
                raise self._fault("weights() must return setup.rule.arrays if setup.rule is given")
            return given
        if not weights:
            return None
        content = digest(weights)
        return RuleWeights(type(self).__name__, weights, content, content)

    def _initial_state(self) -> State:
        state = self.start()
        if not isinstance(state, dict):
            raise self._fault(f"start() must return tensors by name, not {type(state)}")
        for name, each in state.items():
            if not isinstance(each, Tensor) or not isinstance(name, str) or not name:
                raise self._fault(
                    f"start() must return tensors by name, but {name!r} is {type(each)}"
                )
        return {name: each.detach().clone().to(self.device) for name, each in state.items()}

    def _checked(self, answer: Any) -> tuple[Tensor, State]:
        """Return the result of :meth:`loss`, or raise :class:`SpecError` if it is invalid."""
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise self._fault(f"loss() must return (loss, state), not {type(answer)}")
        loss, state = answer
        if not isinstance(loss, Tensor) or loss.shape != ():
            what = f"shape {list(loss.shape)}" if isinstance(loss, Tensor) else f"{type(loss)}"
            raise self._fault(f"loss() must return a scalar tensor first, not {what}")
        if not loss.requires_grad:
            raise self._fault("its loss does not depend on the network (was it detached?)")
        if not isinstance(state, dict) or set(state) != set(self._state):
            names = sorted(state) if isinstance(state, dict) else type(state)
            raise self._fault(f"loss() must return a state of {sorted(self._state)}, not {names}")
        for name, old in self._state.items():
            self._check_like(name, state[name], old)
        # In the initial order: a carrier's arrays never change places.
        return loss, {name: state[name].detach().clone() for name in self._state}

    def _check_like(self, name: str, new: Any, old: Tensor) -> None:
        alike = isinstance(new, Tensor) and (new.shape, new.dtype) == (old.shape, old.dtype)
        if not alike:
            found = (list(new.shape), new.dtype) if isinstance(new, Tensor) else type(new)
            expected = (list(old.shape), old.dtype)
            raise self._fault(f"state {name!r} was {expected} initially and is now {found}")
        if not bool(torch.isfinite(new).all()):
            raise DivergedError(f"the rule's state {name!r} is no longer finite")

    def _fault(self, what: str) -> SpecError:
        return SpecError(f"rule {type(self).__module__}.{type(self).__qualname__}: {what}")

    def _get(self) -> dict[str, NDArray[Any]]:
        return {name: array(each) for name, each in self._state.items()}

    def _set(self, content: Arrays) -> None:
        new = {name: each.clone() for name, each in self._state.items()}
        for name, each in new.items():
            write(content[name], each)
        self._state = new
