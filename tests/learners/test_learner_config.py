"""Named learners, and what their configurations tell."""

from __future__ import annotations

import pytest

from learners.baseline_cases import SMALL
from learners.small import small_disco
from rulescope.envs.world_config import WORLDS, Catch
from rulescope.learners.baseline_config import A2C, DQN, PPO, RandomPolicy
from rulescope.learners.disco_config import Disco
from rulescope.learners.learner_config import VARIANTS, LearnerSpec, adapt_to_world
from rulescope.learners.open_config import Open, OpenAdam
from rulescope.lifetime import Lifetime
from rulescope.run_spec import RunSpec


def test_every_name_is_another_learner() -> None:
    assert len(set(VARIANTS.values())) == len(VARIANTS) == 14


@pytest.mark.parametrize("name", VARIANTS)
def test_minatar_is_seen_in_channels_and_a_board_is_not(name: str) -> None:
    learner = VARIANTS[name]
    assert adapt_to_world(learner, Catch()) is learner
    games = adapt_to_world(learner, WORLDS["minatar-breakout"])
    if isinstance(games, RandomPolicy):
        assert games is learner
    else:
        flat = isinstance(games, Open | OpenAdam)
        assert games.agent.torso == ("grid" if flat else "channel")


@pytest.mark.parametrize(
    "learner", [small_disco(), *SMALL.values()], ids=lambda learner: type(learner).__name__
)
def test_first_update_is_when_parameters_first_change(learner: LearnerSpec) -> None:
    spec = RunSpec(learner=learner, environment=Catch(5, 5), iterations=12, log_every=1, steps=3)
    life = Lifetime(spec)
    initial = life.learner.carriers["params"].get()["flat"]
    changed = []
    for _ in range(12):
        life.advance()
        changed.append(bool((life.learner.carriers["params"].get()["flat"] != initial).any()))
    assert changed.index(True) + 1 == learner.first_update(spec.lanes, spec.steps)


@pytest.mark.parametrize(
    ("learner", "problem"),
    [
        (Disco(batch=65, capacity=64), "batch: 65 is more than learner.capacity (64)"),
        (DQN(start=200, capacity=100), "start: 200 is more than learner.capacity (100)"),
        (DQN(start=1, capacity=1), "capacity: 1 has no room for one transition of each lane (2)"),
        (PPO(minibatches=59), "minibatches: 59 is more than an iteration has (58)"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_a_learner_that_could_never_learn_is_reported(learner: LearnerSpec, problem: str) -> None:
    (found,) = learner.problems(lanes=2, steps=29)
    assert found.startswith(problem)


@pytest.mark.parametrize("learner", [*VARIANTS.values(), A2C(learning_rate=1e-4)], ids=repr)
def test_usual_learners_fit_usual_rollouts(learner: LearnerSpec) -> None:
    assert not list(learner.problems(lanes=2, steps=29))
