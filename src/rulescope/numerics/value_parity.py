"""Parity of the value estimator, and of the interface between scalar and categorical values."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rulescope.core.arrays import unprefix
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.value_estimates import Averages, Estimate, estimate, normalise
from rulescope.learners.disco.value_interface import (
    ValueInterface,
    hyperbolic,
    hyperbolic_inverse,
    sign_log,
)
from rulescope.learners.disco_config import AGENTS, INTERFACES
from rulescope.numerics.golden import Golden
from rulescope.numerics.tolerances import PRECISIONS, Comparison, compare

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
