"""Parity of the rule network and its value estimates, on stored network outputs."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rulescope.core.arrays import Arrays
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.features import Predictions
from rulescope.learners.disco.rule_network import MetaNetwork, RuleState
from rulescope.learners.disco.value_estimates import Averages, estimate
from rulescope.learners.disco.value_interface import ValueInterface
from rulescope.learners.disco_config import AGENTS, INTERFACES
from rulescope.numerics.golden import Golden, load_rule_weights
from rulescope.numerics.tolerances import PRECISIONS, Comparison, compare
from rulescope.numerics.value_parity import value_outputs


def compare_forward(golden: Golden) -> Iterator[Comparison]:
    """Compare the rule network and its value estimates, for two numbers of actions."""
    for precision, (suffix, dtype) in PRECISIONS.items():
        for actions in (3, 6):
            inputs = golden[f"forward_A{actions}_inputs"]
            expected = golden[f"forward_A{actions}_{suffix}"]
            for start in ("zero", "nonzero"):
                case = ForwardCase(inputs, start, dtype, golden.device)
                where = f"A{actions}/{start}"
                for name, value in case.values().items():
                    key = f"{start}/{name}"
                    yield compare("forward", precision, f"{where}: {name}", value, expected[key])
                for key, rule in golden.rules().items():
                    for name, value in case.rule_outputs(rule).items():
                        theirs = expected[f"{key}/{start}/{name}"]
                        output = f"{key}/{where}: {name}"
                        yield compare("forward", precision, output, value, theirs)


class ForwardCase:
    """One evaluation of the rule on stored network outputs."""

    def __init__(self, inputs: Arrays, start: str, dtype: torch.dtype, device: str = "cpu") -> None:
        def tensor(name: str) -> Tensor:
            return torch.tensor(inputs[name], dtype=dtype, device=device)

        def probabilities(network: str) -> dict[str, Tensor]:
            return {
                head: tensor(f"{network}/{head}").flatten(0, 1).softmax(-1)
                for head in ("logits", "y", "z", "q")
            }

        self.dtype, self.device = dtype, device
        slots, lanes = inputs["actions"].shape
        self.batch = Batch(
            rows=torch.zeros(slots * lanes, 1, dtype=dtype, device=device),
            index=torch.arange(slots * lanes, device=device).view(slots, lanes),
            actions=torch.tensor(inputs["actions"][:-1], device=device).long(),
            rewards=tensor("rewards"),
            terminals=tensor("is_terminal"),
            behaviour=tensor("behaviour/logits")[:-1],
            began=torch.zeros(lanes, dtype=dtype, device=device),
        )
        online, target = probabilities("agent"), probabilities("target")
        self.online = Predictions(online["logits"], online["y"], online["z"])
        self.target = Predictions(target["logits"], target["y"], target["z"])
        self.state: RuleState | None = None
        averages = Averages.fresh(self.batch.rewards)
        if start == "nonzero":
            averages = Averages(tensor("nonzero/adv_ema"), tensor("nonzero/td_ema"))
            self.state = RuleState(tensor("nonzero/h"), tensor("nonzero/c"))
        interface = ValueInterface(INTERFACES["default"], AGENTS["reference"], averages.td.device)
        self.estimate, self.averages = estimate(
            self.batch,
            tensor("agent/logits").flatten(0, 1).log_softmax(-1),
            interface.readout(online["q"]),
            interface.readout(target["q"]),
            averages,
            discount=0.997,
            trace=0.95,
            decay=0.99,
        )

    def values(self) -> dict[str, Tensor]:
        """Return the outputs that do not depend on the rule, by golden name."""
        named = value_outputs(self.estimate, self.averages, self.batch.index)
        return {f"value_out/{name}": value for name, value in named.items()} | {
            "new_adv_ema": self.averages.advantage,
            "new_td_ema": self.averages.td,
        }

    def rule_outputs(self, rule: str) -> dict[str, Tensor]:
        """Return the outputs of the rule called ``rule``, by golden name."""
        network = MetaNetwork(load_rule_weights(rule, self.dtype, self.device))
        targets, state, trace = network(
            self.batch, self.online, self.target, self.estimate, self.state or network.fresh()
        )
        assert targets.y_logits is not None  # gradients are enabled, so the logits exist
        assert targets.z_logits is not None
        return {
            "pi": targets.policy,
            "y": targets.y_logits,
            "z": targets.z_logits,
            "meta_input_emb": trace.emission,
            "new_h": state.hidden,
            "new_c": state.cell,
            "dbg/outer_input": trace.outer.steps,
            "dbg/outer_policy_emb": trace.outer.actions,
            "dbg/traj_lstm_out": trace.trajectory,
            "dbg/after_mult": trace.gated,
            "dbg/meta_input": trace.lifetime.steps,
            "dbg/meta_policy_emb": trace.lifetime.actions,
        }
