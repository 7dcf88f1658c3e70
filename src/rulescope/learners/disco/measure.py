"""What is logged about a Disco update; measuring reads, and never changes, the learner."""

from __future__ import annotations

import torch

from rulescope.learners.disco.interface import ValueInterface, effective_bins
from rulescope.learners.disco.losses import losses
from rulescope.learners.disco.update import LearnerState, Step

METRICS = (
    "loss_policy",
    "loss_y",
    "loss_z",
    "loss_aux",
    "loss_value",
    "entropy",
    "td_magnitude",
    "advantage_std",
    "gradient_norm",
    "effective_bins",
    "hidden_norm",
    "cell_norm",
    "distinct_rows",
)


@torch.no_grad()
def measurements(step: Step, state: LearnerState, interface: ValueInterface) -> dict[str, float]:
    """Return the numbers named in ``METRICS`` for one update; ``state`` is the one after it.

    Losses are means over all transitions, unweighted and unmasked.
    """
    terms = losses(step.outputs, step.batch, step.targets, step.estimate.td, interface)
    rows = len(step.batch.rows)
    visits = step.batch.index.flatten().bincount(minlength=rows).to(step.gradient)
    mean_q = visits @ step.probabilities.q.mean(1) / visits.sum()
    return {
        "loss_policy": terms.policy.mean().item(),
        "loss_y": terms.y.mean().item(),
        "loss_z": terms.z.mean().item(),
        "loss_aux": terms.aux.mean().item(),
        "loss_value": terms.value.mean().item(),
        "entropy": terms.entropy.mean().item(),
        "td_magnitude": step.estimate.td.abs().mean().item(),
        "advantage_std": step.estimate.advantage.std().item(),
        "gradient_norm": step.gradient.norm().item(),
        "effective_bins": effective_bins(mean_q),
        "hidden_norm": state.recurrent.hidden.norm().item(),
        "cell_norm": state.recurrent.cell.norm().item(),
        "distinct_rows": float(rows),
    }
