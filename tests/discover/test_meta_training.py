from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from discover.tiny_discovery import LEARNER, TINY, tiny
from rulescope.discover import rule_tensors
from rulescope.discover.discovery_spec import Discovery
from rulescope.discover.meta_training import MetaTraining
from rulescope.discover.objective import meta_loss_terms
from rulescope.discover.population import Population
from rulescope.learners.disco.losses import kl

T = TypeVar("T")


def same(one: MetaTraining, other: MetaTraining) -> bool:
    a, b = one.save(), other.save()
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k], equal_nan=True) for k in a)


def test_a_loaded_checkpoint_continues_to_the_bit() -> None:
    spec = msgspec.structs.replace(TINY, averaging=0.75)  # so that the average has a history, too
    whole, first, second = MetaTraining(spec), MetaTraining(spec), MetaTraining(spec)
    for _ in range(2):
        whole.advance()
        first.advance()
    second.load(first.save())
    for _ in range(3):
        whole.advance()
        second.advance()
    assert same(whole, second)
    assert not same(whole, first)
    assert whole.population.ages.max() <= 9


def test_every_array_of_the_rule_moves_and_the_log_is_complete() -> None:
    training = MetaTraining(TINY)
    before = rule_tensors.to_arrays(training.rule)
    for _ in range(4):
        training.advance()
    assert training.finished
    still = {name for name, a in before.items() if np.array_equal(a, training.rule[name])}
    # Shifting all policy logits equally changes only rounding; all other arrays must move.
    assert still <= {"lstm/linear_4/b"}
    log = training.log_columns()
    assert log["meta_step"].tolist() == [1, 2, 3, 4]
    assert np.isfinite(log["score_0"]).all()
    assert (log["gradient_norm"] > 0).all()


def test_the_result_is_the_average_of_the_rule_over_meta_steps() -> None:
    last = MetaTraining(TINY)
    averaged = MetaTraining(msgspec.structs.replace(TINY, averaging=0.75))
    expected = rule_tensors.to_arrays(averaged.rule)
    for _ in range(3):
        last.advance()
        averaged.advance()
        for name, moved_to in averaged.rule.items():
            expected[name] += 0.25 * (moved_to.numpy() - expected[name])
    for name, array in expected.items():
        assert torch.equal(last.average[name], last.rule[name])
        assert torch.equal(
            averaged.rule[name], last.rule[name]
        )  # averaging does not affect training
        np.testing.assert_allclose(averaged.average[name].numpy(), array, rtol=1e-5, atol=1e-7)
    assert not torch.equal(averaged.average["lstm/linear/w"], averaged.rule["lstm/linear/w"])


def test_an_agent_that_is_not_finite_is_replaced_and_left_out() -> None:
    sound, broken = MetaTraining(TINY), MetaTraining(TINY)
    broken.population.state.params[1] = float("nan")
    assert sound.advance().broken == 0
    assert broken.advance().broken == 1
    assert all(array.isfinite().all() for array in broken.rule.values())
    assert broken.population.are_finite().all()
    assert broken.population.ages.tolist()[1] == 0


def test_the_rule_does_not_move_if_no_agent_is_finite() -> None:
    training = MetaTraining(TINY)
    before = rule_tensors.to_arrays(training.rule)
    training.population.state.params[:] = float("nan")
    assert training.advance().broken == 3
    assert all(np.array_equal(before[name], a) for name, a in training.rule.items())


def moved(spec: Discovery) -> set[str]:
    training = MetaTraining(spec)
    before = rule_tensors.to_arrays(training.rule)
    training.advance()
    return {name for name, a in before.items() if not np.array_equal(a, training.rule[name])}


def test_a_warm_start_trains_the_policy_target_alone() -> None:
    predictions = {"lstm/linear_2/b", "lstm/linear_3/b"}  # an initial gate blocks the rest
    warm = moved(tiny(warm_start=1, updates=1))
    assert "lstm/sequential_1/conv1_d/w" in warm
    assert not warm & predictions
    assert predictions <= moved(tiny(warm_start=0, updates=1))


def test_a_warm_start_moves_the_policy_target_towards_the_improved_policy() -> None:
    spec = tiny(warm_start=1, updates=1)
    training, again = MetaTraining(spec), MetaTraining(spec)
    training.advance()

    def distance(rule: rule_tensors.Rule) -> float:
        emitted = Population(spec).update(rule_tensors.copy_per_agent(rule, 3))
        return float(kl(emitted.improved, emitted.policy).detach().mean())

    assert distance(training.rule) < distance(again.rule)


# The meta-gradient by finite differences, in float64. What the rule detaches on purpose (values,
# policies it reads, the optimiser's denominators) is kept out: in the first case there is
# one update, with an optimiser whose denominator hardly moves; in the second the agents do not
# learn at all, and only the lifetime state carries the rule's influence onwards.


def doubles(tree: T) -> T:
    def double(x: Tensor) -> Tensor:
        return x.double() if x.is_floating_point() else x

    changed: T = pytree.tree_map(double, tree)
    return changed


@pytest.mark.parametrize(("updates", "rate"), [(1, 1e-2), (2, 1e-12)])
def test_meta_gradients_agree_with_finite_differences(updates: int, rate: float) -> None:
    spec = tiny(learner=msgspec.structs.replace(LEARNER, learning_rate=rate))
    population = Population(spec)
    generator = torch.Generator().manual_seed(0)
    state = doubles(population.state)
    moments = state.moments._replace(
        second=torch.full_like(state.params, 1e-2), updates=torch.full((3,), 1e4)
    )
    hidden = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    start = state._replace(
        moments=doubles(moments), recurrent=state.recurrent._replace(hidden=hidden, cell=hidden)
    )
    batches = []
    for _ in range(updates):
        population.replay.append(population.collect("training", 5))
        batches.append(doubles(population.replay.sample(population.streams["replay"], 3)))
    fresh = doubles(population.collect("evaluation", 5))
    advantages = torch.randn(3, 5, 2, generator=generator, dtype=torch.float64)
    # Away from zero: a ReLU at its kink has no derivative to compare with.
    rule = {
        name: array.double() + 0.3 * torch.randn(array.shape, generator=generator)
        for name, array in rule_tensors.draw_initial(spec.sizes, 5).items()
    }

    def loss(values: dict[str, Tensor]) -> Tensor:
        one, emitted = start, []
        for batch in batches:
            one, targets = torch.vmap(population._update_agent)(values, one, batch)
            emitted.append(targets)
        terms = meta_loss_terms(population.agent, one.params, fresh, advantages, emitted)
        priced = terms.total(spec.objective) + 10 * terms.target_size
        return (priced + terms.target_divergence).sum()

    copies = rule_tensors.copy_per_agent(rule, 3)
    found = torch.autograd.grad(loss(copies), list(copies.values()), allow_unused=True)
    checked = 0
    for (name, array), gradient in zip(rule.items(), found, strict=True):
        direction = torch.randn(array.shape, generator=generator, dtype=torch.float64)
        step = 1e-6
        ahead, behind = (
            loss(
                rule_tensors.copy_per_agent({**rule, name: array + sign * step * direction}, 3)
            ).detach()
            for sign in (1, -1)
        )
        slope = float(ahead - behind) / (2 * step)
        ours = 0.0 if gradient is None else float((gradient.sum(0) * direction).sum())
        assert ours == pytest.approx(slope, rel=2e-4, abs=3e-8), name
        checked += abs(slope) > 1e-6
    # With one update the lifetime network has no influence yet; later it has.
    assert checked >= (18 if updates == 1 else 28)
