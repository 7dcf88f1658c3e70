import msgspec
import numpy as np

from benchmarks.timed_lifetime import MoreActions, TimedLifetime, disco_config, make_world
from rulescope.envs import check_env
from rulescope.run_spec import RunSpec


def test_more_actions_is_a_valid_world(small: RunSpec) -> None:
    check_env(lambda: MoreActions(make_world(small, lanes=2), actions=7), steps=60)


def test_a_timed_lifetime_updates_from_the_first_iteration(small: RunSpec) -> None:
    lifetime = TimedLifetime(small)
    before = lifetime.learner.state.params.clone()
    assert len(lifetime.learner.replay) == disco_config(small).capacity
    time = lifetime.iterate()
    assert 0.0 < time.learning < time.total
    assert not before.equal(lifetime.learner.state.params)
    assert len(lifetime.batches) == len(lifetime.products()) == 1
    lifetime.clear_batches()
    assert lifetime.products() == []


def test_the_filled_replay_is_valid(small: RunSpec) -> None:
    spec = msgspec.structs.replace(
        small, learner=msgspec.structs.replace(small.learner, capacity=100)
    )
    lifetime = TimedLifetime(spec, actions=5)
    content = lifetime.learner.carriers["replay"].get()
    assert content["index"].shape == (100, 29)
    assert content["actions"].shape == content["terminals"].shape == (100, 28)
    assert content["behaviour"].shape == (100, 28, 5)
    assert set(np.unique(content["actions"])) == {0, 1, 2, 3, 4}
    # Catch pays at the end of an episode and nowhere else, and an episode lasts seven steps.
    assert np.array_equal(content["rewards"] != 0.0, content["terminals"] != 0.0)
    assert set(content["terminals"].sum(1).tolist()) == {4.0}
    # The second rollout begins one step into an episode, so trajectories differ in phase.
    assert len(np.unique(content["terminals"].argmax(1))) == 2
