"""The learners of DPO, LPO and LPG: contract, carriers, weights, and whole lifetimes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from learners.baseline_cases import LITTLE, LITTLE_CHANNEL, catch_score
from rulescope import learners
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import Catch
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.further_config import Dpo, Further, Lpg, Lpo
from rulescope.learners.learner import Learner
from rulescope.learners.learner_conformance import check_learner
from rulescope.learners.lpg import LPG
from rulescope.lifetime import Lifetime
from rulescope.run_spec import RunSpec

AWARE = "ta-lpg-random-4-4-8:0"
SMALL: dict[str, Further] = {
    "dpo": Dpo(agent=LITTLE, epochs=2, minibatches=2),
    "dpo-one-batch": Dpo(
        agent=LITTLE, epochs=2, minibatches=1, value_clip=None, entropy_coefficient=0.01
    ),
    "lpo": Lpo(agent=LITTLE, rule="lpo-random-8:0", epochs=2, minibatches=2),
    "lpo-ratio-first": Lpo(
        agent=LITTLE, features="ratio-first", clip=None, epochs=2, minibatches=2
    ),
    "lpg": Lpg(agent=LITTLE, rule="lpg-random-4-4-8:0"),
    "lpg-sgd": Lpg(agent=LITTLE, rule="lpg-random-4-4-8:0", optimiser="sgd"),
    "ta-lpg": Lpg(agent=LITTLE, rule=AWARE, lifetime_inputs="raw"),
    "ta-lpg-relative": Lpg(agent=LITTLE, rule=AWARE, lifetime_inputs="relative"),
}
pytestmark = pytest.mark.usefixtures("deterministic")


def factory(config: Further, shape: tuple[int, ...] = (4, 4)) -> Callable[[], Learner]:
    return lambda: learners.make(config, shape, 3, 7, seed=1, iterations=20)


@pytest.mark.parametrize("name", SMALL)
def test_it_conforms(name: str) -> None:
    check_learner(factory(SMALL[name]), (4, 4), 3, steps=7, rollouts=4)
    assert set(factory(SMALL[name])().carriers) == set(SMALL[name].carrier_names)


@pytest.mark.parametrize("name", ["dpo", "lpo", "lpg"])
def test_it_conforms_with_channels(name: str) -> None:
    config = replace(SMALL[name], agent=LITTLE_CHANNEL)
    check_learner(factory(config, (2, 4, 4)), (2, 4, 4), 3, steps=7, rollouts=3)


@pytest.mark.parametrize("name", SMALL)
def test_it_has_no_learning_history(name: str) -> None:
    assert SMALL[name].history == ()


@pytest.mark.parametrize("name", SMALL)
def test_a_lifetime_continues_to_the_bit(name: str) -> None:
    spec = RunSpec(
        learner=SMALL[name],
        environment=Catch(rows=4, columns=3),
        iterations=6,
        log_every=2,
        steps=5,
    )
    whole, first, second = Lifetime(spec), Lifetime(spec), Lifetime(spec)
    whole.run()
    for _ in range(3):
        first.advance()
    second.load(first.save())
    second.run()
    assert second.record().manifest.science_hash == whole.record().manifest.science_hash


@pytest.mark.parametrize("config", [Dpo(), Lpo()], ids=["dpo", "lpo"])
def test_learns_catch(config: Dpo | Lpo) -> None:
    small = replace(config, agent=NetworkSizes(hidden=(64, 64)), learning_rate=1e-3)
    assert catch_score(small, iterations=120) > 0.8


def test_a_change_of_the_weights_is_noticed() -> None:
    for name in ("lpo", "lpg"):
        learner = factory(SMALL[name])()
        assert learner.rule is not None
        assert learner.rule_digest() == learner.rule.content
        next(iter(learner.tensors.values())).add_(1.0)  # type: ignore[attr-defined]
        assert learner.rule_digest() != learner.rule.content


def test_a_temporally_aware_rule_reads_its_age_in_the_chosen_form() -> None:
    names = ("ta-lpg", "ta-lpg-relative", "lpg")
    raw, relative, unaware = (factory(SMALL[name])() for name in names)
    for learner in (raw, relative):
        learner.carriers["schedule"].set({"updates": np.array(5)})
    assert isinstance(raw, LPG)
    assert raw.lifetime_inputs() == (5, 20)
    assert isinstance(relative, LPG)
    assert relative.lifetime_inputs() == (0.25, math.log(20))
    assert isinstance(unaware, LPG)
    assert unaware.lifetime_inputs() is None
    assert (SMALL["ta-lpg"].scheduled, SMALL["lpg"].scheduled) == (True, False)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Lpg(rule="lpo-random:0"), "'lpo-random:0' is not an LPG rule"),
        (Lpo(rule="sprout"), "'sprout' is not an LPO rule"),
        (Lpg(rule="ta-lpg-random:0"), "temporally aware, so it needs 'raw' or 'relative'"),
        (Lpg(lifetime_inputs="raw"), "'raw' is for a temporally-aware rule"),
        (Dpo(minibatches=100), "100 is more than an iteration has"),
    ],
)
def test_what_does_not_fit_is_refused(config: Further, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        factory(config)()
