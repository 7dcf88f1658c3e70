"""Score streams against brute force over everything that ever happened."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rulescope.envs.environment import References, Step
from rulescope.episode_stats import GOALS, RATE_WINDOW, RETURN_WINDOW, STREAMS, EpisodeStats

REFERENCES = References(-0.75, 1.0, -0.75 / 7, 1 / 7)


class Event(NamedTuple):
    payoff: list[float]
    ended: list[bool]


def step(event: Event) -> Step:
    """Return a step whose observed side contradicts the truth: the statistics must ignore it."""
    payoff, ended = np.array(event.payoff), np.array(event.ended)
    reward = (payoff * 1000.0).astype(np.float32)
    return Step(np.zeros((len(payoff), 1), np.float32), reward, ~ended, payoff, ended)


def events(seed: int, lanes: int, count: int, ends: float) -> list[Event]:
    rng = np.random.default_rng(seed)
    return [
        Event(rng.standard_normal(lanes).tolist(), (rng.random(lanes) < ends).tolist())
        for _ in range(count)
    ]


def completed(past: list[Event], lanes: int) -> list[float]:
    """Return the returns of all completed episodes, in order of completion."""
    running, returns = [0.0] * lanes, []
    for event in past:
        for lane in range(lanes):
            running[lane] += event.payoff[lane]
            if event.ended[lane]:
                returns.append(running[lane])
                running[lane] = 0.0
    return returns


def assert_reads(meters: EpisodeStats, past: list[Event], lanes: int) -> None:
    found = meters.read()
    returns = completed(past, lanes)
    assert found["episodes"] == len(returns)
    if returns:
        expected = float(np.mean(returns[-RETURN_WINDOW:]))
        assert found["mean_return"] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert found["score"] == pytest.approx((expected + 0.75) / 1.75, rel=1e-9, abs=1e-12)
        assert meters.score() == found["score"]
    else:
        assert math.isnan(found["mean_return"])
        assert math.isnan(found["score"])
    vector_steps = RATE_WINDOW // lanes
    recent = [payoff for event in past[-vector_steps:] for payoff in event.payoff]
    rate = float(np.mean(recent))
    assert found["reward_rate"] == pytest.approx(rate, rel=1e-9, abs=1e-12)
    assert found["rate_score"] == pytest.approx((rate + 0.75 / 7) * 4.0, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("lanes", "ends"), [(1, 0.2), (2, 1 / 7), (5, 0.5), (40, 0.02)])
def test_windows_by_brute_force(lanes: int, ends: float) -> None:
    """Long enough for both windows to fill, to turn over, and to be partly overwritten."""
    count = 2 * RATE_WINDOW // lanes + 37
    past = events(1, lanes, count, ends)
    meters = EpisodeStats(lanes, REFERENCES)
    probes = set(np.linspace(0, count - 1, 60).astype(int).tolist())
    for k, event in enumerate(past):
        meters.record(step(event))
        if k in probes:
            assert_reads(meters, past[: k + 1], lanes)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    lanes=st.integers(1, 5),
    count=st.integers(1, 60),
    ends=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_short_histories_by_brute_force(seed: int, lanes: int, count: int, ends: float) -> None:
    past = events(seed, lanes, count, ends)
    meters = EpisodeStats(lanes, REFERENCES)
    for event in past:
        meters.record(step(event))
    assert_reads(meters, past, lanes)


def test_there_is_nothing_to_read_before_the_first_step() -> None:
    found = EpisodeStats(2, REFERENCES).read()
    assert tuple(found) == STREAMS
    assert found.pop("episodes") == 0.0
    assert all(math.isnan(value) for value in found.values())


def test_rate_is_known_before_the_first_episode_ends() -> None:
    meters = EpisodeStats(2, REFERENCES)
    meters.record(step(Event([1.0, 2.0], [False, False])))
    assert meters.read()["reward_rate"] == 1.5
    assert math.isnan(meters.read()["mean_return"])


def test_window_forgets_the_hundred_and_first_episode_in_order_of_completion() -> None:
    """Of two lanes that end together, the first one's episode is the older one."""
    meters = EpisodeStats(2, REFERENCES)
    meters.record(step(Event([1000.0, 500.0], [True, True])))
    for _ in range(98):
        meters.record(step(Event([0.0, 0.0], [True, False])))
    assert meters.read()["mean_return"] == 15.0
    meters.record(step(Event([0.0, 0.0], [True, False])))
    assert meters.read()["mean_return"] == 5.0
    meters.record(step(Event([0.0, 0.0], [False, True])))
    assert meters.read()["mean_return"] == 0.0
    assert meters.read()["episodes"] == 102


