"""OPEN as a torch optimiser, for use outside audits.

    actor, critic = ..., ...                       # modules whose layers are ``nn.Linear``
    optimiser = OPEN(actor, critic, rule="open-multi", updates=1000, epochs=4, minibatches=8)
    for every minibatch of PPO:
        loss = ...                                  # from one forward pass of each network
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

There is no learning rate. The other inputs of the rule are collected automatically: the activity of
each unit in the forward pass of the loss, and the progress of training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rulescope.rules import rule_weights
from rulescope.rules.open.open_step import Leaf, Open, clip_, proportions
from rulescope.rules.rule_weights import OPEN_KEY, RuleWeights

Activation = Callable[[Tensor], Tensor]


class OPEN(torch.optim.Optimizer):
    """A learned optimiser for a policy and a value network of dense layers, trained by PPO.

    ``state_dict`` and ``load_state_dict`` work as usual; the state of a parameter is ``momenta``
    [*shape, 6] and ``carry`` [*shape, 8 or 16], and the only group has the number of ``steps``.
    """

    def __init__(
        self,
        actor: nn.Module,
        critic: nn.Module | None = None,
        rule: str | RuleWeights = "open-multi",
        *,
        updates: int,
        epochs: int = 4,
        minibatches: int = 8,
        max_norm: float | None = 0.5,
        activation: Activation = torch.relu,
        generator: torch.Generator | None = None,
        weights: Path | None = None,
    ) -> None:
        """Optimise all ``nn.Linear`` layers of ``actor`` and ``critic``, in their order.

        ``updates`` is the number of data batches in training, each passed over ``epochs`` times in
        ``minibatches`` steps: progress is an input of the rule. Gradients are clipped to
        ``max_norm`` for each network (None: not clipped). ``activation`` follows every layer but
        the last. Noise is drawn for the actor alone, from ``generator``. ``weights`` is the file or
        folder of the rule, if not in the usual places.
        """
        self._networks = [_layers(network) for network in (actor, critic) if network is not None]
        params = [param for layers in self._networks for layer in layers for param in _own(layer)]
        all_params = {id(p) for net in (actor, critic) if net is not None for p in net.parameters()}
        if all_params != {id(param) for param in params}:
            raise ValueError("OPEN supports dense layers only: all parameters must be nn.Linear's")
        settings = {"updates": updates, "epochs": epochs, "minibatches": minibatches}
        super().__init__(params, {**settings, "max_norm": max_norm, "steps": 0})
        self._generator = generator
        found = rule if isinstance(rule, RuleWeights) else rule_weights.load(rule, weights)
        if OPEN_KEY not in found.arrays:
            raise ValueError(f"rule: {found.name!r} is not an OPEN rule, such as open-multi")
        sizes = [sum(p.numel() for layer in net for p in _own(layer)) for net in self._networks]
        self._split = sizes[0]
        leaves = _leaves(self._networks)
        self._rule = Open(found.arrays[OPEN_KEY], leaves, self._split, params[0].device)
        self._link_state()
        self._activity: dict[int, Tensor] = {}
        for layers in self._networks:
            for place, layer in enumerate(layers):
                after = activation if place < len(layers) - 1 else None
                layer.register_forward_hook(partial(self._store_activity, after))

    def _store_activity(
        self, after: Activation | None, layer: nn.Module, _inputs: object, output: Tensor
    ) -> None:
        """Store the activity of the units, if this pass will be differentiated."""
        if torch.is_grad_enabled():
            with torch.no_grad():
                activated = output if after is None else after(output)
                self._activity[id(layer)] = activated.abs().flatten(0, -2).mean(dim=0)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one step; parameters without a gradient count as having gradient zero."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        (group,) = self.param_groups
        params: list[Tensor] = group["params"]
        gradient = _flat(torch.zeros_like(p) if p.grad is None else p.grad for p in params)
        if group["max_norm"] is not None:
            for part in (gradient[: self._split], gradient[self._split :]):
                clip_(part, group["max_norm"])
        steps, epochs, minibatches = group["steps"], group["epochs"], group["minibatches"]
        training, epoch = proportions(steps, group["updates"], epochs, minibatches)
        noise = torch.randn(self._split, generator=self._generator, device=gradient.device)
        activity = self._layer_activity()
        update = self._rule.update(_flat(params), gradient, activity, training, epoch, noise)
        parts = torch.split(update, [param.numel() for param in params])
        for param, part in zip(params, parts, strict=True):
            param.sub_(part.view_as(param))
        group["steps"] = steps + 1
        return loss

    def _layer_activity(self) -> list[Tensor]:
        layers = [layer for network in self._networks for layer in network]
        if any(id(layer) not in self._activity for layer in layers):
            raise RuntimeError("a step needs a forward pass of every layer before it")
        return [self._activity[id(layer)] for layer in layers]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what ``state_dict`` returned."""
        super().load_state_dict(state_dict)
        parts = [self.state[param] for param in self.param_groups[0]["params"]]
        for name, whole in (("momenta", self._rule.momenta), ("carry", self._rule.carry)):
            whole.copy_(torch.cat([part[name].flatten(0, -2) for part in parts]).T)
        self._link_state()

    def _link_state(self) -> None:
        """Make ``state`` views of the rule's memory."""
        start = 0
        for param in self.param_groups[0]["params"]:
            end = start + param.numel()
            for name, whole in (("momenta", self._rule.momenta), ("carry", self._rule.carry)):
                shape = (*param.shape, len(whole))
                self.state[param][name] = whole[:, start:end].T.view(shape)
            start = end

    def zero_carry(self) -> None:
        """Set the rule's carry to zero (not the momenta)."""
        self._rule.carry.zero_()


def _layers(network: nn.Module) -> list[nn.Linear]:
    return [module for module in network.modules() if isinstance(module, nn.Linear)]


def _own(layer: nn.Linear) -> list[Tensor]:
    return [layer.weight] if layer.bias is None else [layer.weight, layer.bias]


def _leaves(networks: list[list[nn.Linear]]) -> list[Leaf]:
    """Return every parameter tensor; units are along the first axis of each, as in torch."""
    found, count = [], 0
    for layers in networks:
        for place, layer in enumerate(layers):
            depth = place / max(len(layers) - 1, 1)
            found += [Leaf(tuple(param.shape), 0, count, depth) for param in _own(layer)]
            count += 1
    return found


def _flat(tensors: Iterable[Tensor]) -> Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
