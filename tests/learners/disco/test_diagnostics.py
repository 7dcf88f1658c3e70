"""What is logged of an update is what the definition computes."""

from __future__ import annotations

import pytest

from learners.disco.cases import Shape, cloned, lived_in, made_up_batch, small_update
from learners.small import small_disco
from rulescope.learners.disco.diagnostics import METRICS, measurements
from rulescope.learners.disco.value_interface import effective_bins
from rulescope.learners.disco_config import AGENTS


@pytest.mark.parametrize("bundle", AGENTS)
@pytest.mark.parametrize("terminal", [0.0, 0.3])
def test_measurements_are_means_of_the_defined_losses(
    rule: str, bundle: str, terminal: float
) -> None:
    update = small_update(rule, small_disco(bundle))
    state, batch = lived_in(update), made_up_batch(Shape(terminal=terminal))
    _, defined = update.definition(cloned(state), batch)
    after, step = update.fast_(cloned(state), batch)
    found = measurements(step, after, update.interface)
    assert tuple(found) == METRICS
    assert defined.losses is not None
    expected = {
        "loss_policy": defined.losses.policy.mean().item(),
        "loss_y": defined.losses.y.mean().item(),
        "loss_z": defined.losses.z.mean().item(),
        "loss_aux": defined.losses.aux.mean().item(),
        "loss_value": defined.losses.value.mean().item(),
        "entropy": defined.losses.entropy.mean().item(),
        "td_magnitude": defined.estimate.td.abs().mean().item(),
        "advantage_std": defined.estimate.advantage.std(correction=0).item(),
        "gradient_norm": defined.gradient.norm().item(),
        "effective_bins": effective_bins(
            defined.probabilities.q[batch.index].flatten(0, 2).mean(0).detach()
        ),
        "hidden_norm": after.recurrent.hidden.norm().item(),
        "cell_norm": after.recurrent.cell.norm().item(),
        "distinct_rows": 6.0,
    }
    assert found == pytest.approx(expected, rel=1e-9)
