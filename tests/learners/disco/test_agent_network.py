"""The agent: sizes, fresh parameters, and what each head depends on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from msgspec.structs import replace
from torch import Tensor

from rulescope.core.flat_vector import Layout, Parameters
from rulescope.learners.disco.agent_network import PER_ACTION_HEADS, Agent
from rulescope.learners.disco_config import AGENTS, AgentSizes, Conventions

SMALL = AgentSizes(hidden=(32, 24), model=16, head=20)
CHANNEL = AgentSizes(torso="channel", hidden=(1, 24), channels=4, model=16, head=20)
PREDICTIONS, BINS = 40, 11


def make(
    conventions: Conventions | str = "historical",
    actions: int = 3,
    sizes: AgentSizes = SMALL,
    shape: tuple[int, ...] = (4, 4),
) -> Agent:
    chosen = AGENTS[conventions] if isinstance(conventions, str) else conventions
    return Agent(shape, actions, PREDICTIONS, BINS, sizes, chosen)


def full_size(bundle: str) -> Agent:
    return Agent((8, 8), 3, 600, 601, AgentSizes(), AGENTS[bundle])


def drawn(agent: Agent, seed: int = 0, scale: float = 0.4) -> dict[str, Tensor]:
    """Return float64 parameters of ordinary size, so that nothing is near zero."""
    rng = np.random.default_rng(seed)
    return agent.layout.views(torch.tensor(rng.standard_normal(agent.layout.size) * scale))


def observations(agent: Agent, count: int = 5) -> Tensor:
    rng = np.random.default_rng(1)
    return torch.tensor(rng.standard_normal((count, *agent.observation_shape)))


@pytest.mark.parametrize(
    ("bundle", "count"),
    [(name, 943_375 + 512 * (name != "reference")) for name in AGENTS],
)
def test_number_of_parameters(bundle: str, count: int) -> None:
    """A second bias of the action model is all that the bundles differ by."""
    assert full_size(bundle).layout.size == count


def test_shapes_of_the_reference_agent() -> None:
    assert full_size("reference").layout.shapes == {
        "torso.0.w": (64, 512),
        "torso.0.b": (512,),
        "torso.1.w": (512, 512),
        "torso.1.b": (512,),
        "policy.w": (512, 3),
        "policy.b": (3,),
        "y.w": (512, 600),
        "y.b": (600,),
        "root.w": (512, 128),
        "root.b": (128,),
        "model.action.w": (3, 512),
        "model.hidden.w": (128, 512),
        "model.b0": (512,),
        "z.0.w": (128, 128),
        "z.0.b": (128,),
        "z.1.w": (128, 600),
        "z.1.b": (600,),
        "aux.0.w": (128, 128),
        "aux.0.b": (128,),
        "aux.1.w": (128, 3),
        "aux.1.b": (3,),
        "q.0.w": (128, 128),
        "q.0.b": (128,),
        "q.1.w": (128, 601),
        "q.1.b": (601,),
    }


def test_channel_torso_of_a_ten_by_ten_board() -> None:
    sizes = AgentSizes(torso="channel")
    shapes = Agent((4, 10, 10), 6, 600, 601, sizes, Conventions()).layout.shapes
    assert shapes["torso.conv.w"] == (16, 4, 3, 3)
    assert shapes["torso.1.w"] == (16 * 8 * 8, 512)
    assert "torso.0.w" not in shapes


SMALL_HEADS = {
    "reference": {"policy", "y"},
    "published": {"policy", "y", "z.1", "aux.1", "q.1"},
    "historical": {"policy", "y", "z.1", "aux.1", "q.1"},
    "legacy": {"policy", "y", "z.1", "aux.1", "q.1"},
}


def fan_in(agent: Agent, layer: str, torch_like: bool) -> int:
    if layer.startswith("model"):
        return agent.sizes.model + (0 if torch_like else agent.actions)
    return agent.layout.shapes[f"{layer}.w"][0]


@pytest.mark.parametrize("bundle", AGENTS)
def test_initial_parameters_are_drawn_as_the_bundle_defines(bundle: str) -> None:
    agent = full_size(bundle)
    torch_like = bundle != "reference"
    for name, array in agent.layout.views(agent.initial(seed=3)).items():
        layer, _, kind = name.rpartition(".")
        values = array.double().numpy()
        bias, small = kind.startswith("b"), layer in SMALL_HEADS[bundle]
        if bias and (small or not torch_like):
            assert not values.any(), name
        elif small:
            assert values.std() == pytest.approx(0.01 * (1.0 if torch_like else 0.8796), rel=0.08)
            assert (np.abs(values).max() > 0.021) == torch_like, name
        elif torch_like:
            bound = 1.0 / math.sqrt(fan_in(agent, layer, torch_like))
            assert 0.95 * bound < np.abs(values).max() <= bound * (1 + 1e-6), name
            assert values.std() == pytest.approx(bound / math.sqrt(3.0), rel=0.12), name
        else:
            std = 1.0 / math.sqrt(fan_in(agent, layer, torch_like))
            assert values.std() == pytest.approx(0.8796 * std, rel=0.08), name
            assert np.abs(values).max() <= 2.0 * std * (1 + 1e-6), name
        assert bias or abs(values.mean()) < 0.2 * values.std(), name


def test_convolution_scales_by_its_receptive_field() -> None:
    agent = Agent((4, 10, 10), 6, 600, 601, AgentSizes(torso="channel"), Conventions())
    kernel = agent.layout.views(agent.initial(0))["torso.conv.w"]
    assert 0.95 / 6.0 < kernel.abs().max().item() <= 1.0 / 6.0 * (1 + 1e-6)
    assert agent.layout.views(agent.initial(0))["torso.conv.b"].any()


def test_fresh_parameters_depend_on_the_seed_alone() -> None:
    agent = make()
    assert torch.equal(agent.initial(5), make().initial(5))
    assert not torch.equal(agent.initial(5), agent.initial(6))
    assert agent.initial(5).dtype == torch.float32


def test_arrays_of_one_size_are_drawn_independently() -> None:
    views = make().layout.views(make().initial(0))
    assert not torch.equal(views["z.0.w"], views["q.0.w"])
    assert not torch.equal(views["model.b0"], views["model.b1"])


def test_bundles_share_the_draws_they_have_in_common() -> None:
    """A stream belongs to a name, so a change elsewhere does not shift it."""
    chained, independent = make(), make(Conventions(action_model="independent"))
    assert torch.equal(chained.initial(1), independent.initial(1))


@pytest.mark.parametrize("bundle", AGENTS)
@pytest.mark.parametrize(("sizes", "shape"), [(SMALL, (4, 4)), (CHANNEL, (2, 5, 6))])
def test_outputs_have_the_promised_shapes(
    bundle: str, sizes: AgentSizes, shape: tuple[int, ...]
) -> None:
    agent = make(bundle, 4, sizes, shape)
    found = agent.outputs(drawn(agent), observations(agent, 7))
    assert [tuple(part.shape) for part in found] == [
        (7, 4),
        (7, PREDICTIONS),
        (7, 4, PREDICTIONS),
        (7, 4, 4),
        (7, 4, BINS),
    ]


@pytest.mark.parametrize("bundle", AGENTS)
@pytest.mark.parametrize(("sizes", "shape"), [(SMALL, (4, 4)), (CHANNEL, (2, 5, 6))])
def test_policy_alone_equals_the_policy_among_all_outputs(
    bundle: str, sizes: AgentSizes, shape: tuple[int, ...]
) -> None:
    agent = make(bundle, 3, sizes, shape)
    params, rows = drawn(agent), observations(agent)
    assert torch.equal(agent.policy(params, rows), agent.outputs(params, rows).logits)


def test_rows_are_independent_of_each_other() -> None:
    agent = make()
    params, rows = drawn(agent), observations(agent)
    together = agent.outputs(params, rows)
    for k in range(len(rows)):
        alone = agent.outputs(params, rows[k : k + 1])
        for one, all_of_them in zip(alone, together, strict=True):
            torch.testing.assert_close(one[0], all_of_them[k], rtol=1e-12, atol=1e-12)


def changed(params: Parameters, name: str, row: int) -> dict[str, Tensor]:
    """Return the parameters with one row of one array moved."""
    copies = {key: array.clone() for key, array in params.items()}
    copies[name][row] += 0.5
    return copies


def affected(agent: Agent, action: int) -> dict[str, list[bool]]:
    """Return which actions' outputs feel the input weights of ``action``, head by head."""
    params, rows = drawn(agent), observations(agent)
    before = agent.outputs(params, rows)
    after = agent.outputs(changed(params, "model.action.w", action), rows)
    return {
        head: [
            bool((getattr(before, head)[:, a] != getattr(after, head)[:, a]).any())
            for a in range(agent.actions)
        ]
        for head in PER_ACTION_HEADS
    }


