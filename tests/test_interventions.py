"""What an operation does to a carrier, without any lifetime around it."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from numpy.typing import NDArray

from rulescope import interventions
from rulescope.arrays import Arrays
from rulescope.learners.base import Carrier, Choice, Learner, Rollout
from rulescope.spec import Intervention


class Shelf(Learner):
    """A learner that does nothing but hold two carriers, and notes who writes to them."""

    metrics = ()

    def __init__(self) -> None:
        self.streams = {}
        self.held = {
            "recurrent": {"h": np.array([1.0, -2.0]), "c": np.array([[3.0]])},
            "moments": {"first": np.array([4.0], np.float32), "updates": np.array(7)},
        }
        self.written: list[str] = []
        self.carriers = {name: self._carrier(name) for name in self.held}

    def _carrier(self, name: str) -> Carrier:
        def get() -> dict[str, NDArray[Any]]:
            return {key: array.copy() for key, array in self.held[name].items()}

        def set_(content: Arrays) -> None:
            self.written.append(name)
            self.held[name] = {key: np.array(array) for key, array in content.items()}

        return Carrier(get, set_)

    def act(self, observation: NDArray[np.float32]) -> Choice:
        raise NotImplementedError

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        raise NotImplementedError


def test_pin_sets_every_array_to_zero_and_keeps_type_and_shape() -> None:
    learner = Shelf()
    before = learner.carriers["moments"].get()
    interventions.apply(Intervention(carrier="moments", operation="pin"), learner)
    after = learner.carriers["moments"].get()
    assert list(after) == list(before)
    for name, array in after.items():
        assert not array.any()
        assert (array.dtype, array.shape) == (before[name].dtype, before[name].shape)


def test_pin_touches_no_other_carrier() -> None:
    learner = Shelf()
    interventions.apply(Intervention(carrier="moments", operation="pin"), learner)
    assert learner.written == ["moments"]
    assert learner.carriers["recurrent"].get()["h"].tolist() == [1.0, -2.0]


def test_pin_does_not_write_into_what_it_was_given() -> None:
    content = {"h": np.ones(3)}
    assert interventions.pin(content)["h"].tolist() == [0.0, 0.0, 0.0]
    assert content["h"].tolist() == [1.0, 1.0, 1.0]


def test_placebo_writes_back_what_it_read() -> None:
    learner = Shelf()
    before = learner.carriers["recurrent"].get()
    interventions.apply(Intervention(carrier="recurrent", operation="placebo"), learner)
    after = learner.carriers["recurrent"].get()
    assert learner.written == ["recurrent"]
    assert all(after[name].tobytes() == array.tobytes() for name, array in before.items())


def test_every_operation_of_the_specification_exists() -> None:
    named = get_args(get_type_hints(Intervention)["operation"])
    assert set(named) == set(interventions.OPERATIONS)


@pytest.mark.parametrize("operation", list(interventions.OPERATIONS))
def test_every_operation_keeps_the_names(operation: str) -> None:
    content = {"a": np.ones(2), "b": np.zeros(())}
    assert list(interventions.OPERATIONS[operation](content)) == ["a", "b"]
