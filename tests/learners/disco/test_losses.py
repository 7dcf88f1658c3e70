"""The fast update is the definition: same gradients, same state, to rounding."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from torch import Tensor

from learners.disco.cases import (
    GRID,
    IMAGE,
    Shape,
    cloned,
    lived_in,
    made_up_batch,
    small_update,
    spread_out,
)
from learners.small import CHANNEL_SIZES, RULE, small_disco
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.update import DiscoUpdate, LearnerState, Step
from rulescope.learners.disco_config import AGENTS, INTERFACES, Coefficients, Disco, Interface

TOLERANCE = 1e-12

SHAPES = st.builds(
    Shape,
    transitions=st.integers(1, 8),
    width=st.integers(1, 6),
    rows=st.integers(1, 10),
    terminal=st.sampled_from([0.0, 0.2, 0.6, 1.0]),
    seed=st.integers(0, 2**20),
)


def distance(found: Tensor, expected: Tensor, scale: float | None = None) -> float:
    """Return the largest difference, relative to the largest expected magnitude."""
    expected = expected.detach()
    largest = float(expected.abs().max()) if scale is None else scale
    difference = float((found - expected).abs().max())
    return difference / largest if largest else difference


def both_forms(
    update: DiscoUpdate, state: LearnerState, batch: Batch
) -> tuple[tuple[LearnerState, Step], tuple[LearnerState, Step]]:
    """Return (definition, fast) of one step; the definition sees every slot as its own row."""
    defined = update.definition(cloned(state), spread_out(batch))
    return defined, update.fast_(cloned(state), batch)


def distances(update: DiscoUpdate, state: LearnerState, batch: Batch) -> dict[str, float]:
    """Return how far the two forms of one step are apart, by part of the outcome."""
    (expected, defined), (found, fast) = both_forms(update, state, batch)
    views = update.agent.layout.views
    ours, theirs = views(fast.gradient), views(defined.gradient.detach())
    # An array whose gradients all but cancel is judged by the rounding of what cancelled.
    floor = 0.01 * float(defined.gradient.detach().abs().max())
    apart = {
        f"gradient of {name}": distance(ours[name], array, max(floor, float(array.abs().max())))
        for name, array in theirs.items()
    }
    assert found.moments.updates == expected.moments.updates == state.moments.updates + 1
    return apart | {
        "mask": distance(fast.mask, defined.mask),
        "params": distance(found.params, expected.params),
        "target": distance(found.target, expected.target),
        "hidden": distance(found.recurrent.hidden, expected.recurrent.hidden),
        "cell": distance(found.recurrent.cell, expected.recurrent.cell),
        "advantage average": distance(found.averages.advantage, expected.averages.advantage),
        "td average": distance(found.averages.td, expected.averages.td),
        "first moment": distance(found.moments.first, expected.moments.first),
        "second moment": distance(found.moments.second, expected.moments.second),
    }


def assert_equal_forms(
    rule: str,
    config: Disco,
    shape: Shape | None = None,
    observation: tuple[int, ...] = GRID,
    actions: int = 3,
) -> None:
    shape = shape or Shape()
    update = small_update(rule, config, observation, actions)
    batch = made_up_batch(shape, observation, actions)
    apart = distances(update, lived_in(update, shape.seed), batch)
    assert {name: value for name, value in apart.items() if not value <= TOLERANCE} == {}


@pytest.mark.parametrize("bundle", AGENTS)
@settings(max_examples=12, deadline=None)
@given(shape=SHAPES)
def test_closed_form_is_the_definition_on_any_batch(bundle: str, shape: Shape) -> None:
    assert_equal_forms(RULE, small_disco(bundle), shape)


@pytest.mark.parametrize("actions", [3, 6])
@pytest.mark.parametrize("bundle", AGENTS)
def test_closed_form_is_the_definition_for_every_rule(rule: str, bundle: str, actions: int) -> None:
    assert_equal_forms(rule, small_disco(bundle), actions=actions)


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("bundle", ["historical", "reference"])
def test_closed_form_is_the_definition_in_every_interface(
    rule: str, bundle: str, interface: str
) -> None:
    assert_equal_forms(rule, small_disco(bundle, interface=INTERFACES[interface]))


@pytest.mark.parametrize("two_hot", ["exact", "offset"])
def test_closed_form_is_the_definition_where_targets_leave_the_support(two_hot: str) -> None:
    config = small_disco(interface=Interface(bound=0.5, bins=7))
    conventions = replace(config.conventions, two_hot=two_hot)
    assert_equal_forms(RULE, replace(config, conventions=conventions))


@pytest.mark.parametrize("mask", ["in-trajectory", "stored-flag", "none"])
@pytest.mark.parametrize("terminal", [0.0, 0.4, 1.0])
def test_closed_form_is_the_definition_under_every_mask(mask: str, terminal: float) -> None:
    config = small_disco()
    masked = replace(config, conventions=replace(config.conventions, loss_mask=mask))
    assert_equal_forms(RULE, masked, Shape(terminal=terminal, seed=5))


@pytest.mark.parametrize(
    "coefficients",
    [
        Coefficients(entropy=0.01),
        Coefficients(entropy=2.0, policy=0.0),
        Coefficients(y=0.0, z=0.0, aux=0.0),
        Coefficients(policy=0.3, y=0.0, z=1.7, aux=0.5, value=3.0, entropy=0.1),
        Coefficients(value=0.0),
    ],
)
def test_closed_form_is_the_definition_for_any_coefficients(
    rule: str, coefficients: Coefficients
) -> None:
    assert_equal_forms(rule, small_disco(coefficients=coefficients))


@pytest.mark.parametrize("bundle", AGENTS)
@pytest.mark.parametrize("actions", [3, 6])
def test_closed_form_is_the_definition_with_the_channel_torso(
    rule: str, bundle: str, actions: int
) -> None:
    config = small_disco(bundle, agent=CHANNEL_SIZES)
    assert_equal_forms(rule, config, observation=IMAGE, actions=actions)


@pytest.mark.parametrize("rows", [1, 2])
def test_closed_form_is_the_definition_when_all_steps_look_alike(rows: int) -> None:
    assert_equal_forms(RULE, small_disco(), Shape(transitions=12, width=8, rows=rows))


def test_closed_form_is_the_definition_on_a_batch_of_the_usual_size(rule: str) -> None:
    assert_equal_forms(rule, small_disco(), Shape(transitions=28, width=16, rows=80))


def test_entropy_bonus_is_finite_for_a_deterministic_policy() -> None:
    update = small_update(RULE, small_disco(coefficients=Coefficients(entropy=0.1)))
    state = lived_in(update)
    update.agent.layout.views(state.params)["policy.b"][:] = torch.tensor([2000.0, 0.0, -2000.0])
    apart = distances(update, state, made_up_batch(Shape()))
    assert max(apart.values()) <= TOLERANCE


@pytest.mark.parametrize("bundle", AGENTS)
def test_a_whole_series_of_steps_agrees_from_a_fresh_start(rule: str, bundle: str) -> None:
    """Adam's first steps divide by the gradient itself, so its rounding shows; hence 1e-9."""
    update = small_update(rule, small_disco(bundle))
    start = update.fresh(update.agent.initial(3).double())
    expected, found = cloned(start), cloned(start)
    for seed in range(4):
        batch = made_up_batch(Shape(seed=seed))
        state, _ = update.definition(expected, spread_out(batch))
        expected = detached(state)
        found, _ = update.fast_(found, batch)
    assert distance(found.params, expected.params) <= 1e-9
    assert distance(found.target, expected.target) <= 1e-9
    assert distance(found.recurrent.hidden, expected.recurrent.hidden) <= 1e-9
    assert not torch.equal(found.params, start.params)


