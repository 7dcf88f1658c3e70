"""Where two boundaries are the same to a learner, its lifetimes are the same to the bit.

Of the 29 interactions of an iteration, a trajectory stores 28 transitions. What the last action of
a rollout led to is never trained on; so a terminal reported at every 29th step, and there alone, is
invisible to Disco. A terminal reported at every 7th step of 8x8 Catch is true for every learner.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from learners.small import small_disco
from rulescope.core import arrays
from rulescope.envs.world_config import Boundary
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.learners.disco_config import Disco
from rulescope.lifetime import Lifetime
from rulescope.run_spec import RunSpec

EPISODIC = Boundary()
MASKED = Boundary(terminals="masked")


def synthetic(interval: int) -> Boundary:
    return Boundary(terminals="synthetic", interval=interval)


@cache
def completed(boundary: Boundary, bundle: str = "historical", iterations: int = 64) -> Lifetime:
    spec = RunSpec(
        learner=small_disco(bundle, batch=8, capacity=48),
        boundary=boundary,
        iterations=iterations,
        log_every=4,
        keep=tuple(name for name in Disco.CARRIERS if name != "replay"),
    )
    life = Lifetime(spec)
    life.run()
    return life


def everything(life: Lifetime, but: tuple[str, ...] = ()) -> dict[str, str]:
    """Return a digest of each log column and each array of the terminal state."""
    columns = {f"log/{name}": column for name, column in life.log().items()}
    return {
        name: arrays.digest({name: array})
        for name, array in {**columns, **life.learner.save()}.items()
        if name not in but
    }


def science(life: Lifetime) -> str:
    return life.record().manifest.science_hash


def test_masked_is_synthetic_29_to_the_bit() -> None:
    masked, marked = completed(MASKED), completed(synthetic(29))
    # How a trajectory began is stored, and is all that differs: this bundle does not read it.
    assert everything(masked, but=("replay/began",)) == everything(marked, but=("replay/began",))
    assert science(masked) == science(marked)
    assert masked.learner.carriers["replay"].get()["began"].max() == 0.0
    assert marked.learner.carriers["replay"].get()["began"].min() == 1.0


def test_synthetic_7_is_episodic_to_the_bit() -> None:
    assert everything(completed(synthetic(7))) == everything(completed(EPISODIC))
    assert science(completed(synthetic(7))) == science(completed(EPISODIC))


@pytest.mark.parametrize("other", [MASKED, synthetic(29)])
def test_other_boundaries_give_other_lifetimes(other: Boundary) -> None:
    assert science(completed(other)) != science(completed(EPISODIC))
    params = [
        life.learner.carriers["params"].get()["flat"]
        for life in (completed(other), completed(EPISODIC))
    ]
    assert (params[0] != params[1]).any()


def test_these_lifetimes_have_learned_something() -> None:
    life = completed(EPISODIC)
    updates = int(life.learner.carriers["moments"].get()["updates"])
    assert updates == 64 - 3
    start = Lifetime(life.spec).learner.carriers["params"].get()["flat"]
    end = life.learner.carriers["params"].get()["flat"]
    assert np.abs(end - start).mean() > 0.01
    assert life.learner.carriers["recurrent"].get()["h"].any()


@pytest.mark.parametrize("bundle", ["reference", "legacy"])
def test_bundles_that_use_the_29th_step_distinguish_the_two(bundle: str) -> None:
    """The reference reads how a trajectory began; the legacy alignment trains on all 29 steps."""
    masked, marked = (completed(b, bundle, 16) for b in (MASKED, synthetic(29)))
    assert science(masked) != science(marked)


@cache
def run_with_a2c(boundary: Boundary) -> Lifetime:
    learner = A2C(agent=NetworkSizes(hidden=(32, 32)))
    life = Lifetime(RunSpec(learner=learner, boundary=boundary, iterations=24, log_every=2))
    life.run()
    return life


def test_synthetic_7_is_episodic_to_a2c_too() -> None:
    assert everything(run_with_a2c(synthetic(7))) == everything(run_with_a2c(EPISODIC))
    assert science(run_with_a2c(synthetic(7))) == science(run_with_a2c(EPISODIC))


def test_a2c_trains_on_all_29_steps_and_distinguishes_masked_from_synthetic_29() -> None:
    lifetimes = [run_with_a2c(boundary) for boundary in (MASKED, synthetic(29), EPISODIC)]
    assert len({science(life) for life in lifetimes}) == 3
