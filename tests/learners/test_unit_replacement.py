"""Continual Backprop: equal to the authors' program, and an option of A2C, PPO and DQN."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from learners.baseline_cases import LITTLE, LITTLE_CHANNEL, SMALL, factory, live
from rulescope import learners
from rulescope.core import seeds
from rulescope.core.errors import SpecError
from rulescope.envs.catch import CatchEnv
from rulescope.envs.world_config import Catch
from rulescope.learners.baseline_config import A2C, DQN, PPO, VARIANTS
from rulescope.learners.dqn import DQNLearner
from rulescope.learners.learner_base import UnitReplacement
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.torso import Evaluation, HiddenLayer, Network
from rulescope.learners.unit_replacement import REPLACEMENT_METRICS, Replacement
from rulescope.run_spec import Pin, RunSpec, canonical, checked, decode

GOLDEN = Path(__file__).parents[1] / "golden" / "continual_backprop"
OFTEN = UnitReplacement(rate=0.2, maturity=2)
Kind = A2C | PPO | DQN
REPLACING: dict[str, Kind] = {
    name: msgspec.structs.replace(cast("Kind", SMALL[name]), replacement=OFTEN)
    for name in ("a2c", "ppo", "dqn")
}
pytestmark = pytest.mark.usefixtures("deterministic")


class Recorded:
    """The random numbers that the authors' program drew, in its order."""

    def __init__(self, draws: NDArray[Any], fresh: NDArray[Any]) -> None:
        self.draws, self.fresh = list(draws), list(fresh)

    def random(self) -> float:
        return float(self.draws.pop(0))

    def uniform(self, low: float, high: float, size: tuple[int, int]) -> NDArray[np.float64]:
        taken = [self.fresh.pop(0) for _ in range(size[0] * size[1])]
        assert all(low <= weight <= high for weight in taken)
        return np.array(taken).reshape(size)


@pytest.mark.parametrize("name", ["several", "seldom", "no-memory"])
def test_ages_utilities_units_and_weights_are_those_of_the_authors(name: str) -> None:
    golden = dict(np.load(GOLDEN / f"{name}.npz"))
    rate, maturity, decay = golden["settings"].tolist()
    config = UnitReplacement(rate=rate, maturity=int(maturity), decay=decay)
    weights = {k: torch.tensor(golden[f"before.{k}"][0]) for k in _names()}
    layers = [
        HiddenLayer(weights[f"{k}.w"], weights[f"{k}.b"], weights[f"{k + 1}.w"].unsqueeze(0))
        for k in range(2)
    ]
    replacement = Replacement(config, layers)
    random = Recorded(golden["draws"], golden["fresh"])
    replaced = 0
    for t in range(len(golden["before.0.w"])):
        for key, tensor in weights.items():
            tensor.copy_(torch.tensor(golden[f"before.{key}"][t]))
        shown = [torch.tensor(golden[f"activations.{k}"][t]).unsqueeze(1) for k in range(2)]
        ages = [age.clone() for age in replacement.ages]
        replacement.step_(shown, cast("Generator", random))
        for key, tensor in weights.items():
            np.testing.assert_array_equal(tensor.numpy(), golden[f"after.{key}"][t])
        state = replacement.carrier.get()
        for k in range(2):
            new = (ages[k] + 1 != replacement.ages[k]).numpy()
            np.testing.assert_array_equal(new, golden[f"chosen.{k}"][t])
            np.testing.assert_array_equal(state[f"age.{k}"], golden[f"age.{k}"][t])
            np.testing.assert_allclose(state[f"utility.{k}"], golden[f"utility.{k}"][t], rtol=1e-6)
            replaced += int(new.sum())
    assert replaced == int(state["replaced"]) > 5
    assert random.draws == random.fresh == []


def _names() -> list[str]:
    return [f"{k}.{part}" for k in range(3) for part in "wb"]