@pytest.mark.parametrize("action", [0, 1, 2, 3])
def test_independent_actions_start_from_the_root(action: int) -> None:
    felt = affected(make(Conventions(action_model="independent"), actions=4), action)
    only = [a == action for a in range(4)]
    assert felt == dict.fromkeys(PER_ACTION_HEADS, only)


@pytest.mark.parametrize("action", [0, 1, 2, 3])
def test_chained_actions_start_from_the_one_before(action: int) -> None:
    felt = affected(make(Conventions(action_model="chained"), actions=4), action)
    this_and_later = [a >= action for a in range(4)]
    assert felt == dict.fromkeys(PER_ACTION_HEADS, this_and_later)


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


@pytest.mark.parametrize("bundle", AGENTS)
def test_network_is_what_is_written_down(bundle: str) -> None:
    """A literal evaluation in NumPy, one observation and one action at a time."""
    agent = make(bundle)
    conventions = agent.conventions
    views = drawn(agent)
    p = {name: view.numpy() for name, view in views.items()}
    rows = observations(agent)
    found = agent.outputs(views, rows)
    for r, board in enumerate(rows.numpy()):
        hidden = np.maximum(board.reshape(-1) @ p["torso.0.w"] + p["torso.0.b"], 0.0)
        torso = hidden @ p["torso.1.w"] + p["torso.1.b"]
        torso = np.maximum(torso, 0.0) if conventions.final_relu else torso
        np.testing.assert_allclose(found.logits[r], torso @ p["policy.w"] + p["policy.b"])
        np.testing.assert_allclose(found.y[r], torso @ p["y.w"] + p["y.b"])
        root = torso @ p["root.w"] + p["root.b"]
        h, c = np.tanh(root), root
        for action in range(agent.actions):
            if conventions.action_model == "independent":
                h, c = np.tanh(root), root
            biases = sum(p[f"model.b{k}"] for k in range(conventions.model_biases))
            i, g, f, o = np.split(p["model.action.w"][action] + h @ p["model.hidden.w"] + biases, 4)
            c = sigmoid(f + conventions.forget_bias) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            for head in PER_ACTION_HEADS:
                inner = np.maximum(h @ p[f"{head}.0.w"] + p[f"{head}.0.b"], 0.0)
                expected = inner @ p[f"{head}.1.w"] + p[f"{head}.1.b"]
                np.testing.assert_allclose(getattr(found, head)[r, action], expected, rtol=1e-9)


