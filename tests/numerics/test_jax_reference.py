"""Calling the original program: errors where it is absent, and its inputs and outputs.

The stand-in below has the interface of the original, but computes with our own update. So the
comparisons agree if and only if names, layouts, precisions and slots are converted correctly in
both directions.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from rulescope.core import seeds
from rulescope.core.errors import RulescopeError
from rulescope.learners.adam import Moments
from rulescope.learners.disco.batch import Batch
from rulescope.learners.disco.rule_network import RuleState
from rulescope.learners.disco.update import LearnerState
from rulescope.learners.disco.value_estimates import Averages
from rulescope.numerics import jax_reference
from rulescope.numerics.golden import (
    RANDOM_RULE,
    flatten_stored,
    load_rule_weights,
    to_original_names,
)
from rulescope.numerics.output_parity import ForwardCase, value_outputs
from rulescope.numerics.tolerances import summarise
from rulescope.numerics.update_parity import small_update
from rulescope.rules import weight_files
from rulescope.rules.rule_weights import load

CHECKS = {"forward", "inner outputs", "gradients", "updated parameters"}


class Record(SimpleNamespace):
    def replace(self, **parts: Any) -> Record:
        return Record(**(vars(self) | parts))


def tree_map(change: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, Record):
        return Record(**tree_map(change, vars(tree)))
    if isinstance(tree, dict):
        return {name: tree_map(change, part) for name, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(tree_map(change, part) for part in tree)
    return change(tree)


def leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    tree_map(found.append, tree)
    return found


def unflatten(form: Any, values: list[Any]) -> Any:
    rest = iter(values)
    return tree_map(lambda _: next(rest), form)


def array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().numpy()


def moments(state: dict[str, Any]) -> list[NDArray[Any]]:
    averages = (state[f"{name}_ema_state"] for name in ("adv", "td"))
    return [
        np.array([getattr(found, part) for part in jax_reference.AVERAGE]) for found in averages
    ]


def carry(hidden: Tensor, cell: Tensor, advantage: Tensor, td: Tensor) -> dict[str, Any]:
    found: dict[str, Any] = {"rnn_state": {"lstm": (array(hidden), array(cell))}}
    for name, average in (("adv", advantage), ("td", td)):
        found[f"{name}_ema_state"] = Record(
            **dict(zip(jax_reference.AVERAGE, array(average), strict=True))
        )
    return found


class StandIn:
    """The original's modules, as far as they are used; ``spoil`` changes what they return."""

    def __init__(self) -> None:
        self.config = SimpleNamespace(jax_enable_x64=False)
        self.config.update = lambda name, value: setattr(self.config, name, value)
        self.jax = SimpleNamespace(
            config=self.config,
            Array=np.ndarray,
            jit=lambda function, **_: function,
            device_get=lambda tree: tree,
            devices=lambda _: ["a processor"],
            default_device=lambda _: nullcontext(),
            random=SimpleNamespace(PRNGKey=lambda _: None),
            tree=SimpleNamespace(
                map=tree_map, leaves=leaves, structure=lambda tree: tree, unflatten=unflatten
            ),
        )
        self.chex = SimpleNamespace(Array="untouched")
        shapes = SimpleNamespace(Array=lambda *_: None, BoundedArray=lambda *_: None)
        types = SimpleNamespace(EmaState=Record, UpdateRuleInputs=Record, ActorRollout=Record)
        library = SimpleNamespace(get_settings_disco=self._settings, Agent=lambda **_: self)
        found = (self.jax, self.chex, shapes, types, library)
        self.modules = dict(zip(jax_reference.MODULES, found, strict=True))
        self.update_rule = self
        self.spoil: Callable[[dict[str, Any]], object] = lambda _: None

    def _settings(self) -> Record:
        return Record(net_settings=Record(net_args=Record()), hyper_params=Record(to_dict=dict))

    def initial_actor_state(self, _key: None) -> dict[str, Any]:
        return {}

    def initial_learner_state(self, _key: None) -> Record:
        nothing, fresh = torch.zeros(128), torch.tensor([0.0, 0.0, 1.0])
        layout = small_update(load_rule_weights(RANDOM_RULE, torch.float32)).agent.layout
        zeros = jax_reference.nest(to_original_names(layout.views(torch.zeros(layout.size))))
        adam = Record(mu=zeros, nu=zeros, count=np.int32(0))
        state = carry(nothing, nothing, fresh, fresh) | {"target_params": zeros}
        return Record(params=zeros, opt_state=(adam, ()), meta_state=state)

    def _check(self, rule: Any, dtype: np.dtype[Any]) -> None:
        """Assert that the rule arrives complete, in the configured precision of JAX."""
        stored, arrived = load(RANDOM_RULE).arrays, jax_reference.flatten(rule)
        assert stored.keys() == arrived.keys()
        assert all(np.array_equal(stored[name], arrived[name]) for name in stored)
        assert {leaf.dtype for leaf in leaves(rule)} == {dtype}
        assert self.config.jax_enable_x64 == (dtype == np.float64)
        assert self.chex.Array is np.ndarray

    def unroll_meta_net(self, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        rollout, state = given["rollout"], given["meta_state"]
        self._check(given["meta_params"], rollout.rewards.dtype)
        target, _ = given["unroll_policy_fn"](state["target_params"], {}, rollout.observations, 0)
        inputs = {name: getattr(rollout, name) for name in ("actions", "rewards", "is_terminal")}
        inputs["behaviour/logits"] = rollout.behaviour_agent_out["logits"]
        inputs["nonzero/h"], inputs["nonzero/c"] = leaves(state["rnn_state"])
        inputs["nonzero/adv_ema"], inputs["nonzero/td_ema"] = moments(state)
        inputs |= {f"agent/{head}": logits for head, logits in rollout.agent_out.items()}
        inputs |= {f"target/{head}": logits for head, logits in target.items()}
        case = ForwardCase(inputs, "nonzero", torch.tensor(rollout.rewards).dtype)
        found = case.values() | case.rule_outputs(RANDOM_RULE)
        names = ("new_h", "new_c", "new_adv_ema", "new_td_ema")
        output = {name.removeprefix("value_out/"): array(found[name]) for name in found}
        self.spoil(output)
        return output, state | carry(*(found[name] for name in names))

    def learner_step(
        self, _key: None, rollout: Record, state: Record, _memory: Any, rule: Any, training: bool
    ) -> tuple[Record, dict[str, Any], dict[str, Any]]:
        assert not training
        assert np.array_equal(rollout.logits, rollout.agent_outs["logits"])
        dtype = torch.tensor(rollout.rewards).dtype
        self._check(rule, rollout.rewards.dtype)
        update = small_update(load_rule_weights(RANDOM_RULE, dtype))
        layout, adam, carried = update.agent.layout, state.opt_state[0], state.meta_state

        def vector(tree: Any) -> Tensor:
            return flatten_stored(layout, jax_reference.flatten(tree), jax_reference.ACTIONS, dtype)

        def tree(vector: Tensor) -> Any:
            return jax_reference.nest(to_original_names(layout.views(vector)))

        ended = torch.tensor(rollout.discounts == 0, dtype=dtype)
        slots, lanes = ended.shape
        batch = Batch(
            rows=torch.tensor(rollout.observations).flatten(0, 1),
            index=torch.arange(slots * lanes).view(slots, lanes),
            actions=torch.tensor(rollout.actions[:-1]).long(),
            rewards=torch.tensor(rollout.rewards[1:]),
            terminals=ended[1:],
            behaviour=torch.tensor(rollout.logits[:-1]),
            began=ended[0],
        )
        before = LearnerState(
            params=vector(state.params),
            target=vector(carried["target_params"]),
            recurrent=RuleState(*(torch.tensor(part) for part in leaves(carried["rnn_state"]))),
            averages=Averages(*(torch.tensor(found) for found in moments(carried))),
            moments=Moments(vector(adam.mu), vector(adam.nu), int(adam.count)),
        )
        after, step = update.definition(before, batch)
        assert step.loss is not None
        assert step.targets.y_logits is not None
        assert step.targets.z_logits is not None
        values = value_outputs(step.estimate, after.averages, batch.index)
        meta_out = {name: array(value) for name, value in values.items()}
        meta_out |= {
            "pi": array(step.targets.policy),
            "y": array(step.targets.y_logits),
            "z": array(step.targets.z_logits),
            "meta_input_emb": array(step.trace.emission),
        }
        log = {
            "total_loss": array(step.loss),
            "global_gradient_norm": array(step.gradient.norm()),
            "global_update_norm": array((after.params - before.params).norm()),
            "meta_out": meta_out,
        }
        new = {"mu": tree(after.moments.first), "nu": tree(after.moments.second)}
        new["count"] = np.int32(after.moments.updates)
        self.spoil(new)
        meta_state = carry(*after.recurrent, *after.averages) | {
            "target_params": tree(after.target)
        }
        opt_state = (Record(**new), ())
        return (
            Record(params=tree(after.params), opt_state=opt_state, meta_state=meta_state),
            {},
            log,
        )


@pytest.fixture
def original(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Install the stand-in, whose configuration must be restored; only the random rule is used."""
    stand_in, real = StandIn(), importlib.import_module

    def import_module(name: str, package: str | None = None) -> Any:
        return stand_in.modules.get(name) or real(name, package)

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setattr(weight_files, "find", lambda _: None)
    yield stand_in
    assert not stand_in.config.jax_enable_x64
    assert stand_in.chex.Array == "untouched"


def failures(kind: str, within: str = "") -> set[str]:
    found = [item for item in jax_reference.compare_with_original() if item.kind == f"live {kind}"]
    wrong = {item.output for item in found if not item.passed and within in item.output}
    return {output.rpartition(": ")[2] for output in wrong}


def test_a_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(RulescopeError) as caught:
        list(jax_reference.compare_with_original())
    assert "No module named 'jax'" in str(caught.value)
    assert "pip install git+https://github.com/google-deepmind/disco_rl jax" in str(caught.value)


@pytest.mark.usefixtures("original")
def test_conversions_in_both_directions_are_correct() -> None:
    lines = summarise(jax_reference.compare_with_original(seed=3))
    assert {line.kind for line in lines} == {f"live {name}" for name in CHECKS}
    assert len(lines) == 2 * len(CHECKS)
    assert all(line.passed for line in lines), lines


def test_a_wrong_target_is_detected(original: StandIn) -> None:
    original.spoil = lambda found: found.update(pi=found["pi"] + 1e-2) if "pi" in found else None
    assert failures("forward") == {"pi"}


def test_a_wrong_gradient_is_detected(original: StandIn) -> None:
    def spoil(new: dict[str, Any]) -> None:
        if "mu" in new:
            new["mu"]["mlp/linear"]["w"] = new["mu"]["mlp/linear"]["w"] * 1.5

    original.spoil = spoil
    # The updates that follow start from the wrong moments.
    assert failures("gradients", within="step0") == {"grad/mlp/linear/w"}


@pytest.mark.usefixtures("original")
def test_an_unsupported_version_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandIn, "learner_step", lambda *_: 1 / 0)
    with pytest.raises(RulescopeError, match=r"ZeroDivisionError.*commit 9059a29"):
        list(jax_reference.compare_with_original())


def test_rule_names_are_split_at_the_last_slash() -> None:
    stored = load(RANDOM_RULE).arrays
    tree = jax_reference.nest(stored)
    assert len(stored) == 2 * len(tree) == 42
    assert tree["lstm/~/meta_lstm/~unroll/lstm/linear"]["w"].shape == (144, 512)
    back = jax_reference.flatten(tree)
    assert back.keys() == stored.keys()
    assert all(back[name] is stored[name] for name in stored)


def test_gradients_are_recovered_from_the_moments() -> None:
    old, gradient = np.array([0.5, -1.0]), np.array([2.0, 3.0])
    new = 0.9 * old + 0.1 * gradient
    found = jax_reference.recover_gradients({"layer": {"w": old}}, {"layer": {"w": new}})
    np.testing.assert_allclose(found["layer/w"], gradient, rtol=1e-12)


def test_inputs_depend_on_the_seed_alone() -> None:
    for draw in (jax_reference.draw_rule_inputs, jax_reference.draw_update_inputs):
        first, again, other = (draw(seeds.stream(seed, "live")) for seed in (0, 0, 1))
        assert all(np.array_equal(first[name], again[name]) for name in first)
        assert any(not np.array_equal(first[name], other[name]) for name in first)


def test_inputs_have_terminals_and_repeated_boards() -> None:
    rule = jax_reference.draw_rule_inputs(seeds.stream(0, "live.rule"))
    assert rule["agent/z"].shape == (8, 3, 5, 600)
    assert rule["rewards"].shape == rule["is_terminal"].shape == (7, 3)
    assert 0 < rule["is_terminal"].sum() < rule["is_terminal"].size
    updates = jax_reference.draw_update_inputs(seeds.stream(0, "live.updates"))
    boards = updates["rollout0/observations"].reshape(36, -1)
    assert len(np.unique(boards, axis=0)) < 10
    assert set(np.unique(updates["rollout0/discounts"])) == {0.0, 1.0}
    name = "mlp/action_cond/linear/w"
    assert updates[f"params0/{name}"].shape == updates[f"target0/{name}"].shape == (19, 64)
