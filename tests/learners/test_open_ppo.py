"""The PPO loop around OPEN: a whole update against the original, and the learner's contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from learners.open_golden import HERE, golden, ours, ppo_case, ppo_param_error, theirs
from rulescope import learners
from rulescope.core.errors import DivergedError, SpecError
from rulescope.learners import open_ppo
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner import Learner, Rollout
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.open_config import Open, OpenAdam
from rulescope.learners.open_ppo import Column, OpenLearner, clipped_targets, flattened
from rulescope.rules.open.open_step import Leaf, clip_

LITTLE = NetworkSizes(hidden=(8, 6))
SMALL: dict[str, Open | OpenAdam] = {
    "small": Open(rule="open-random:11", agent=LITTLE, epochs=2, minibatches=3),
    "large": Open(rule="open-random-large:12", agent=LITTLE, epochs=2, minibatches=3),
    "adam": OpenAdam(agent=LITTLE, epochs=2, minibatches=3),
}
PARAM = 5e-7
"""Tolerance of the parameters after a PPO update."""
pytestmark = pytest.mark.usefixtures("deterministic")


def made(config: Open | OpenAdam, shape: tuple[int, ...] = (4, 4)) -> OpenLearner:
    learner = learners.make(config, shape, 3, 5, seed=1, iterations=6)
    assert isinstance(learner, OpenLearner)
    return learner


# --- parity with the original -------------------------------------------------------------------


@pytest.mark.parametrize("path", golden("ppo"), ids=lambda path: path.stem)
def test_a_whole_update_is_the_original_s(path: Path) -> None:
    case = ppo_case(path)
    samples = case.learner._samples(case.rollout)
    for found, name in ((samples.advantages, "advantage"), (samples.returns, "target")):
        np.testing.assert_allclose(found, case.data[name].ravel(), atol=3e-6, err_msg=name)
    assert ppo_param_error(path) <= PARAM
    check_first_step(path)
    check_state(path)


def check_first_step(path: Path) -> None:
    """Compare the first minibatch: losses, norms, clipped gradient, update."""
    data, learner, rollout = ppo_case(path)
    both = (("actor", learner.policy), ("critic", learner.value))
    batch = learner._samples(rollout).select(data["perm0"][:16])
    subtracted: list[torch.Tensor] = []
    optimiser = learner._optimiser
    assert isinstance(optimiser, open_ppo._OpenOptimiser)
    update = optimiser.rule.update

    def watched(*given: object) -> torch.Tensor:
        subtracted.append(update(*given).clone())  # type: ignore[arg-type]
        return subtracted[-1]

    optimiser.rule.update = watched  # type: ignore[assignment, method-assign]
    metrics = learner._update(batch, measure=True)
    np.testing.assert_allclose(learner.gradient, ours(data, "s0/grad", *both), atol=1e-7)
    np.testing.assert_allclose(subtracted[0], ours(data, "s0/update", *both), atol=1e-7)
    for name, original in {
        "loss_policy": "loss_actor",
        "loss_value": "loss_value",
        "entropy": "entropy",
        "gradient_norm_policy": "gnorm_actor",
        "gradient_norm_value": "gnorm_critic",
    }.items():
        assert metrics[name] == pytest.approx(float(data[f"s0/{original}"]), rel=3e-6, abs=3e-6)


def check_state(path: Path) -> None:
    """Compare momenta and carries after the update, as far as they are kept (20 rows)."""
    data, learner, rollout = ppo_case(path)
    learner.learn(rollout, measure=False)
    for carrier, original, tolerance in (("recurrent", "carry", 1e-4), ("moments", "mom", 1e-6)):
        content = learner.carriers[carrier].get()
        for who, net in (("actor", learner.policy), ("critic", learner.value)):
            start = 0
            for name, shape in net.layout.shapes.items():
                end = start + int(np.prod(shape))
                expected = data[f"final/{original}/{who}/{theirs(name)}"]
                found = content[who][start:end].reshape(*shape, -1)[: len(expected)]
                np.testing.assert_allclose(found, expected, atol=tolerance, err_msg=name)
                start = end


def sample_std(advantages: Column) -> Column:
    return (advantages - advantages.mean()) / (advantages.std(ddof=1) + 1e-8)  # type: ignore[no-any-return]


def torch_clip(gradient: torch.Tensor, max_norm: float) -> float:
    norm = float(gradient.norm())
    gradient.mul_(min(1.0, max_norm / (norm + 1e-6)))
    return norm


def no_clip(gradient: torch.Tensor, _max_norm: float) -> float:
    return float(gradient.norm())


def by_minibatch(step: int, updates: int, epochs: int, minibatches: int) -> tuple[float, float]:
    inner = step % (epochs * minibatches)
    return step // (epochs * minibatches) / (updates - 1), inner / (epochs * minibatches - 1)


def shallow(network: object, first: int = 0) -> list[Leaf]:
    return [leaf._replace(depth=0.0) for leaf in LEAVES(network, first)]  # type: ignore[arg-type]


LEAVES = open_ppo.leaves
MISTAKES: dict[str, tuple[str, Callable[..., object]]] = {
    "deviation over N - 1": ("normalised", sample_std),
    "gradient not clipped": ("clip_", no_clip),
    "proportion of minibatches, not epochs": ("proportions", by_minibatch),
    "layers not distinguished": ("leaves", shallow),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, wrong = MISTAKES[mistake]
    monkeypatch.setattr(open_ppo, name, wrong)
    assert ppo_param_error(HERE / "ppo_randS.npz") > PARAM


def test_clipping_with_a_little_more_in_the_denominator_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = HERE / "ppo_randS.npz"
    exact, other = ppo_case(path), ppo_case(path)
    for case in (exact, other):
        monkeypatch.setattr(open_ppo, "clip_", torch_clip if case is other else clip_)
        case.learner._update(case.learner._samples(case.rollout), measure=False)
    norms = [float(case.learner.gradient[exact.learner._split :].norm()) for case in (exact, other)]
    assert norms[0] == pytest.approx(0.5, abs=1e-7)
    assert norms[1] < norms[0]


# --- the learner --------------------------------------------------------------------------------


def factory(config: Open | OpenAdam, shape: tuple[int, ...]) -> Callable[[], Learner]:
    return lambda: made(config, shape)


@pytest.mark.parametrize(
    ("name", "shape"), [("small", (4, 4)), ("large", (2, 4, 4)), ("adam", (4, 4))], ids=str
)
def test_it_keeps_the_contract(name: str, shape: tuple[int, ...]) -> None:
    check_learner(factory(SMALL[name], shape), shape, 3, steps=5, rollouts=3)


def test_the_two_networks_start_alike_inside_and_apart_at_the_end() -> None:
    learner = made(Open(rule="open-random:11"), (4, 10, 10))
    policy, value = learner._policy, learner._value
    for name in ("torso.0.w", "torso.1.w"):
        assert torch.equal(policy[name], value[name])
        assert policy[name].T @ policy[name] == pytest.approx(2 * torch.eye(64), abs=1e-5)
    assert float(policy["head.w"].norm()) == pytest.approx(0.01 * 3**0.5, rel=1e-5)
    assert float(value["head.w"].norm()) == pytest.approx(1.0, rel=1e-5)
    assert not any(learner._policy[f"{name}.b"].any() for name in ("torso.0", "torso.1", "head"))


@pytest.mark.parametrize(("channels", "parameters"), [(4, (30_019, 29_889)), (7, (49_219, 49_089))])
def test_the_carry_is_one_column_for_each_parameter(
    channels: int, parameters: tuple[int, int]
) -> None:
    for rule, width in (("open-random:0", 8), ("open-random-large:0", 16)):
        learner = made(Open(rule=rule), (channels, 10, 10))
        carry = learner.carriers["recurrent"].get()
        assert {name: array.shape for name, array in carry.items()} == {
            "actor": (parameters[0], width),
            "critic": (parameters[1], width),
        }
        assert not any(array.any() for array in carry.values())
        assert learner.carriers["moments"].get()["actor"].shape == (parameters[0], 6)


def test_boards_are_flattened_with_their_channels_last() -> None:
    boards = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    rows = flattened(boards)
    assert rows.shape == (2, 60)
    assert rows[1, 7] == boards[1, 1, 0, 2]  # row 0, column 2, channel 1


def rollout(learner: Learner, scale: float = 1.0) -> Rollout:
    rng = np.random.default_rng(3)
    seen = rng.standard_normal((6, 2, 4, 4)).astype(np.float32)
    choices = [learner.act(one) for one in seen[:-1]]
    return Rollout(
        observations=seen,
        actions=np.stack([choice.actions for choice in choices]),
        rewards=(scale * rng.standard_normal((5, 2))).astype(np.float32),
        terminals=rng.random((5, 2)) < 0.2,
        began=np.zeros(2, np.bool_),
        behaviour={"log_chance": np.stack([c.behaviour["log_chance"] for c in choices])},
    )


def test_momenta_can_be_cleared_without_turning_back_time() -> None:
    learner = made(SMALL["small"])
    learner.learn(rollout(learner), measure=False)
    moments = learner.carriers["moments"]
    moments.set({name: np.zeros_like(array) for name, array in moments.get().items()})
    assert learner.carriers["schedule"].get() == {"steps": np.array(6)}


def test_the_horizon_is_the_lifetime_unless_another_is_given() -> None:
    config = SMALL["small"]
    one, other = (
        made(Open(rule=config.rule, agent=LITTLE, horizon=horizon))  # type: ignore[union-attr]
        for horizon in (None, 1220)
    )
    for learner in (one, other):
        learner.steps = 64  # before the third update
        learner.learn(rollout(learner), measure=False)
    assert not torch.equal(one.params, other.params)
    same = made(Open(rule=config.rule, agent=LITTLE, horizon=6))  # type: ignore[union-attr]
    same.steps = 64
    same.learn(rollout(same), measure=False)
    assert torch.equal(one.params, same.params)


def test_adam_is_torch_s_with_a_rate_that_falls_from_iteration_to_iteration() -> None:
    config = OpenAdam(agent=LITTLE, epochs=1, minibatches=1)
    learner = made(config)
    mirror = torch.nn.Parameter(learner.params.clone())
    adam = torch.optim.Adam([mirror], lr=1.0, betas=(0.9, 0.99), eps=1e-5)
    for turn in range(3):
        learner.learn(rollout(learner), measure=False)
        mirror.grad = learner.gradient.clone()
        adam.param_groups[0]["lr"] = 1e-2 * (1 - turn / 6)
        adam.step()
        torch.testing.assert_close(learner.params, mirror.detach(), rtol=0, atol=1e-7)


def test_a_gradient_that_is_not_finite_is_reported() -> None:
    learner = made(SMALL["adam"])
    with pytest.raises(DivergedError, match="gradient is no longer finite"):
        learner.learn(rollout(learner, scale=1e30), measure=False)


def test_clipped_targets_have_the_gradient_of_the_clipped_loss() -> None:
    rng = np.random.default_rng(0)
    values, before, returns = torch.tensor(rng.normal(size=(3, 500)))
    asked = values.clone().requires_grad_()
    near = before + (asked - before).clamp(-0.2, 0.2)
    torch.maximum((asked - returns) ** 2, (near - returns) ** 2).sum().backward()  # type: ignore[no-untyped-call]
    targets = clipped_targets(values.numpy(), before.numpy(), returns.numpy(), 0.2)
    assert asked.grad is not None
    np.testing.assert_allclose(2 * (values.numpy() - targets), asked.grad, atol=1e-12)
    assert (targets != returns.numpy()).any()


def test_another_kind_of_rule_is_refused() -> None:
    with pytest.raises(SpecError, match=r"learner\.rule: 'random:0' is not an OPEN rule"):
        made(Open(rule="random:0"))
    with pytest.raises(ValueError, match="needs the lifetime's iterations"):
        learners.make(OpenAdam(), (4, 4), 3, 5, seed=0)