def detached(state: LearnerState) -> LearnerState:
    """Return the state without the graph that made it."""
    moments = state.moments._replace(
        first=state.moments.first.detach(), second=state.moments.second.detach()
    )
    return state._replace(
        params=state.params.detach(), target=state.target.detach(), moments=moments
    )


def test_fast_form_changes_the_flat_vectors_in_place() -> None:
    update = small_update(RULE)
    state = lived_in(update)
    addresses = [
        tensor.data_ptr()
        for tensor in (state.params, state.target, state.moments.first, state.moments.second)
    ]
    after, step = update.fast_(state, made_up_batch(Shape()))
    kept = [after.params, after.target, after.moments.first, after.moments.second]
    assert [tensor.data_ptr() for tensor in kept] == addresses
    assert not step.gradient.requires_grad
    assert (step.losses, step.loss) == (None, None)


def test_learners_that_share_an_update_do_not_meet() -> None:
    shared, batch = small_update(RULE), made_up_batch(Shape())
    states = [lived_in(shared, seed) for seed in (0, 1)]
    alone = [small_update(RULE) for _ in states]
    expected = [cloned(state) for state in states]
    for _ in range(2):
        states = [shared.fast_(state, batch)[0] for state in states]
        expected = [one.fast_(state, batch)[0] for one, state in zip(alone, expected, strict=True)]
    for found, state in zip(states, expected, strict=True):
        assert torch.equal(found.params, state.params)
        assert torch.equal(found.target, state.target)


