"""A world that goes on, and one that only does not say that it stops."""

from __future__ import annotations

import numpy as np
import pytest

from rulescope.assays.streams.continuity import STEPS, Continuity, continuity
from rulescope.envs import catch_stream
from rulescope.envs.environment import Step
from rulescope.envs.world_config import Boundary, Catch, CatchStream

MASKED = Boundary(terminals="masked")


def test_catch_stream_never_resets() -> None:
    found = continuity(CatchStream(drift=0.0), Boundary(), seed=0)
    assert found == Continuity(terminals=0, snaps=0, jumps=0, repeats=True)
    assert found.holds
    assert STEPS == 200


def test_masked_catch_resets_without_saying_so() -> None:
    found = continuity(Catch(), MASKED, seed=0)
    assert found.terminals == 0
    assert found.snaps == 1  # after which it is left at the centre
    assert found.jumps == (1 + STEPS) // 7
    assert not found.holds


def test_episodic_catch_says_so() -> None:
    assert continuity(Catch(), Boundary()).terminals == (1 + STEPS) // 7


@pytest.mark.parametrize("seed", range(4))
def test_drift_is_no_reset_and_comes_from_the_seed(seed: int) -> None:
    assert continuity(CatchStream(), Boundary(), seed=seed).holds


def test_a_world_that_is_not_repeated_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, noise = catch_stream.CatchStreamEnv.step, np.random.default_rng(0)

    def step(self: catch_stream.CatchStreamEnv, actions: np.ndarray) -> Step:
        made = plain(self, actions)
        return made._replace(payoff=made.payoff + noise.normal(size=1))

    monkeypatch.setattr(catch_stream.CatchStreamEnv, "step", step)
    found = continuity(CatchStream(drift=0.0), Boundary())
    assert not found.repeats
    assert not found.holds
