"""Parity of updates: three in a row of a small agent, in both forms, and their meta-gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core.arrays import Arrays, unprefix
from rulescope.learners.disco.agent_network import Agent
from rulescope.learners.disco.rule_network import MetaNetwork, RuleState
from rulescope.learners.disco.update import DiscoUpdate, LearnerState, Step
from rulescope.learners.disco_config import AGENTS, AgentSizes, Disco
from rulescope.numerics.golden import (
    Golden,
    flatten_stored,
    merge_equal_rows,
    to_original_names,
)
from rulescope.numerics.output_parity import value_outputs
from rulescope.numerics.tolerances import PRECISIONS, Comparison, compare

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
    for kind, prefix, vector in (
        ("gradients", "grad", step.gradient),
        ("updated parameters", "params", state.params),
        ("updated parameters", "target", state.target),
    ):
        expected = unprefix(prefix, theirs)
        if expected:
            ours: dict[str, NDArray[Any]] = to_original_names(update.agent.layout.views(vector))
            for name, array in expected.items():
                yield compare(kind, precision, f"{where}: {prefix}/{name}", ours[name], array)


CASES = {"k1_zero_warm": 1, "k2_nonzero_warm": 2, "k1_nonzero_fresh": 1}
"""Name of each case and its number of inner updates."""
WELL_CONDITIONED = "k2_nonzero_warm"
"""The case that float32 resolves and in which every array has an effect."""
ZERO_BY_SYMMETRY = "lstm/linear_4/b"
"""It shifts all policy logits equally, so its exact gradient is zero: the rest is rounding."""


def compare_meta_gradients(golden: Golden) -> Iterator[Comparison]:
    """Compare meta-gradients with the original's of the same precision.

    In float32 that is one case: in the others rounding dominates both programs' results.
    """
    for precision, (suffix, dtype) in PRECISIONS.items():
        for key, rule in golden.rules().items():
            expected = golden[f"metagrad_{key}_{suffix}"]
            for case in CASES if precision == "float64" else (WELL_CONDITIONED,):
                ours = meta_gradients(golden, rule, case, dtype)
                where = f"{key}/{case}"
                yield from _compare("meta-gradient", precision, where, ours, expected, case)


def compare_precisions(golden: Golden) -> Iterator[Comparison]:
    """Compare our float32 meta-gradients with our float64 ones: the effect of precision."""
    for key, rule in golden.rules().items():
        single, double = (
            meta_gradients(golden, rule, WELL_CONDITIONED, PRECISIONS[name][1])
            for name in ("float32", "float64")
        )
        largest = {name: float(array.abs().max()) for name, array in double.items()}
        scales, most = _scales(largest), max(largest.values())
        for name, gradient in single.items():
            yield compare(
                "float32/float64",
                "float32",
                f"{key}: {name}",
                gradient,
                double[name],
                scales[name],
                most,
            )


def meta_gradients(golden: Golden, rule: str, case: str, dtype: torch.dtype) -> dict[str, Tensor]:
    """Return the gradient, in every array of ``rule``, of a loss after the case's updates."""
    weights = golden.rule_weights(rule, dtype)
    for array in weights.values():
        array.requires_grad_()
    update = small_update(weights)
    state = _case_state(golden, small_start(golden, update), case)
    for number in range(CASES[case]):
        state, _ = update.definition(state, golden.rollout(number, dtype))

    held_out = golden.rollout(2, dtype)
    outputs = update.agent.outputs(update.agent.layout.views(state.params), held_out.rows)
    actions = golden.tensor(golden["inner_common"]["rollout2/actions"]).long()
    log_policy = outputs.logits.log_softmax(-1).view(*actions.shape, -1)
    taken = log_policy.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    weight = golden.tensor(golden["metagrad_common"]["adv_weight"], dtype)
    loss = (-taken * weight).mean() + 0.01 * (outputs.y.square().mean() + outputs.z.square().mean())
    found = torch.autograd.grad(loss, list(weights.values()), materialize_grads=True)
    return dict(zip(weights, found, strict=True))


def _case_state(golden: Golden, state: LearnerState, case: str) -> LearnerState:
    """Return the initial state of a case; a warm optimiser has made ten steps."""
    if "nonzero" in case:
        h, c = (torch.tensor(golden["metagrad_common"][part]) for part in "hc")
        state = state._replace(recurrent=RuleState(h.to(state.params), c.to(state.params)))
    if "warm" in case:
        second = torch.full_like(state.params, 1e-4)
        state = state._replace(moments=state.moments._replace(second=second, updates=10))
    return state


def _compare(
    kind: str,
    precision: str,
    where: str,
    ours: dict[str, Tensor],
    expected: Arrays,
    case: str,
) -> Iterator[Comparison]:
    """Compare each array on its own scale; large arrays are stored as every n-th element."""
    stored = unprefix(case, expected)
    largest = {name: float(stored[f"absmax/{name}"]) for name in ours}
    scales, most = _scales(largest), max(largest.values())
    for name, gradient in ours.items():
        found = gradient.detach().cpu().numpy()
        theirs = stored.get(f"full/{name}")
        if theirs is None:
            theirs = stored[f"slice/{name}"]
            found = found.reshape(-1)[:: int(stored[f"stride/{name}"])]
        yield compare(kind, precision, f"{where}: {name}", found, theirs, scales[name], most)


def _scales(largest: Mapping[str, float]) -> dict[str, float]:
    """Return the scale of each array's error, given the ``largest`` magnitude in each array."""
    most = max(largest.values())
    return {
        name: most if name == ZERO_BY_SYMMETRY or own == 0.0 else own
        for name, own in largest.items()
    }