def test_a_batch_can_be_differentiated_after_the_fast_form_has_seen_it() -> None:
    update, batch = small_update(RULE), made_up_batch(Shape())
    update.fast_(lived_in(update), batch)
    state = lived_in(update)
    params = state.params.clone().requires_grad_()
    _, step = update.definition(state._replace(params=params), batch)
    (gradient,) = torch.autograd.grad(step.targets.logits[0].sum(), params)
    assert gradient.isfinite().all()


def test_definition_leaves_its_input_alone() -> None:
    update = small_update(RULE)
    state = lived_in(update)
    before = cloned(state)
    update.definition(state, made_up_batch(Shape()))
    assert torch.equal(state.params, before.params)
    assert torch.equal(state.target, before.target)
    assert torch.equal(state.moments.first, before.moments.first)


def test_target_averages_the_parameters_from_before_the_update() -> None:
    update = small_update(RULE)
    state = lived_in(update)
    before = cloned(state)
    after, _ = update.fast_(state, made_up_batch(Shape()))
    decay = update.config.target_decay
    expected = decay * before.target + (1.0 - decay) * before.params
    assert distance(after.target, expected) <= 1e-15


def test_unvisited_actions_have_no_gradient() -> None:
    """Of the per-action heads only the actions taken are pulled."""
    update = small_update(RULE, small_disco("reference"))
    batch = made_up_batch(Shape())
    only_first = replace_actions(batch, torch.zeros_like(batch.actions))
    _, step = update.fast_(lived_in(update), only_first)
    gradient = update.agent.layout.views(step.gradient)["model.action.w"]
    assert gradient[0].abs().max() > 0
    assert gradient[1:].abs().max() == 0


def replace_actions(batch: Batch, actions: Tensor) -> Batch:
    return Batch(
        rows=batch.rows,
        index=batch.index,
        actions=actions,
        rewards=batch.rewards,
        terminals=batch.terminals,
        behaviour=batch.behaviour,
        began=batch.began,
    )


def test_float32_stays_close_to_float64(rule: str) -> None:
    shape = Shape(seed=2)
    gradients = []
    for dtype in (torch.float32, torch.float64):
        update = small_update(rule, dtype=dtype)
        _, step = update.fast_(lived_in(update, 2), made_up_batch(shape, dtype=dtype))
        gradients.append(step.gradient.double())
    assert distance(gradients[0], gradients[1]) <= 1e-3
