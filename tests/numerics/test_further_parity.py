"""DPO, LPO and LPG agree with arrays of their original programs, and a wrong form does not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rulescope.core.arrays import unprefix
from rulescope.learners.further_config import Dpo
from rulescope.numerics import further_parity as parity
from rulescope.numerics.further_table import further_table, rule_of_comparison
from rulescope.numerics.golden import GoldenError
from rulescope.numerics.tolerances import Comparison
from rulescope.rules import drift, rule_weights
from rulescope.rules.lpg_network import lpg_forward

Vector = NDArray[np.float64]
FOUND = list(parity.compare_further())


def test_every_array_agrees_with_the_original() -> None:
    assert [item for item in FOUND if not item.passed] == []


def test_float64_agrees_to_the_last_digits() -> None:
    exact = [item for item in FOUND if item.precision == "float64"]
    assert {item.kind for item in exact} == {parity.VALUE, parity.GRADIENT, parity.UPDATE}
    assert max(item.relative for item in exact) < 1e-12


def test_values_gradients_and_updates_of_every_rule_are_compared() -> None:
    kinds = {"DPO", "LPO", "LPG", "TA-LPG"}
    counts = Counter((rule_of_comparison(item), item.kind) for item in FOUND)
    assert set(counts) == {
        (rule, kind) for rule in kinds for kind in (parity.VALUE, parity.GRADIENT, parity.UPDATE)
    }
    assert len(further_table(FOUND).rows) == len({(*_key(item),) for item in FOUND})


def _key(item: Comparison) -> tuple[str, str, str]:
    return rule_of_comparison(item), item.kind, item.precision


@pytest.mark.parametrize("constant", ["alpha", "beta"])
def test_another_constant_of_dpo_is_detected(constant: str) -> None:
    golden = parity.FurtherGolden("dpo")
    now, before, advantages = golden.policy(torch.float64)
    other = {constant: getattr(Dpo(), constant) * 1.001}
    term = drift.dpo_drift(now - before, advantages, **other)
    found = drift.drift_loss(now - before, advantages, term).detach()
    assert abs(float(found) - float(golden.outputs("float64")["loss"])) > 1e-7


def test_the_two_forms_of_lpo_differ_and_the_defect_is_not_followed() -> None:
    golden = parity.FurtherGolden("lpo")
    theirs = golden.outputs("float64")
    losses = [theirs[f"{case}/loss"] for case in ("first/ppo", "second/ppo", "second/defect")]
    assert len({float(each) for each in losses}) == 3


def test_dpo_has_no_drift_for_moves_against_the_advantage() -> None:
    log_ratio = torch.linspace(-1.0, 1.0, 41, dtype=torch.float64)
    for sign in (-1.0, 1.0):
        advantages = torch.full_like(log_ratio, sign)
        drifts = drift.dpo_drift(log_ratio, advantages)
        against = log_ratio * sign <= 1e-9
        assert drifts[against].max() < 1e-12
        assert (drifts[~against] > 0.0).all()


def test_the_drift_of_ppo_gives_its_clipped_surrogate() -> None:
    rng = np.random.default_rng(0)
    log_ratio, advantages = (torch.from_numpy(rng.normal(0, 0.5, 200)) for _ in range(2))
    ratio = log_ratio.exp()
    clipped = torch.minimum(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    left = ratio * advantages - drift.clip_drift(log_ratio, advantages)
    torch.testing.assert_close(left, clipped, rtol=0.0, atol=1e-12)


def test_what_lpg_says_of_a_step_does_not_depend_on_another_episode() -> None:
    rule = rule_weights.load("lpg-random-4-4-8:3")
    weights = {name: torch.tensor(each).double() for name, each in rule.arrays.items()}
    rng = np.random.default_rng(1)
    rewards, chosen = (torch.from_numpy(rng.random((6, 1))) for _ in range(2))
    y = torch.from_numpy(rng.random((7, 1, 4))).softmax(-1)
    ended = torch.zeros(6, 1, dtype=torch.float64)
    ended[2] = 1.0
    later = rewards.clone()
    later[3:] += 1.0
    other_y = y.clone()
    other_y[3:] = other_y[3:].flip(-1)
    first = lpg_forward(weights, rewards, ended, chosen, y)
    second = lpg_forward(weights, later, ended, chosen, other_y)
    assert torch.equal(first.policy[:3], second.policy[:3])
    assert torch.equal(first.y[:3], second.y[:3])
    assert not torch.equal(first.policy[3:], second.policy[3:])
    unbroken = lpg_forward(weights, rewards, 0.0 * ended, chosen, y)
    assert not torch.equal(first.policy[:3], unbroken.policy[:3])


def test_lpg_is_a_plain_loop_over_the_steps_from_the_last() -> None:
    rule = rule_weights.load("lpg-random-3-4-5:1")
    rng = np.random.default_rng(2)
    own = {
        name.removeprefix("lpg/"): each + 0.1 * rng.normal(size=each.shape)
        for name, each in rule.arrays.items()
    }
    rewards, chosen, y = rng.normal(size=4), rng.random(4), rng.dirichlet(np.ones(3), size=5)
    ended = np.array([0.0, 1.0, 0.0, 0.0])

    def embed(one: Vector) -> float:
        hidden = np.maximum(one @ own["embedding.0/w"] + own["embedding.0/b"], 0.0)
        return float((hidden @ own["embedding.1/w"] + own["embedding.1/b"])[0])

    def sigmoid(x: Vector) -> Vector:
        return np.asarray(1.0 / (1.0 + np.exp(-x)))

    state, policies = np.zeros(5), {}
    for t in (3, 2, 1, 0):
        state = state * (1.0 - ended[t])
        following = 0.0 if ended[t] else embed(y[t + 1])
        inputs = np.array([rewards[t], ended[t], chosen[t], embed(y[t]), following])
        r, z, n = np.split(inputs @ own["gru/input/w"] + own["gru/input/b"], 3)
        hr, hz, hn = np.split(state @ own["gru/state/w"], 3)
        r, z = sigmoid(r + hr), sigmoid(z + hz)
        state = (1.0 - z) * np.tanh(n + r * (hn + own["gru/state/b"])) + z * state
        policies[t] = float((np.maximum(state, 0.0) @ own["policy/w"] + own["policy/b"])[0])
    given = [torch.from_numpy(each).unsqueeze(1) for each in (rewards, ended, chosen, y)]
    weights = {f"lpg/{name}": torch.from_numpy(each) for name, each in own.items()}
    found = lpg_forward(weights, given[0], given[1], given[2], given[3])
    assert found.policy.flatten().tolist() == pytest.approx([policies[t] for t in range(4)])


def test_the_weights_of_groove_become_a_rule_of_ours() -> None:
    golden = parity.FurtherGolden("lpg")
    for kind, name in (("lpg", "lpg-random-5-6-7:0"), ("ta", "ta-lpg-random-5-6-7:0")):
        found = parity.from_flax(unprefix(kind, golden.inputs))
        drawn = rule_weights.load(name).arrays
        assert {key: each.shape for key, each in found.items()} == {
            key: each.shape for key, each in drawn.items()
        }


def test_a_folder_without_these_arrays_is_named(tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match=str(tmp_path)):
        list(parity.compare_further(tmp_path))