def test_an_episode_spans_iterations_and_belongs_to_its_lane() -> None:
    meters = EpisodeStats(2, REFERENCES)
    for payoff in ([1.0, 10.0], [2.0, 20.0], [4.0, 40.0]):
        meters.record(step(Event(payoff, [False, False])))
    meters.record(step(Event([0.0, 0.0], [True, False])))
    assert meters.read()["mean_return"] == 7.0
    meters.record(step(Event([0.5, 0.0], [True, True])))
    assert meters.read()["mean_return"] == pytest.approx((7.0 + 0.5 + 70.0) / 3)


def test_more_lanes_than_the_window_holds() -> None:
    meters = EpisodeStats(5000, REFERENCES)
    for payoff in (1.0, 3.0):
        meters.record(step(Event([payoff] * 5000, [False] * 5000)))
    assert meters.read()["reward_rate"] == 3.0


def test_a_world_without_returns_has_no_score_but_a_rate_score() -> None:
    meters = EpisodeStats(1, References(math.nan, math.nan, 0.5, 1.0))
    meters.record(step(Event([0.75], [False])))
    found = meters.read()
    assert math.isnan(found["score"])
    assert found["rate_score"] == 0.5


@pytest.mark.parametrize("stop", [0, 3, 150, 2100])
def test_save_and_load_go_on_to_the_bit(stop: int) -> None:
    past = events(4, 2, 2300, 0.2)
    meters, fresh = EpisodeStats(2, REFERENCES), EpisodeStats(2, REFERENCES)
    for event in past[:stop]:
        meters.record(step(event))
    saved = meters.save()
    before = {name: array.copy() for name, array in saved.items()}
    fresh.load(saved)
    for event in past[stop:]:
        meters.record(step(event))
        fresh.record(step(event))
    assert fresh.read() == meters.read()
    for name, array in saved.items():
        assert array.tobytes() == before[name].tobytes()


def goal_step(goal: list[bool], ended: list[bool]) -> Step:
    lanes = len(goal)
    return Step(
        observation=np.zeros((lanes, 1), np.float32),
        reward=np.zeros(lanes, np.float32),
        terminal=np.array(ended),
        payoff=np.zeros(lanes),
        ended=np.array(ended),
        goal=np.array(goal),
    )


def test_goals_are_counted_from_the_first_on() -> None:
    meters = EpisodeStats(2, REFERENCES, goals=True)
    assert meters.names[-4:] == GOALS
    nothing = meters.read()
    assert nothing["goals"] == 0
    assert np.isnan(nothing["first_goal_interaction"])
    meters.record(goal_step([False, False], [False, True]))
    meters.record(goal_step([False, True], [False, True]))
    meters.record(goal_step([True, False], [True, False]))
    read = meters.read()
    # The second lane's second episode is the second to end; it ends at the fourth interaction.
    assert [read[name] for name in GOALS] == [2.0, pytest.approx(2 / 3), 4.0, 2.0]
    again = EpisodeStats(2, REFERENCES, goals=True)
    again.load(meters.save())
    again.record(goal_step([False, False], [True, True]))
    assert again.read()["success"] == pytest.approx(2 / 5)


def test_worlds_without_a_goal_have_no_goal_columns() -> None:
    assert not set(GOALS) & set(EpisodeStats(2, REFERENCES).read())
