"""Parity of meta-gradients: of a loss after learning, in all 42 arrays of the rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from rulescope.core.arrays import Arrays, unprefix
from rulescope.learners.disco.rule_network import RuleState
from rulescope.learners.disco.update import LearnerState
from rulescope.numerics.golden import Golden
from rulescope.numerics.inner_steps import small_start, small_update
from rulescope.numerics.tolerances import PRECISIONS, Comparison, compare

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
    family: str,
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
        yield compare(family, precision, f"{where}: {name}", found, theirs, scales[name], most)


def _scales(largest: Mapping[str, float]) -> dict[str, float]:
    """Return the scale of each array's error, given the ``largest`` magnitude in each array."""
    most = max(largest.values())
    return {
        name: most if name == ZERO_BY_SYMMETRY or own == 0.0 else own
        for name, own in largest.items()
    }
