"""Every intervention keeps its contract in real lifetimes, and what breaks it is caught."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from learners.small import small_disco, small_spec
from rulescope import intervention_conformance, interventions
from rulescope.core.arrays import Arrays
from rulescope.core.errors import SpecError
from rulescope.intervention_conformance import check_intervention
from rulescope.learners.disco_config import Disco
from rulescope.lifetime import Lifetime
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

ITERATIONS = 8


def name_of(item: object) -> str | None:
    """Return what tells an intervention from others, without its donors."""
    if not isinstance(item, Intervention):
        return None
    fields = (getattr(item, name, None) for name in ("which", "components", "at", "mode"))
    return "-".join(str(part) for part in (item.operation, *fields) if part is not None)


def short(**changes: Any) -> RunSpec:
    return small_spec(iterations=ITERATIONS, log_every=4, keep=Disco.CARRIERS, **changes)


DONORS = tuple(
    short(seed=seed, world_seed=1000 + seed, scale=scale)
    for seed, scale in ((0, 0.1), (1, 0.1), (2, 10.0))
)


@cache
def states() -> dict[str, Arrays]:
    found = {}
    for donor in DONORS:
        life = Lifetime(donor)
        life.run()
        found[donor.id] = life.record().state
    return found


def ablation(which: Any, mode: Any, carrier: str = "recurrent", components: int = 1) -> Ablate:
    return Ablate(
        carrier=carrier, donors=DONORS, components=components, which=which, at=3, mode=mode
    )


def every(carrier: str) -> list[Intervention]:
    return [
        Pin(carrier=carrier),
        Freeze(carrier=carrier, at=0),
        Freeze(carrier=carrier, at=4),
        Hold(carrier=carrier),
        Reset(carrier=carrier, at=4),
        Transplant(carrier=carrier, donor=DONORS[2], mode="natural"),
        Transplant(carrier=carrier, donor=DONORS[2], mode="clamp"),
        Permute(carrier=carrier, at=3, mode="natural"),
        Permute(carrier=carrier, at=3, mode="clamp"),
        ablation("principal", "clamp", carrier),
        ablation("complement", "natural", carrier),
        Placebo(carrier=carrier),
    ]


RANDOM = [
    RandomState(carrier="recurrent", donors=DONORS, mode=mode) for mode in ("natural", "clamp")
]


ABLATIONS = [
    ablation("principal", "natural", components=2),
    ablation("complement", "clamp", components=2),
    ablation("random", "natural"),
    ablation("random", "clamp"),
]


@pytest.mark.parametrize("item", [*every("recurrent"), *RANDOM, *ABLATIONS], ids=name_of)
def test_the_recurrent_state_can_be_treated_in_every_way(item: Intervention) -> None:
    check_intervention(short(interventions=(item,)), states())


@pytest.mark.parametrize("carrier", [name for name in Disco.CARRIERS if name != "recurrent"])
@pytest.mark.parametrize("number", range(len(every(""))))
def test_every_carrier_can_be_treated(carrier: str, number: int) -> None:
    item = every(carrier)[number]
    if carrier in ("replay", "moments") and isinstance(item, Pin | Permute | Ablate):
        # Zeros, shuffled columns and mixtures are no trajectories: such a learner would diverge.
        item = Reset(carrier=carrier, at=5)
    check_intervention(short(interventions=(item,)), states())


def test_natural_transfer_leaves_the_donor_with_the_first_update() -> None:
    item = Transplant(carrier="recurrent", donor=DONORS[2], mode="natural")
    life = Lifetime(short(interventions=(item,)), donors=states())
    life.run(until=2)  # the second iteration is the first to learn
    donor = states()[DONORS[2].id]["recurrent/h"]
    assert (life.learner.carriers["recurrent"].get()["h"] != donor).any()


def test_one_intervention_at_a_time() -> None:
    with pytest.raises(SpecError, match="give one, not 0; one is checked at a time"):
        check_intervention(short())


def breaking(monkeypatch: pytest.MonkeyPatch, item: Intervention, change: Any) -> str:
    """Return what the check says when every act of an intervention is followed by ``change``."""
    act = interventions.Treatment.act

    def faulty(self: interventions.Treatment, iteration: int) -> None:
        act(self, iteration)
        change(self, iteration)

    monkeypatch.setattr(interventions.Treatment, "act", faulty)
    with pytest.raises(AssertionError) as caught:
        check_intervention(short(interventions=(item,)), states())
    return str(caught.value)


def test_touching_another_carrier_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    learners: list[Any] = []
    start = interventions.Treatment.__init__

    def remember(self: Any, item: Any, learner: Any, *rest: Any) -> None:
        learners.append(learner)
        start(self, item, learner, *rest)

    monkeypatch.setattr(interventions.Treatment, "__init__", remember)

    def meddle(_: Any, iteration: int) -> None:
        carrier = learners[-1].carriers["averages"]
        carrier.set({name: array + iteration for name, array in carrier.get().items()})

    message = breaking(monkeypatch, Pin(carrier="recurrent"), meddle)
    assert message.startswith("[carrier] after iteration 1, averages/")


CLAMP = Transplant(carrier="recurrent", donor=DONORS[0], mode="clamp")
NATURAL = Transplant(carrier="recurrent", donor=DONORS[0], mode="natural")


@pytest.mark.parametrize(
    ("item", "when", "message"),
    [
        (Pin(carrier="recurrent"), 3, "[operation] recurrent is not zero after iteration 3"),
        (Freeze(carrier="recurrent", at=2), 5, "[operation] recurrent is not restored"),
        (Freeze(carrier="recurrent", at=2), 2, "[operation] recurrent changed when captured"),
        (Freeze(carrier="recurrent", at=2), 1, "[operation] recurrent was touched"),
        (Hold(carrier="averages"), 6, "[operation] averages is not restored"),
        (Reset(carrier="recurrent", at=4), 4, "[operation] recurrent is not the initial value"),
        (Reset(carrier="recurrent", at=4), 5, "[operation] recurrent was touched"),
        (CLAMP, 0, "[operation] recurrent is not the donor's"),
        (CLAMP, 7, "[operation] recurrent is not restored"),
        (NATURAL, 7, "[operation] recurrent was touched after iteration 7"),
        (Permute(carrier="recurrent", at=3, mode="natural"), 3, "[operation] recurrent has other"),
        (RANDOM[0], 2, "[operation] recurrent was touched"),
        (ABLATIONS[0], 3, "[operation] recurrent moved across directions after iteration 3"),
        (ABLATIONS[0], 4, "[operation] recurrent was touched after iteration 4"),
        (ABLATIONS[1], 6, "[operation] recurrent moved across directions after iteration 6"),
        (ABLATIONS[3], 2, "[operation] recurrent was touched after iteration 2"),
        (ABLATIONS[3], 5, "[operation] recurrent moved across directions after iteration 5"),
        (Placebo(carrier="recurrent"), 2, "[operation] recurrent was touched"),
    ],
    ids=name_of,
)
def test_a_wrong_content_is_caught(
    monkeypatch: pytest.MonkeyPatch, item: Intervention, when: int, message: str
) -> None:
    def spoil(treatment: Any, iteration: int) -> None:
        if iteration == when:
            carrier = treatment._carrier
            carrier.set({name: array + 0.5 for name, array in carrier.get().items()})

    assert breaking(monkeypatch, item, spoil).startswith(message)


@pytest.mark.parametrize("which", ["principal", "random", "complement"])
def test_leaving_something_along_the_directions_is_caught(
    monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """Half of an ablation moves nothing that it should not, and yet is none."""
    whole = interventions.ablate_directions

    def half(content: Any, *rest: Any, **options: Any) -> Any:
        left = whole(content, *rest, **options)
        return {name: (content[name] + left[name]) / 2 for name in left}

    monkeypatch.setattr(interventions, "ablate_directions", half)
    with pytest.raises(AssertionError, match=r"^\[operation\] recurrent (still|moved across)"):
        check_intervention(short(interventions=(ablation(which, "natural"),)), states())


def test_forgetting_what_is_held_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interventions.Treatment, "save", lambda _: {})
    with pytest.raises(AssertionError, match=r"^\[resume\] paused after iteration"):
        check_intervention(short(interventions=(Freeze(carrier="recurrent", at=2),)))


@pytest.mark.parametrize("item", [RANDOM[0], ABLATIONS[2]], ids=name_of)
def test_chance_is_caught(monkeypatch: pytest.MonkeyPatch, item: Intervention) -> None:
    rng = np.random.default_rng()
    monkeypatch.setattr(interventions.Treatment, "_stream", lambda _: rng)
    with pytest.raises(AssertionError, match=r"^\[determinism\]"):
        check_intervention(short(interventions=(item,)), states())


def test_a_changed_rule_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = short(interventions=(Pin(carrier="recurrent"),), learner=small_disco())
    life = Lifetime(spec)
    monkeypatch.setattr(life.learner, "rule_digest", lambda: "other")
    with pytest.raises(AssertionError, match=r"^\[rule\]"):
        intervention_conformance.check_rule(life)