@pytest.mark.parametrize("torso", [LITTLE, LITTLE_CHANNEL])
def test_utility_is_that_of_a_plain_loop_also_for_channels(torso: Any) -> None:
    shape = (5, 6) if torso is LITTLE else (2, 5, 6)
    network = Network(shape, 4, torso)
    views = network.layout.views(network.initial(3))
    evaluation = Evaluation(network, views, torch.randn(7, *shape))
    replacement = Replacement(UnitReplacement(), network.hidden_layers(views))
    replacement.step_(evaluation.hidden(5), seeds.stream(0, "replacement"))
    first = evaluation._first.view(7, -1, len(views["torso.0.b"])).numpy()
    onward = views["torso.1.w"].numpy()
    places, units = first.shape[1:]
    for unit in range(units):
        parts = [
            np.abs(onward[place * units + unit]).mean() * np.abs(first[:5, place, unit]).mean()
            for place in range(places)
        ]
        expected = 0.01 * float(np.mean(parts))
        assert float(replacement.utilities[0][unit]) == pytest.approx(expected, rel=1e-4)
    second, heads = evaluation._second.numpy(), views["head.w"].numpy()
    for unit in range(len(heads)):
        expected = 0.01 * np.abs(heads[unit]).mean() * np.abs(second[:5, unit]).mean()
        assert float(replacement.utilities[1][unit]) == pytest.approx(float(expected), rel=1e-4)


def test_a_new_unit_has_no_effect_and_no_bias_and_weights_within_the_bound() -> None:
    network = Network((4, 4), 3, LITTLE)
    flat = network.initial(0)
    views, before = network.layout.views(flat), flat.clone()
    replacement = Replacement(UnitReplacement(rate=1.0, maturity=0), network.hidden_layers(views))
    rows = torch.randn(6, 4, 4)
    hidden = Evaluation(network, views, rows).hidden(6)
    replacement.step_(hidden, seeds.stream(0, "replacement"))
    assert replacement.replaced == 24 + 16
    assert Evaluation(network, views, rows).outputs.allclose(views["head.b"].expand(6, 3))
    assert (views["head.b"] == network.layout.views(before)["head.b"]).all()
    for name, inputs in (("torso.0", 16), ("torso.1", 24)):
        size = views[f"{name}.w"].abs().max()
        bound = (3 / inputs) ** 0.5
        assert 0.8 * bound < float(size) <= bound
        assert not views[f"{name}.b"].any()


def test_the_range_of_new_weights_can_be_that_of_the_initial_network() -> None:
    network = Network((4, 4), 3, LITTLE)
    views = network.layout.views(network.initial(0))
    config = UnitReplacement(rate=1.0, maturity=0, initial="network")
    replacement = Replacement(config, network.hidden_layers(views))
    hidden = Evaluation(network, views, torch.randn(6, 4, 4)).hidden(6)
    replacement.step_(hidden, seeds.stream(0, "replacement"))
    assert 0.8 * 0.25 < float(views["torso.0.w"].abs().max()) <= 0.25


def test_random_replacement_does_not_look_at_utilities() -> None:
    """Of 24 units with very different utilities all are replaced about as often."""
    layer = HiddenLayer(torch.zeros(2, 24), torch.zeros(24), torch.zeros(1, 24, 2))
    counts = {}
    for utility in ("contribution", "random"):
        config = UnitReplacement(rate=1 / 24, maturity=0, utility=cast("Any", utility))
        replacement, rng = Replacement(config, [layer]), seeds.stream(0, "replacement")
        counts[utility] = np.zeros(24)
        for _ in range(480):
            layer.outgoing[:] = torch.arange(24.0)[None, :, None]
            replacement.step_([torch.ones(3, 1, 24)], rng)
            counts[utility] += (replacement.ages[0] == 0).numpy()
    assert counts["random"].max() < 45  # of 480 / 24 = 20 on average
    assert counts["contribution"].max() > 100


