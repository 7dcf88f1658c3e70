"""What each operation does to a carrier, without any lifetime around it."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from rulescope.core import seeds
from rulescope.core.arrays import Arrays, bit_equal
from rulescope.core.errors import RecordError
from rulescope.interventions import (
    Treatment,
    ablate_directions,
    find_directions,
    flatten_floats,
    permute_units,
    sample_like_donors,
    zeros_like_content,
)
from rulescope.learners.learner import Carrier, Choice, Learner, Rollout
from rulescope.run_spec import (
    Ablate,
    Freeze,
    Hold,
    Intervention,
    Permute,
    Pin,
    Placebo,
    RandomState,
    Reset,
    RunSpec,
    Transplant,
)

DONOR = RunSpec(seed=1, keep=("recurrent", "moments"))
OTHER = RunSpec(seed=2, keep=("recurrent", "moments"))
STATES = {
    DONOR.id: {"recurrent/h": np.array([7.0, 8.0]), "recurrent/c": np.array([[9.0]])},
    OTHER.id: {"recurrent/h": np.array([5.0, 8.0]), "recurrent/c": np.array([[-9.0]])},
}


class Shelf(Learner):
    """A learner that only holds two carriers, and records writes to them."""

    metrics = ()

    def __init__(self) -> None:
        self.streams = {}
        self.after_step = []
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

    @property
    def hidden(self) -> list[float]:
        return [float(value) for value in self.held["recurrent"]["h"]]


def completed(item: Intervention, iterations: int, shelf: Shelf | None = None) -> list[list[float]]:
    """Return the hidden state, initially and after each iteration, which adds one to it."""
    shelf = shelf or Shelf()
    treatment = Treatment(item, shelf, STATES, seed=3)
    treatment.act(0)
    seen = [shelf.hidden]
    for iteration in range(1, iterations + 1):
        shelf.held["recurrent"]["h"] += 1.0
        treatment.act(iteration)
        seen.append(shelf.hidden)
    return seen


def test_pin_is_zero_after_every_iteration_but_not_initially() -> None:
    assert completed(Pin(carrier="recurrent"), 3) == [[1, -2], [0, 0], [0, 0], [0, 0]]


def test_freeze_restores_what_was_there_after_its_iteration() -> None:
    frozen = completed(Freeze(carrier="recurrent", at=2), 4)
    assert frozen == [[1, -2], [2, -1], [3, 0], [3, 0], [3, 0]]


def test_freeze_at_0_keeps_the_initial_value() -> None:
    assert completed(Freeze(carrier="recurrent", at=0), 2) == [[1, -2]] * 3


def test_hold_restores_what_the_first_update_left() -> None:
    shelf = Shelf()
    treatment = Treatment(Hold(carrier="recurrent"), shelf, {}, seed=0)
    for iteration, change in enumerate([0.0, 0.0, 5.0, 1.0, 1.0]):
        shelf.held["recurrent"]["h"] += change
        treatment.act(iteration)
    assert shelf.hidden == [6, 3]


def test_hold_starts_from_the_value_after_another_initial_intervention() -> None:
    shelf = Shelf()
    items = (
        Transplant(carrier="recurrent", donor=DONOR, mode="natural"),
        Hold(carrier="recurrent"),
    )
    treatments = [Treatment(item, shelf, STATES, seed=0) for item in items]
    for iteration, change in enumerate([0.0, 0.0, 5.0, 1.0]):
        shelf.held["recurrent"]["h"] += change
        for treatment in treatments:
            treatment.act(iteration)
    assert shelf.hidden == [12, 13]


def test_reset_restores_the_initial_value_once() -> None:
    assert completed(Reset(carrier="recurrent", at=2), 4) == [
        [1, -2],
        [2, -1],
        [1, -2],
        [2, -1],
        [3, 0],
    ]


def test_natural_transplant_starts_with_the_donor_and_continues() -> None:
    item = Transplant(carrier="recurrent", donor=DONOR, mode="natural")
    assert completed(item, 2) == [[7, 8], [8, 9], [9, 10]]


def test_clamped_transplant_stays_the_donor() -> None:
    item = Transplant(carrier="recurrent", donor=DONOR, mode="clamp")
    assert completed(item, 2) == [[7, 8]] * 3


@pytest.mark.parametrize("mode", ["natural", "clamp"])
def test_random_state_has_the_donors_mean_and_spread(mode: Any) -> None:
    item = RandomState(carrier="recurrent", donors=(DONOR, OTHER), mode=mode)
    seen = completed(item, 2)
    noise = seeds.stream(3, "intervention", "random", "recurrent")
    noise.standard_normal((1, 1))  # for c, which comes first
    first = 6.0 + 1.0 * float(noise.standard_normal(2)[0])
    assert seen[0] == [pytest.approx(first), 8.0]  # the second unit does not vary
    assert seen[2] == (seen[0] if mode == "clamp" else [value + 2 for value in seen[0]])


def test_random_states_have_the_moments_of_the_donors() -> None:
    donors = [{"h": np.full(200_000, mean)} for mean in (1.0, 2.0, 6.0)]
    drawn = sample_like_donors(donors, {"h": np.zeros(200_000)}, np.random.default_rng(0))["h"]
    assert drawn.mean() == pytest.approx(3.0, abs=0.02)
    assert drawn.std() == pytest.approx(np.std([1.0, 2.0, 6.0]), abs=0.02)


def test_random_state_keeps_counters_and_types() -> None:
    own = {"first": np.zeros(2, np.float32), "updates": np.array(7)}
    donors = [{"first": np.ones(2, np.float32), "updates": np.array(9)}] * 2
    drawn = sample_like_donors(donors, own, np.random.default_rng(0))
    assert drawn["updates"] == 7
    assert drawn["first"].dtype == np.float32
    assert drawn["first"].tolist() == [1.0, 1.0]


def test_random_state_of_donors_that_do_not_fit_is_refused() -> None:
    with pytest.raises(RecordError, match=r"h: donors have shapes .*\(3,\)"):
        sample_like_donors([{"h": np.ones(3)}] * 2, {"h": np.ones(2)}, np.random.default_rng(0))


def test_permute_moves_units_and_leaves_them_whole() -> None:
    content = {"h": np.arange(9.0), "c": np.arange(9.0)[None] + 100.0, "count": np.array(3)}
    shuffled = permute_units(content, np.random.default_rng(0))
    assert shuffled["h"].tolist() != content["h"].tolist()
    assert sorted(shuffled["h"]) == sorted(content["h"])
    assert (shuffled["c"][0] - shuffled["h"]).tolist() == [100.0] * 9
    assert shuffled["count"] == 3


@pytest.mark.parametrize("mode", ["natural", "clamp"])
def test_permute_happens_once_and_is_restored_if_clamped(mode: Any) -> None:
    shelf = Shelf()
    shelf.held["recurrent"]["h"] = np.arange(8.0)
    seen = completed(Permute(carrier="recurrent", at=1, mode=mode), 3, shelf)
    assert seen[1] != [value + 1 for value in range(8)]
    assert sorted(seen[1]) == [value + 1 for value in range(8)]
    assert seen[3] == (seen[1] if mode == "clamp" else [value + 2 for value in seen[1]])


def ablation(which: Any = "principal", at: int = 1, mode: Any = "clamp") -> Ablate:
    return Ablate(
        carrier="recurrent", donors=(DONOR, OTHER), components=1, which=which, at=at, mode=mode
    )


MEAN, DIRECTION = np.array([0.0, 6.0, 8.0]), np.array([9.0, 1.0, 0.0]) / np.sqrt(82.0)
"""Of the two donors, as (c, h): they differ by 18 in c and by 2 in the first h."""


def test_ablation_takes_out_what_lies_along_the_direction() -> None:
    seen = completed(ablation(at=0, mode="natural"), 2)
    # Own (3, 1, -2) is (3, -5, -10) from the mean, of which 22/82 (9, 1, 0) lies along.
    first = 1 - 22 / 82
    assert seen[0] == [pytest.approx(first), -2.0]
    assert seen[2] == [pytest.approx(first + 2), 0.0]  # it goes on from there


def test_clamped_ablation_is_made_anew_from_what_the_learner_made_of_it() -> None:
    shelf = Shelf()
    treatment = Treatment(ablation(), shelf, STATES, seed=3)
    for iteration in range(5):
        shelf.held["recurrent"]["h"] += 1.0
        treatment.act(iteration)
        along = float((flatten_floats(shelf.held["recurrent"]) - MEAN) @ DIRECTION)
        assert (abs(along) < 1e-12) is (iteration >= 1)
        assert shelf.hidden[1] == -1 + iteration  # across the direction it changes
    assert treatment.save() == {}


def test_the_complement_leaves_nothing_but_the_direction() -> None:
    shelf = Shelf()
    Treatment(ablation("complement", at=0), shelf, STATES, seed=3).act(0)
    expected = MEAN + 22 / 82 * np.array([9.0, 1.0, 0.0])
    assert flatten_floats(shelf.held["recurrent"]) == pytest.approx(expected)


def some_donors(count: int, units: int) -> list[Arrays]:
    rng = np.random.default_rng(5)
    stretch = 2.0 ** -np.arange(units)
    return [
        {"h": (3.0 + rng.normal(size=units) * stretch).astype(np.float32)} for _ in range(count)
    ]


def test_principal_directions_are_those_of_the_covariance() -> None:
    donors = some_donors(20, 6)
    found = find_directions(donors, 3)
    _, vectors = np.linalg.eigh(np.cov(np.stack([donor["h"] for donor in donors]).T))
    first = vectors[:, ::-1][:, :3]
    assert np.abs(found.basis @ first) == pytest.approx(np.eye(3), abs=1e-9)
    assert found.mean == pytest.approx(np.mean([donor["h"] for donor in donors], axis=0))


def test_random_directions_are_even_over_all_in_which_donors_vary() -> None:
    donors = some_donors(5, 40)  # which span four directions
    span = find_directions(donors, 4).basis
    shares = np.zeros(4)
    draws = 400
    for seed in range(draws):
        basis = find_directions(donors, 2, np.random.default_rng(seed)).basis
        assert basis @ basis.T == pytest.approx(np.eye(2), abs=1e-9)
        assert basis @ span.T @ span == pytest.approx(basis, abs=1e-9)
        shares += np.square(basis @ span.T).sum(axis=0)
    # Each of the four has half of its length in two random ones; its spread is below a half.
    assert shares / draws == pytest.approx(np.full(4, 0.5), abs=4 * 0.5 / np.sqrt(draws))


def test_every_lifetime_draws_its_own_random_directions() -> None:
    donors = tuple(RunSpec(seed=seed) for seed in range(4))
    rng = np.random.default_rng(0)
    states = {
        donor.id: {"recurrent/h": rng.normal(size=2), "recurrent/c": rng.normal(size=(1, 1))}
        for donor in donors
    }
    item = Ablate(
        carrier="recurrent", donors=donors, components=1, which="random", at=0, mode="clamp"
    )
    left = []
    for seed in (1, 1, 2):
        shelf = Shelf()
        Treatment(item, shelf, states, seed=seed).act(0)
        left.append(shelf.hidden)
    assert left[0] == left[1] != left[2]


def test_ablation_keeps_counters_types_and_shapes() -> None:
    content = {"b": np.ones((2, 2), np.float32), "a": np.array(2.0), "n": np.array(7)}
    donors = [
        {"b": np.full((2, 2), v, np.float32), "a": np.array(v), "n": np.array(9)}
        for v in (0.0, 1.0)
    ]
    left = ablate_directions(content, find_directions(donors, 1))
    assert {name: (a.dtype, a.shape) for name, a in left.items()} == {
        name: (a.dtype, a.shape) for name, a in content.items()
    }
    assert left["n"] == 7
    # Own mean 1.2 along (1, 1, 1, 1, 1) becomes the donors' 0.5.
    assert flatten_floats(left) == pytest.approx([1.3, 0.3, 0.3, 0.3, 0.3])


def test_donors_that_vary_too_little_are_refused() -> None:
    alike = [{"h": np.arange(3.0) + shift} for shift in (0.0, 1.0, 2.0)]
    assert find_directions(alike, 1).basis.shape == (1, 3)
    with pytest.raises(RecordError, match="the donors vary along 1 directions only, not 2"):
        find_directions(alike, 2)
    with pytest.raises(RecordError, match="along 0 directions only"):
        find_directions([alike[0]] * 3, 1)
    with pytest.raises(RecordError, match="along 0 directions only"):
        find_directions([{"n": np.array(3)}] * 3, 1)  # counters only


def test_placebo_writes_back_what_it_read() -> None:
    shelf = Shelf()
    assert completed(Placebo(carrier="recurrent"), 2, shelf) == [[1, -2], [2, -1], [3, 0]]
    assert shelf.written == ["recurrent", "recurrent"]


@pytest.mark.parametrize("kind", get_args(Intervention))
def test_no_operation_touches_another_carrier(kind: Any) -> None:
    shelf = Shelf()
    known = {"carrier": "recurrent", "at": 1, "mode": "clamp", "donor": DONOR}
    known |= {"donors": (DONOR, OTHER), "components": 1, "which": "principal"}
    fields = {name: known[name] for name in kind.__struct_fields__}
    completed(kind(**fields), 3, shelf)
    assert set(shelf.written) == {"recurrent"}
    assert shelf.held["moments"]["updates"] == 7


def test_a_donor_of_another_kind_is_refused() -> None:
    states = {DONOR.id: {"recurrent/h": np.zeros((2, 3)), "recurrent/c": np.array([[9.0]])}}
    item = Transplant(carrier="recurrent", donor=DONOR, mode="clamp")
    with pytest.raises(RecordError, match=r"recurrent/h has shape \(2, 3\), the recipient's"):
        Treatment(item, Shelf(), states, seed=0).act(0)
    states[DONOR.id]["recurrent/h"] = np.zeros(3)
    with pytest.raises(RecordError, match=r"recurrent/h has shape \(3,\), the recipient's \(2,\)"):
        Treatment(item, Shelf(), states, seed=0).act(0)


def test_a_donor_without_the_carriers_arrays_is_refused() -> None:
    states = {DONOR.id: {"recurrent/h": np.zeros(2)}}
    item = Transplant(carrier="recurrent", donor=DONOR, mode="clamp")
    with pytest.raises(RecordError, match=r"holds \['h'\], the recipient's \['c', 'h'\]"):
        Treatment(item, Shelf(), states, seed=0).act(0)


def test_what_is_held_survives_a_checkpoint() -> None:
    shelf = Shelf()
    item = Freeze(carrier="recurrent", at=1)
    first = Treatment(item, shelf, {}, seed=0)
    first.act(0)
    shelf.held["recurrent"]["h"] += 1.0
    first.act(1)
    second = Treatment(item, Shelf(), {}, seed=0)
    second.load(first.save())
    assert bit_equal(second.save(), {"h": np.array([2.0, -1.0]), "c": np.array([[3.0]])})


def test_zeros_keep_type_and_shape_and_leave_the_argument_alone() -> None:
    content = {"a": np.ones((2, 3), np.float32), "n": np.array(7)}
    blank = zeros_like_content(content)
    assert [(a.dtype.name, a.shape) for a in blank.values()] == [("float32", (2, 3)), ("int64", ())]
    assert not any(array.any() for array in blank.values())
    assert content["n"] == 7


def test_same_is_to_the_bit() -> None:
    assert bit_equal({"a": np.array([0.0])}, {"a": np.array([0.0])})
    assert not bit_equal({"a": np.array([0.0])}, {"a": np.array([-0.0])})
    assert not bit_equal({"a": np.zeros(1)}, {"b": np.zeros(1)})
    assert not bit_equal({"a": np.zeros((1, 2))}, {"a": np.zeros((2, 1))})
