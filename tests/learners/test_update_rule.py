"""A loss and a memory make a learner: the rest is what the other learners have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from learners.baseline_cases import LITTLE, LITTLE_CHANNEL
from rulescope.core.arrays import digest
from rulescope.core.errors import DivergedError, SpecError
from rulescope.learners.a2c import A2CLearner, Decisions, gae
from rulescope.learners.baseline_config import A2C, PPO
from rulescope.learners.learner import Learner, Rollout
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.ppo import PPOLearner
from rulescope.learners.update_rule import Seen, Setup, State, UpdateRule
from rulescope.rules.rule_weights import RuleWeights

pytestmark = pytest.mark.usefixtures("deterministic")

SETUP = Setup((3, 3), 3, steps=7, seed=5, learning_rate=0.01, agent=LITTLE)
Answer = Callable[[Tensor, State], Any]


class PlainA2C(UpdateRule):
    """What A2C does, as the equations read; its memory is of no consequence."""

    def start(self) -> State:
        return {"rollouts": torch.zeros((), dtype=torch.int64), "sum": torch.zeros(2)}

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        advantages, returns = seen.advantages(seen.rewards)
        policy = -(advantages * seen.chosen()).mean()
        value = (seen.values[:-1] - returns).square().mean()
        loss = policy + 0.5 * value - 0.01 * seen.entropy().mean()
        return loss, {"rollouts": state["rollouts"] + 1, "sum": state["sum"] + seen.rewards.sum()}


class Answering(PlainA2C):
    """A rule that returns a given result."""

    answer: Answer

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        loss, state = super().loss(seen, state)
        return self.answer(loss, state)  # type: ignore[no-any-return]


def answering(answer: Answer) -> Answering:
    learner = Answering(SETUP)
    learner.answer = answer
    return learner


def rollout(seed: int, learner: Learner) -> Rollout:
    rng = np.random.default_rng(seed)
    seen = rng.standard_normal((8, 2, 3, 3)).astype(np.float32)
    choices = [learner.act(each) for each in seen[:-1]]
    return Rollout(
        observations=seen,
        actions=np.stack([choice.actions for choice in choices]),
        rewards=rng.standard_normal((7, 2)).astype(np.float32),
        terminals=rng.random((7, 2)) < 0.3,
        began=np.zeros(2, np.bool_),
        behaviour={"logits": np.stack([choice.behaviour["logits"] for choice in choices])},
    )


def test_conforms() -> None:
    check_learner(lambda: PlainA2C(SETUP), (3, 3), 3, steps=7)


def test_conforms_with_channels() -> None:
    setup = SETUP._replace(observation_shape=(2, 5, 4), agent=LITTLE_CHANNEL)
    check_learner(lambda: PlainA2C(setup), (2, 5, 4), 3, steps=7, lanes=3, rollouts=3)


def test_the_loss_of_a2c_makes_the_same_learner_as_a2c() -> None:
    """The two make their gradients in different ways, and nothing else may differ."""
    ours = PlainA2C(SETUP)
    theirs = A2CLearner(A2C(agent=LITTLE, learning_rate=0.01), (3, 3), 3, seed=5)
    for turn in range(5):
        one, other = rollout(turn, ours), rollout(turn, theirs)
        np.testing.assert_array_equal(one.actions, other.actions)
        metrics, expected = ours.learn(one, measure=True), theirs.learn(other, measure=True)
        assert metrics["gradient_norm"] == pytest.approx(expected["gradient_norm"], rel=1e-4)
        assert metrics["entropy"] == pytest.approx(expected["entropy"], rel=1e-5)
        torch.testing.assert_close(ours.params, theirs.params, rtol=1e-4, atol=1e-5)


def test_what_a_rule_sees_is_what_happened() -> None:
    kept: list[Seen] = []

    class Watching(PlainA2C):
        def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
            kept.append(seen)
            return super().loss(seen, state)

    learner = Watching(SETUP)
    collected = rollout(0, learner)
    outputs = learner.evaluate(torch.tensor(collected.observations).flatten(0, 1)).output_array
    learner.learn(collected, measure=False)
    [seen] = kept
    np.testing.assert_allclose(seen.values.detach().ravel(), outputs[:, -1], rtol=1e-5, atol=1e-6)
    decisions = Decisions(outputs[:14], collected.actions.ravel())
    np.testing.assert_allclose(seen.chosen().detach().ravel(), decisions.chosen, rtol=1e-5)
    np.testing.assert_array_equal(seen.rewards, collected.rewards)
    np.testing.assert_array_equal(seen.terminals, collected.terminals)
    values = seen.values.detach().numpy()
    expected = gae(collected, values, 0.9, 0.8)
    advantages, returns = seen.advantages(seen.rewards, 0.9, 0.8)
    assert not advantages.requires_grad
    np.testing.assert_allclose(advantages, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(returns, expected + values[:-1], rtol=1e-4, atol=1e-6)


def test_the_history_is_what_the_rule_returned_and_what_it_gets() -> None:
    learner = PlainA2C(SETUP)
    assert tuple(learner.carriers) == UpdateRule.CARRIERS
    metrics = learner.learn(rollout(0, learner), measure=True)
    state = learner.carriers["recurrent"].get()
    assert int(state["rollouts"]) == 1
    norm = np.sqrt(1 + np.square(state["sum"].astype(np.float64)).sum())
    assert metrics["history_norm"] == pytest.approx(norm)
    learner.carriers["recurrent"].set({"rollouts": np.array(41), "sum": np.zeros(2, np.float32)})
    learner.learn(rollout(1, learner), measure=False)
    assert int(learner.carriers["recurrent"].get()["rollouts"]) == 42


def test_a_state_tensor_keeps_no_graph() -> None:
    def answer(loss: Tensor, state: State) -> Any:
        return loss, state | {"sum": state["sum"] + loss}

    learner = answering(answer)
    for turn in range(2):  # the second would reach back into the first
        learner.learn(rollout(turn, learner), measure=False)
    assert learner.carriers["recurrent"].get()["sum"].any()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda loss, _: loss, r"loss\(\) must return \(loss, state\)"),
        (lambda loss, state: (float(loss.detach()), state), "a scalar tensor first, not .*float"),
        (lambda loss, state: (loss.expand(2), state), r"a scalar tensor first, not shape \[2\]"),
        (lambda loss, state: (loss.detach(), state), "does not depend on the network"),
        (
            lambda _, state: (torch.ones((), requires_grad=True) * 2, state),
            "does not depend on the network",
        ),
        (lambda loss, _: (loss, {}), r"a state of \['rollouts', 'sum'\], not \[\]"),
        (lambda loss, state: (loss, state | {"sum": torch.zeros(3)}), "'sum' was .*2.* is now .*3"),
        (lambda loss, state: (loss, state | {"sum": state["sum"].double()}), "now .*float64"),
        (lambda loss, state: (loss, state | {"sum": 1.0}), "now .*float"),
    ],
)
def test_an_invalid_result_of_loss_is_reported(answer: Answer, message: str) -> None:
    learner = answering(answer)
    collected = rollout(0, learner)
    before = learner.save()
    with pytest.raises(SpecError, match=rf"rule .*Answering: .*{message}"):
        learner.learn(collected, measure=False)
    after = learner.save()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_history_that_is_not_finite_is_the_end() -> None:
    learner = answering(lambda loss, state: (loss, state | {"sum": state["sum"] / 0.0}))
    with pytest.raises(DivergedError, match="state 'sum' is no longer finite"):
        learner.learn(rollout(0, learner), measure=False)


@pytest.mark.parametrize("nothing", [None, [], {"size": 1.0}, {"": torch.zeros(1)}])
def test_a_state_is_tensors_by_name(nothing: Any) -> None:
    class Empty(PlainA2C):
        def start(self) -> State:
            return nothing  # type: ignore[no-any-return]

    with pytest.raises(SpecError, match=r"Empty: start\(\) must return"):
        Empty(SETUP)


class Stateless(UpdateRule):
    """REINFORCE, which keeps nothing."""

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        return -(seen.rewards * seen.chosen()).mean(), state


def test_a_rule_that_starts_with_nothing_has_no_history() -> None:
    learner = Stateless(SETUP)
    assert Stateless.declared_carriers() == tuple(learner.carriers) == ("moments", "params")
    assert PlainA2C.declared_carriers() == ("recurrent", "moments", "params")
    assert "history_norm" not in learner.metrics
    assert set(learner.learn(rollout(0, learner), measure=True)) == set(learner.metrics)
    check_learner(lambda: Stateless(SETUP), (3, 3), 3, steps=7)


def ppo_loss(seen: Seen) -> Tensor:
    """The loss of PPO, of a rollout or a minibatch, without normalised advantages."""
    advantages = seen.prepared["advantages"]
    ratio = (seen.chosen() - seen.before).exp()
    gain = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    value = (seen.state_values() - seen.prepared["returns"]).square().mean()
    return -gain.mean() + 0.5 * value - 0.01 * seen.entropy().mean()


class PlainPPO(UpdateRule):
    """What PPO does, as the equations read; it counts its steps."""

    EPOCHS = 3
    MINIBATCHES = 4
    STEPWISE = True

    def start(self) -> State:
        return {"steps": torch.zeros(())}

    def prepare(self, seen: Seen, state: State) -> dict[str, Tensor]:  # noqa: ARG002
        advantages, returns = seen.advantages(seen.rewards)
        return {"advantages": advantages, "returns": returns}

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        return ppo_loss(seen), {"steps": state["steps"] + 1}


def test_a_loss_in_minibatches_makes_the_same_learner_as_ppo() -> None:
    ours = PlainPPO(SETUP)
    config = PPO(
        agent=LITTLE, learning_rate=0.01, epochs=3, minibatches=4, normalise_advantages=False
    )
    theirs = PPOLearner(config, (3, 3), 3, seed=5)
    for turn in range(4):
        one, other = rollout(turn, ours), rollout(turn, theirs)
        np.testing.assert_array_equal(one.actions, other.actions)
        metrics, expected = ours.learn(one, measure=True), theirs.learn(other, measure=True)
        assert metrics["gradient_norm"] == pytest.approx(expected["gradient_norm"], rel=1e-3)
        assert metrics["entropy"] == pytest.approx(expected["entropy"], rel=1e-4)
        torch.testing.assert_close(ours.params, theirs.params, rtol=1e-3, atol=1e-4)
    assert float(ours.carriers["recurrent"].get()["steps"]) == 4 * 12


def test_a_minibatch_holds_each_transition_once_per_pass_cut_alike() -> None:
    kept: list[Seen] = []

    class Watching(PlainPPO):
        HEADS = {"y": 5}  # noqa: RUF012

        def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
            kept.append(seen)
            return super().loss(seen, state)

    learner = Watching(SETUP)
    collected = rollout(0, learner)
    learner.learn(collected, measure=False)
    assert len(kept) == 12
    advantages = kept[0].prepared["advantages"]
    assert advantages.shape == kept[0].before.shape == kept[0].values.shape == (4,)
    assert kept[0].heads["y"].shape == (4, 5)
    for first in (0, 4, 8):
        parts = kept[first : first + 4]
        rewards = torch.cat([each.rewards for each in parts])
        seen = torch.cat([each.observations for each in parts])
        assert sorted(rewards.tolist()) == sorted(collected.rewards.ravel().tolist())
        place = [int(np.flatnonzero(collected.rewards.ravel() == each)[0]) for each in rewards]
        np.testing.assert_array_equal(seen, collected.observations[:-1].reshape(14, 3, 3)[place])
    with pytest.raises(SpecError, match=r"needs a whole rollout.*prepare\(\)"):
        kept[0].advantages(kept[0].rewards)


def test_only_a_rule_with_minibatches_has_their_stream() -> None:
    assert set(PlainA2C(SETUP).streams) == {"action"}
    assert set(PlainPPO(SETUP).streams) == {"action", "minibatch"}


def test_before_is_the_policy_that_acted() -> None:
    kept: list[Seen] = []

    class Repeating(PlainA2C):
        EPOCHS = 2

        def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
            kept.append(seen)
            return super().loss(seen, state)

    learner = Repeating(SETUP)
    learner.learn(rollout(0, learner), measure=False)
    first, second = kept
    torch.testing.assert_close(first.before, first.chosen().detach())
    torch.testing.assert_close(second.before, first.before)
    assert not torch.allclose(second.chosen().detach(), second.before)
    assert not second.before.requires_grad


class Headed(PlainA2C):
    """A2C with a further head, which predicts the square of the reward."""

    HEADS = {"y": 2, "z": 3}  # noqa: RUF012

    def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
        loss, state = super().loss(seen, state)
        assert seen.heads["y"].shape == (seen.values.shape[0], seen.values.shape[1], 2)
        error = seen.heads["y"][:-1, :, 0] - seen.rewards.square()
        return loss + error.square().mean() + seen.heads["z"].square().mean(), state


def test_further_heads_change_nothing_in_the_rest_of_a_new_network() -> None:
    plain, headed = PlainA2C(SETUP), Headed(SETUP)
    torch.testing.assert_close(headed.params[: len(plain.params)], plain.params, rtol=0, atol=0)
    shapes = headed.network.layout.shapes
    assert {name for name in shapes if name not in plain.network.layout.shapes} == {
        "head.y.w",
        "head.y.b",
        "head.z.w",
        "head.z.b",
    }
    before = headed.views["head.y.w"].clone()
    headed.learn(rollout(0, headed), measure=False)
    assert not torch.equal(before, headed.views["head.y.w"])


@pytest.mark.parametrize("kind", [PlainPPO, Headed])
def test_rules_with_minibatches_and_heads_conform(kind: type[UpdateRule]) -> None:
    check_learner(lambda: kind(SETUP), (3, 3), 3, steps=7, rollouts=4)


def test_what_acts_after_a_step_acts_on_what_the_next_one_gets() -> None:
    kept: list[float] = []

    class Watching(PlainPPO):
        def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
            kept.append(float(state["steps"]))
            return super().loss(seen, state)

    learner = Watching(SETUP)
    pinned = learner.carriers["recurrent"]
    learner.after_step.append(lambda: pinned.set({"steps": np.zeros((), np.float32)}))
    learner.learn(rollout(0, learner), measure=False)
    assert kept == [0.0] * 12


def test_attributes_of_an_instance_count() -> None:
    class Chosen(PlainPPO):
        def __init__(self, setup: Setup) -> None:
            self.EPOCHS, self.MINIBATCHES = setup.options
            self.LEARNING_RATE = 0.5
            super().__init__(setup)

    learner = Chosen(SETUP._replace(options=(2, 1)))
    learner.learn(rollout(0, learner), measure=False)
    assert float(learner.carriers["recurrent"].get()["steps"]) == 2
    assert "minibatch" not in learner.streams
    assert learner.optimiser._learning_rate == 0.5


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("EPOCHS", 0, "EPOCHS must be a whole number from 1 on, not 0"),
        ("MINIBATCHES", 1.5, "MINIBATCHES must be a whole number"),
        ("MINIBATCHES", 15, r"MINIBATCHES: 15 is more than an iteration has \(14\)"),
        ("HEADS", {"y": 0}, "HEADS must be sizes by name, not 'y': 0"),
    ],
)
def test_an_attribute_that_is_impossible_is_reported(name: str, value: Any, message: str) -> None:
    kind = type("Odd", (PlainA2C,), {name: value})
    with pytest.raises(SpecError, match=f"Odd: {message}"):
        kind(SETUP)


@pytest.mark.parametrize("made", [None, {"a": 1.0}, {"a": torch.zeros(3)}])
def test_what_prepare_returns_is_checked(made: Any) -> None:
    class Odd(PlainPPO):
        def prepare(self, seen: Seen, state: State) -> Any:  # noqa: ARG002
            return made

    learner = Odd(SETUP)
    with pytest.raises(SpecError, match=r"Odd: prepare\(\) must return tensors"):
        learner.learn(rollout(0, learner), measure=False)


def test_weights_of_the_setup_are_the_rule_and_are_watched() -> None:
    given = RuleWeights("given", arrays := {"w": np.ones(3, np.float32)}, "", digest(arrays))
    learner = PlainA2C(SETUP._replace(rule=given))
    assert learner.rule is given
    assert learner.rule_digest() == given.content
    check_learner(lambda: PlainA2C(SETUP._replace(rule=given)), (3, 3), 3, steps=7, rollouts=2)

    class Copying(PlainA2C):
        def weights(self) -> dict[str, Any]:
            return {"w": self.copy}

        def __init__(self, setup: Setup) -> None:
            self.copy = np.ones(3, np.float32)
            super().__init__(setup)

    copying = Copying(SETUP._replace(rule=given))
    copying.copy[0] = 2.0
    assert copying.rule_digest() != given.content
    other = RuleWeights("other", {"w": np.zeros(3, np.float32)}, "", digest({"w": np.zeros(3)}))
    with pytest.raises(SpecError, match=r"weights\(\) must return setup.rule.arrays"):
        Copying(SETUP._replace(rule=other))
