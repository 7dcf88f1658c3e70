"""Parity of outputs: the rule network, the value estimator and the value interface."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rulescope.core.arrays import Arrays, unprefix
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.features import Predictions
from rulescope.learners.disco.rule_network import MetaNetwork, RuleState
from rulescope.learners.disco.value_estimates import Averages, Estimate, estimate, normalise
from rulescope.learners.disco.value_interface import (
    ValueInterface,
    hyperbolic,
    hyperbolic_inverse,
    sign_log,
)
from rulescope.learners.disco_config import AGENTS, INTERFACES
from rulescope.numerics.golden import Golden, load_rule_weights
from rulescope.numerics.tolerances import PRECISIONS, Comparison, compare


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


REFERENCE = AGENTS["reference"]
KNIFE_EDGE = 1e-9
"""Distance from an atom, in atoms, below which rounding decides the side of a value."""


def value_outputs(found: Estimate, moved: Averages, index: Tensor) -> dict[str, Tensor]:
    """Return an estimate by golden name.

    ``moved`` are the averages after it, ``index`` [T + 1, B] maps steps to rows.
    """
    stepwise = {
        "value": found.value,
        "target_value": found.target_value,
        "q_value": found.q,
        "target_q_value": found.target_q,
        "qv_adv": found.q_advantage,
        "normalized_qv_adv": found.normalised_q_advantage,
    }
    return {name: rows[index] for name, rows in stepwise.items()} | {
        "adv": found.advantage,
        "normalized_adv": found.normalised_advantage,
        "q_target": found.q_target,
        "q_td": found.td,
        "normalized_q_td": normalise(found.td, moved.td, centre=False),
    }


def compare_value_estimator(golden: Golden) -> Iterator[Comparison]:
    """Compare the value estimator alone, in float64, for six discounts and traces."""
    stored = golden["value_f64"]
    inputs = {name: golden.tensor(array) for name, array in unprefix("in", stored).items()}
    slots, lanes = inputs["actions"].shape
    batch = Batch(
        rows=torch.zeros(slots * lanes, 1, device=golden.device),
        index=torch.arange(slots * lanes, device=golden.device).view(slots, lanes),
        actions=inputs["actions"][:-1].long(),
        rewards=inputs["rewards"],
        terminals=inputs["is_terminal"].double(),
        behaviour=inputs["mu_logits"][:-1],
        began=torch.zeros(lanes, device=golden.device),
    )
    for number, (discount, trace) in enumerate(stored["cases_discount_lambda"]):
        for start in ("zero", "warm"):
            average = golden.tensor(stored[f"ema/{start}"])
            found, moved = estimate(
                batch,
                inputs["pi_logits"].flatten(0, 1).log_softmax(-1),
                inputs["q"].flatten(0, 1),
                inputs["target_q"].flatten(0, 1),
                Averages(average, average),
                discount=float(discount),
                trace=float(trace),
                decay=0.99,
            )
            outputs = value_outputs(found, moved, batch.index)
            outputs |= {"adv_ema": moved.advantage, "td_ema": moved.td}
            for name in ("adv", "qv_adv", "q_target", "q_td"):
                expected = stored[f"case{number}/{name}"]
                label = f"case{number}: {name}"
                yield compare("value estimator", "float64", label, outputs[name], expected)
            for name, expected in unprefix(f"case{number}/{start}", stored).items():
                label = f"case{number}/{start}: {name}"
                yield compare("value estimator", "float64", label, outputs[name], expected)


def compare_value_interface(golden: Golden) -> Iterator[Comparison]:
    """Compare transforms, projections, readouts and the value loss of all three interfaces."""
    names = {"M300_h": "default", "M30_h": "support30", "M300_linear": "linear"}
    for precision, (suffix, dtype) in PRECISIONS.items():
        stored = golden[f"interface_{suffix}"]
        x, y, logits, td = (
            golden.tensor(stored[name], dtype) for name in ("x", "y", "logits", "td")
        )
        outputs = {
            "h": hyperbolic(x),
            "hinv": hyperbolic_inverse(y),
            "hinv_of_h": hyperbolic_inverse(hyperbolic(x)),
            "sign_log": sign_log(x),
        }
        for key, name in names.items():
            interface = ValueInterface(INTERFACES[name], REFERENCE, x.device)
            q = logits.clone().requires_grad_()
            readout = interface.readout(logits.softmax(-1))
            weights = interface.project(readout + td).dense(q.shape[-1])
            loss = -(weights * q.log_softmax(-1)).sum(-1)
            (gradient,) = torch.autograd.grad(loss.sum(), q)
            # Rounding may put a target that lies on an atom on either side of it.
            places = interface.position(interface.transform(readout + td))
            settled = (places - places.round()).abs() > KNIFE_EDGE
            outputs |= {
                f"{key}/twohot": interface.project(x).dense(q.shape[-1]),
                f"{key}/readout": readout,
            }
            for output, value in (("value_loss", loss), ("value_loss_grad", gradient)):
                theirs, where = stored[f"{key}/{output}"], settled.cpu().numpy()
                yield compare(
                    "value interface",
                    precision,
                    f"{key}/{output}",
                    value.detach()[settled],
                    theirs[where],
                )
        for key, name in (("", "default"), ("_M30", "support30")):
            interface = ValueInterface(INTERFACES[name], REFERENCE, x.device)
            edge = golden.tensor(stored[f"edge/values{key}"], dtype)
            label = f"edge/twohot{key or '_M300'}_no_transform"
            outputs[label] = interface.project_coordinates(edge).dense(logits.shape[-1])
        for name, value in outputs.items():
            yield compare("value interface", precision, name, value, stored[name])