@pytest.mark.parametrize("name", REPLACING)
@pytest.mark.parametrize("agent", [LITTLE, LITTLE_CHANNEL])
def test_learners_that_replace_units_conform(name: str, agent: Any) -> None:
    config = msgspec.structs.replace(REPLACING[name], agent=agent)
    shape = (4, 4) if agent is LITTLE else (2, 5, 5)
    check_learner(factory(config, shape), shape, 3, steps=7)


@pytest.mark.parametrize("name", REPLACING)
def test_units_are_replaced_in_a_life_and_it_is_logged(name: str) -> None:
    config = REPLACING[name]
    world = CatchEnv(Catch(rows=4, columns=4), lanes=2)
    learner = learners.make(config, (4, 4), 3, 29, 0, interactions=348)
    assert set(learner.carriers) == set(config.carrier_names)
    assert learner.metrics[-3:] == REPLACEMENT_METRICS
    live(learner, world, world.reset(0), 6)
    metrics = learner.carrier_metrics()
    state = learner.carriers["units"].get()
    assert metrics["replaced_share"] == pytest.approx(int(state["replaced"]) / 40) != 0.0
    both = np.concatenate([state["age.0"], state["age.1"]])
    assert metrics["unit_age"] == pytest.approx(both.mean())
    assert metrics["unit_utility"] > 0.0


@pytest.mark.parametrize("name", REPLACING)
def test_a_rate_of_zero_leaves_every_bit_of_a_life_as_it_is(name: str) -> None:
    plain = cast("Kind", SMALL[name])
    never = msgspec.structs.replace(plain, replacement=UnitReplacement(rate=0.0))
    ends = []
    for config in (plain, never):
        world = CatchEnv(Catch(rows=4, columns=4), lanes=2)
        learner = learners.make(config, (4, 4), 3, 29, 0, interactions=348)
        live(learner, world, world.reset(0), 6)
        ends.append(learner.carriers["params"].get()["flat"].tolist())
    assert ends[0] == ends[1]


def test_the_moments_of_a_replaced_unit_stay() -> None:
    """As in the authors' experiments with PPO, where the optimiser is torch's own Adam."""
    learner = cast("DQNLearner", factory(REPLACING["dqn"])())
    learner.optimiser.first.fill_(0.5)
    assert learner.replacement is not None
    learner.replacement.ages = [torch.full_like(age, 9) for age in learner.replacement.ages]
    hidden = [torch.ones(2, 1, 24), torch.ones(2, 1, 16)]
    learner.replacement.step_(hidden, seeds.stream(0, "replacement"))
    assert learner.replacement.replaced > 0
    assert (learner.optimiser.first == 0.5).all()


def test_a_pinned_carrier_protects_every_unit() -> None:
    """Without ages no unit grows mature: the control in which nothing is ever replaced."""
    learner = factory(msgspec.structs.replace(REPLACING["a2c"], agent=LITTLE))()
    world = CatchEnv(Catch(rows=4, columns=4), lanes=2)
    observation = world.reset(0)
    for _ in range(8):
        live(learner, world, observation, 1)
        state = learner.carriers["units"].get()
        assert state["replaced"] == 0
        learner.carriers["units"].set({key: np.zeros_like(part) for key, part in state.items()})


def test_ids_of_baselines_without_replacement_do_not_name_it() -> None:
    for name in ("a2c", "ppo", "dqn"):
        plain, replacing = VARIANTS[name], VARIANTS[f"{name}-cbp"]
        assert b"replacement" not in canonical(RunSpec(learner=plain))
        spec = RunSpec(learner=replacing, interventions=(Pin(carrier="units"),))
        assert decode(canonical(checked(spec))) == spec
        assert msgspec.structs.replace(cast("Kind", replacing), replacement=None) == plain
    with pytest.raises(SpecError, match="no carrier 'units'"):
        checked(RunSpec(learner=A2C(), interventions=(Pin(carrier="units"),)))


@pytest.mark.parametrize(
    ("field", "value"), [("rate", 1.5), ("maturity", -1), ("decay", 1.0), ("utility", "weight")]
)
def test_values_out_of_range_are_refused(field: str, value: object) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert({field: value}, UnitReplacement)
