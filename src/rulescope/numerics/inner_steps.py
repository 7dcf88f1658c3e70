"""Parity of three consecutive updates of a small agent, in both forms of the update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core.arrays import Arrays, unprefix
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco.rule_network import MetaNetwork
from rulescope.learners.disco.update import DiscoUpdate, LearnerState, Step
from rulescope.learners.disco_config import AGENTS, AgentSizes, Disco
from rulescope.numerics.golden import (
    Golden,
    flatten_stored,
    merge_equal_rows,
    to_original_names,
)
from rulescope.numerics.tolerances import PRECISIONS, Comparison, compare
from rulescope.numerics.value_parity import value_outputs

SMALL_AGENT = Disco(
    agent=AgentSizes(hidden=(32, 32), model=16, head=16), conventions=AGENTS["reference"]
)
"""The learner of these arrays: 4x4 boards, three actions."""


def small_update(rule: dict[str, Tensor]) -> DiscoUpdate:
    """Return the update of the small learner for a rule's weights (of either precision)."""
    network = MetaNetwork(rule)
    agent = Agent(
        (4, 4, 1), 3, network.predictions, 601, SMALL_AGENT.agent, SMALL_AGENT.conventions
    )
    return DiscoUpdate(agent, network, SMALL_AGENT)


def small_start(golden: Golden, update: DiscoUpdate) -> LearnerState:
    """Return the initial state of these arrays; the target differs from the parameters."""
    agent = update.agent
    params, target = (
        flatten_stored(
            agent.layout,
            unprefix(name, golden["inner_common"]),
            agent.actions,
            update.network.dtype,
            golden.device,
        )
        for name in ("params0", "target0")
    )
    return update.fresh(params)._replace(target=target)


def compare_inner_steps(golden: Golden) -> Iterator[Comparison]:
    """Compare each step's outputs, gradients and new parameters with the original's.

    The definition has every slot as its own row; the closed form merges equal ones.
    """
    for precision, (suffix, dtype) in PRECISIONS.items():
        for key, rule in golden.rules().items():
            expected = golden[f"inner_{key}_{suffix}"]
            for form in ("definition", "closed form"):
                update = small_update(golden.rule_weights(rule, dtype))
                state = small_start(golden, update)
                for number in range(3):
                    batch = golden.rollout(number, dtype)
                    if form == "closed form":
                        batch = merge_equal_rows(batch)
                    before = state.params.clone()
                    advance = update.definition if form == "definition" else update.fast_
                    state, step = advance(state, batch)
                    theirs = unprefix(f"step{number}", expected)
                    where = f"{key}/{form}/step{number}"
                    yield from _compare_outputs(
                        precision, where, update, state, step, before, theirs
                    )
                    yield from _compare_parameters(precision, where, update, state, step, theirs)


def _compare_outputs(
    precision: str,
    where: str,
    update: DiscoUpdate,
    state: LearnerState,
    step: Step,
    before: Tensor,
    theirs: Arrays,
) -> Iterator[Comparison]:
    """Compare everything but gradients and parameters."""
    found = _by_golden_name(step, state, before) | _moment_sums(update, state)
    for name, value in found.items():
        if name in theirs:
            yield compare("inner outputs", precision, f"{where}: {name}", value, theirs[name])


def _by_golden_name(step: Step, state: LearnerState, before: Tensor) -> dict[str, Any]:
    """Return the outputs of a step by golden name."""
    meta = value_outputs(step.estimate, state.averages, step.batch.index) | {
        "pi": step.targets.policy,
        "meta_input_emb": step.trace.emission,
    }
    named: dict[str, Tensor] = {f"meta_out/{name}": value for name, value in meta.items()} | {
        "mask": step.mask,
        "is_terminal": step.batch.terminals,
        "new_h": state.recurrent.hidden,
        "new_c": state.recurrent.cell,
        "new_adv_ema": state.averages.advantage,
        "new_td_ema": state.averages.td,
        "global_gradient_norm": step.gradient.norm(),
        "global_update_norm": (state.params - before).norm(),
    }
    y, z = step.targets.y_logits, step.targets.z_logits
    if y is not None and z is not None:
        named |= {"meta_out/y": y, "meta_out/z": z}
    if step.losses is not None and step.loss is not None:
        named |= {
            "total_loss": step.loss,
            "pi_loss_per_step": step.losses.policy,
            "y_loss_per_step": step.losses.y,
            "z_loss_per_step": step.losses.z,
            "aux_policy_loss_per_step": step.losses.aux,
            "value_loss_per_step_unscaled": step.losses.value,
        }
    return {name: value.detach() for name, value in named.items()}


def _moment_sums(update: DiscoUpdate, state: LearnerState) -> dict[str, Any]:
    """Return one number for each array of the optimiser's moments."""
    views = update.agent.layout.views
    first, second = (
        to_original_names(views(m)) for m in (state.moments.first, state.moments.second)
    )
    return {f"adam_mu_l2/{name}": np.linalg.norm(array) for name, array in first.items()} | {
        f"adam_nu_sum/{name}": array.sum(dtype=np.float64) for name, array in second.items()
    }


def _compare_parameters(
    precision: str,
    where: str,
    update: DiscoUpdate,
    state: LearnerState,
    step: Step,
    theirs: Arrays,
) -> Iterator[Comparison]:
    """Compare gradients, parameters and target parameters that the golden arrays have."""
    for family, prefix, vector in (
        ("gradients", "grad", step.gradient),
        ("updated parameters", "params", state.params),
        ("updated parameters", "target", state.target),
    ):
        expected = unprefix(prefix, theirs)
        if expected:
            ours: dict[str, NDArray[Any]] = to_original_names(update.agent.layout.views(vector))
            for name, array in expected.items():
                yield compare(family, precision, f"{where}: {prefix}/{name}", ours[name], array)