def test_a_forget_bias_is_a_shift_of_the_stored_one() -> None:
    """One added at run time is one added to the forget block of the bias."""
    without = make(replace(AGENTS["reference"], forget_bias=0))
    shifted = {key: view.clone() for key, view in drawn(without).items()}
    shifted["model.b0"][2 * 16 : 3 * 16] += 1.0
    rows = observations(without)
    expected = make("reference").outputs(drawn(without), rows)
    for one, two in zip(without.outputs(shifted, rows), expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


class TestLayout:
    layout = Layout({"a": (2, 3), "b": (), "c": (4,)})

    def test_size(self) -> None:
        assert self.layout.size == 11

    def test_views_share_memory_and_cover_the_vector_in_order(self) -> None:
        flat = torch.arange(11.0)
        views = self.layout.views(flat)
        assert {name: tuple(view.shape) for name, view in views.items()} == self.layout.shapes
        assert views["a"].tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
        views["b"].fill_(70.0)
        views["c"][1] = 80.0
        assert flat[6:9].tolist() == [70.0, 7.0, 80.0]

    def test_flatten_undoes_views(self) -> None:
        flat = torch.arange(11.0)
        assert torch.equal(self.layout.flatten(self.layout.views(flat)), flat)

    def test_flatten_uses_names_not_order(self) -> None:
        views = self.layout.views(torch.arange(11.0))
        turned = dict(reversed(views.items()))
        assert torch.equal(self.layout.flatten(turned), torch.arange(11.0))

    def test_views_keep_the_graph(self) -> None:
        flat = torch.arange(11.0, requires_grad=True)
        (gradient,) = torch.autograd.grad(self.layout.views(flat)["c"].sum(), flat)
        assert gradient.tolist() == [0.0] * 7 + [1.0] * 4
