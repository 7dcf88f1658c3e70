"""What the class of a plug-in declares: options, carriers, history, null weights."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from msgspec.structs import replace
from torch import Tensor

from plugin_packages import Site
from rulescope import learners, run_packages, run_spec
from rulescope.assays.subject import Subject, find_subject
from rulescope.core.errors import SpecError
from rulescope.envs.world_config import Argument
from rulescope.learners.baseline_config import NetworkSizes
from rulescope.learners.learner_base import LearnerBase
from rulescope.learners.learner_config import Plugin
from rulescope.learners.plugin_rule import pin_rule
from rulescope.learners.update_rule import Seen, State, UpdateRule
from rulescope.lifetime import Lifetime
from rulescope.run_spec import Freeze, Mode, Pin, PinSteps, RunSpec, Transplant

pytestmark = pytest.mark.usefixtures("site")

SMALL = NetworkSizes(hidden=(8, 8))

RULES = """
import numpy as np
import torch
from rulescope.core import seeds
from rulescope.core.structs import Frozen
from rulescope.learners.recurrent_rule import RecurrentRule
from rulescope.learners.update_rule import UpdateRule

class Stateless(UpdateRule):
    class Options(Frozen, frozen=True):
        alpha: float = 1.0
        beta: int = 2

    def loss(self, seen, state):
        return -(self.setup.options.alpha * seen.rewards * seen.chosen()).mean(), state

class Stepped(Stateless):
    STEPWISE = True
    MINIBATCHES = 3

    def start(self):
        return {"steps": torch.zeros(())}

    def loss(self, seen, state):
        loss, _ = super().loss(seen, state)
        return loss * (1.0 + state["steps"]), {"steps": state["steps"] + 1.0}

class Moved(Stateless):
    HISTORY = ("moments",)

class Misplaced(Stateless):
    HISTORY = ("momnets",)

class Silent(Stateless):
    def start(self):
        return {}

class Remembering(RecurrentRule):
    MEMORY = 4

    def loss(self, seen, state):
        return -(seen.rewards * seen.chosen()).mean(), state

class Weighted(UpdateRule):
    def __init__(self, setup):
        own = {"scale": np.array(0.5, np.float32)}
        self.scale = np.array((own if setup.rule is None else setup.rule.arrays)["scale"])
        super().__init__(setup)

    def weights(self):
        return {"scale": self.scale}

    @classmethod
    def null(cls, seed):
        return {"scale": seeds.stream(seed, "null").standard_normal(())}

    def loss(self, seen, state):
        return -(float(self.scale) * seen.rewards * seen.chosen()).mean(), state

class Wide(Weighted):
    @classmethod
    def null(cls, seed):
        return {"scale": np.zeros(2)}

class Deaf(Weighted):
    def weights(self):
        return {"scale": np.array(0.5, np.float32)}

class Unfit(Stateless):
    Options = dict
"""


def pinned(site: Site, attribute: str, **options: Any) -> Plugin:
    """Install one of :data:`RULES` and return its learner with a small network."""
    site.rule(RULES, "mine", attribute)
    return replace(pin_rule("mine", options), agent=SMALL)


def short(learner: Plugin, **changes: Any) -> RunSpec:
    return replace(RunSpec(learner=learner, iterations=4, log_every=2, steps=7), **changes)


def completed(spec: RunSpec) -> Lifetime:
    life = Lifetime(spec)
    life.run()
    return life


def test_options_are_part_of_the_id_unless_they_are_the_defaults(site: Site) -> None:
    plain = pinned(site, "Stateless")
    assert b"options" not in run_spec.canonical(short(plain))
    same = replace(pin_rule("mine", {"alpha": "1", "beta": 2}), agent=SMALL)
    other = replace(pin_rule("mine", {"alpha": "2"}), agent=SMALL)
    assert short(same).id == short(plain).id != short(other).id
    again = run_spec.decode(run_spec.canonical(short(other)))
    assert again == short(other)
    life = completed(short(other))
    assert life.learner.setup.options.alpha == 2.0  # type: ignore[attr-defined]
    logs = [completed(short(each)).log()["loss"] for each in (plain, other)]
    assert logs[1][0] == pytest.approx(2.0 * logs[0][0], rel=0.5)
    assert not np.array_equal(logs[0], logs[1])


def test_a_specification_with_an_unknown_option_is_refused_before_anything_runs(
    site: Site,
) -> None:
    odd = replace(
        pinned(site, "Stateless", alpha=2.0), options=(Argument(name="alhpa", value=2.0),)
    )
    with pytest.raises(SpecError, match=r"option 'alhpa': .*nearest: 'alpha'; valid: alpha, beta"):
        run_packages.require_plugins([short(odd)])
    twice = replace(odd, options=(Argument(name="beta", value=3),) * 2)
    with pytest.raises(SpecError, match=r"learner.options: 'beta' is named twice"):
        Lifetime(short(twice))


def test_a_rule_is_given_the_lanes_of_the_run(site: Site) -> None:
    life = Lifetime(short(pinned(site, "Stateless"), lanes=5))
    assert life.learner.setup.lanes == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("attribute", "carriers", "history"),
    [
        ("Stateless", ("moments", "params"), ()),
        ("Stepped", ("recurrent", "moments", "params"), ("recurrent",)),
        ("Moved", ("moments", "params"), ("moments",)),
        ("Remembering", ("moments", "params", "agent_state"), ()),
    ],
)
def test_carriers_and_history_are_known_without_a_learner(
    attribute: str, carriers: tuple[str, ...], history: tuple[str, ...], site: Site
) -> None:
    found = pinned(site, attribute)
    assert found.carriers == carriers
    assert found.history == history
    assert (b"history_carriers" in run_spec.canonical(short(found))) == (attribute == "Moved")
    completed(short(found, evaluation=run_spec.Evaluation(lanes=3, steps=4)))


def test_a_rule_whose_start_returns_nothing_is_told_what_to_do(site: Site) -> None:
    with pytest.raises(SpecError, match=r"start\(\) returned no state, so leave it out"):
        Lifetime(short(pinned(site, "Silent")))


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("Misplaced", "HISTORY: no carrier 'momnets'; nearest: 'moments'"),
        ("Unfit", "Options must be a class derived from rulescope.core.structs.Frozen"),
    ],
)
def test_a_class_that_declares_the_impossible_is_refused(
    attribute: str, message: str, site: Site
) -> None:
    with pytest.raises(SpecError, match=message):
        pinned(site, attribute)


def test_a_step_can_be_pinned_only_where_the_class_allows_it(site: Site) -> None:
    every = (PinSteps(carrier="recurrent"),)
    stepped = pinned(site, "Stepped")
    logs = []
    for given in ((), (Pin(carrier="recurrent"),), every):
        life = completed(short(stepped, interventions=given))
        assert bool(life.learner.carriers["recurrent"].get()["steps"]) == (given == ())
        logs.append(life.log()["loss"])
    assert len({tuple(log) for log in logs}) == 3
    whole = replace(stepped, stepwise=False)
    with pytest.raises(SpecError, match="can be pinned after iterations only"):
        run_spec.checked(short(whole, interventions=every))


def test_interventions_act_on_the_declared_history(site: Site) -> None:
    subject = Subject(pinned(site, "Moved"))
    found = subject.act_on_history((Pin(carrier="recurrent"), Freeze(carrier="recurrent", at=2)))
    assert found == (Freeze(carrier="moments", at=0), Freeze(carrier="moments", at=2))
    assert subject.kept == ("moments",)
    usual = Subject(replace(subject.learner, history_carriers=()))
    assert usual.act_on_history(found) == found


def test_a_null_rule_has_random_weights_of_the_same_shapes(site: Site) -> None:
    own = pinned(site, "Weighted")
    assert find_subject("mine")[0].null == "null:0"
    null = find_subject("mine")[0].null_learner()
    assert isinstance(null, Plugin)
    assert null.null_seed == 0
    digests = set()
    for learner in (own, replace(null, agent=SMALL), replace(null, agent=SMALL, null_seed=1)):
        record = completed(short(learner)).record()
        assert record.manifest.rule is not None
        digests.add(record.manifest.rule.digest)
        assert record.manifest.rule.sha256 == own.source
    assert len(digests) == 3


def test_a_rule_that_makes_no_null_weights_has_no_null_arm(site: Site) -> None:
    learner = pinned(site, "Stateless")
    subject = find_subject("mine")[0]
    assert subject.null is None
    with pytest.raises(SpecError, match=r"'mine' does not define null\(seed\)"):
        subject.null_learner()
    with pytest.raises(SpecError, match=r"learner.null_seed: .*does not define null\(seed\)"):
        run_packages.require_plugins([short(replace(learner, null_seed=0))])


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("Wide", r"null\(0\) must have the shapes \{'scale': \[\]\}, not \{'scale': \[2\]\}"),
        ("Deaf", r"weights\(\) must return setup.rule.arrays"),
    ],
)
def test_null_weights_that_are_wrong_or_not_used_are_refused(
    attribute: str, message: str, site: Site
) -> None:
    with pytest.raises(SpecError, match=message):
        Lifetime(short(replace(pinned(site, attribute), null_seed=0)))


def test_the_name_of_a_subject_holds_its_options(site: Site) -> None:
    pinned(site, "Stateless")
    subject, _ = find_subject("mine:beta=3,alpha=0.5@params")
    assert subject.name == subject.rule == "mine:alpha=0.5,beta=3@params"
    assert find_subject(subject.name)[0] == subject
    assert subject.folder == "mine-alpha-0.5-beta-3-params"
    with pytest.raises(SpecError, match=r"option 'gamma'.*valid: alpha, beta"):
        find_subject("mine:gamma=3")
    with pytest.raises(SpecError, match="'disco103' has no options"):
        find_subject("disco103:alpha=1")


GROWING = """
import numpy as np
from rulescope.core import seeds
from rulescope.learners.learner import Carrier, Choice, Learner

class Hoarding(Learner):
    CARRIERS = ("rewards",)
    HISTORY = ("rewards",)
    growing_carriers = ("rewards",)
    metrics = ("stored",)

    def __init__(self, setup):
        self.actions, self.rewards = setup.actions, np.zeros(0, np.float32)
        self.streams = {"action": seeds.stream(setup.seed, "action")}
        self.carriers = {"rewards": Carrier(lambda: {"seen": self.rewards.copy()}, self._set)}

    def _set(self, content):
        self.rewards = np.array(content["seen"], np.float32)

    def act(self, observation):
        return Choice(self.streams["action"].integers(self.actions, size=len(observation)), {})

    def learn(self, rollout, measure):
        self.rewards = np.append(self.rewards, rollout.rewards.ravel())
        return {"stored": float(len(self.rewards))} if measure else {}
"""


@pytest.mark.parametrize(("mode", "stored"), [("natural", [98.0, 126.0]), ("clamp", [84.0, 84.0])])
def test_a_history_that_grows_can_be_pinned_and_transplanted(
    mode: Mode, stored: list[float], site: Site
) -> None:
    site.rule(GROWING, "mine", "Hoarding")
    subject = find_subject("mine")[0]
    assert subject.history == ("rewards",)
    plain = RunSpec(learner=subject.learner, iterations=4, log_every=2, steps=7)
    pinned = replace(plain, interventions=subject.act_on_history((Pin(carrier="recurrent"),)))
    assert completed(pinned).log()["stored"].tolist() == [14.0, 14.0]
    donor = replace(plain, seed=1, iterations=5, keep=subject.kept)
    state = completed(donor).record().state
    assert len(state["rewards/seen"]) == 70
    given = (Transplant(carrier="recurrent", donor=donor, mode=mode),)
    recipient = replace(plain, interventions=subject.act_on_history(given))
    life = Lifetime(recipient, donors={donor.id: state})
    life.run()
    assert life.log()["stored"].tolist() == stored


class MadeUp(LearnerBase, frozen=True, tag="made-up", tag_field="kind"):
    """The configuration of a learner of this package that is an update rule."""

    builds: ClassVar[str] = "made_up:Built"
    takes_setup: ClassVar[bool] = True

    rule: str = "open-random:3"
    learning_rate: float = 0.25
    agent: NetworkSizes = SMALL


def test_a_learner_of_this_package_may_be_an_update_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    class Built(UpdateRule):
        def loss(self, seen: Seen, state: State) -> tuple[Tensor, State]:
            return -(seen.rewards * seen.chosen()).mean(), state

    module = ModuleType("rulescope.learners.made_up")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    vars(module)["Built"] = Built
    config: Any = MadeUp()
    made = learners.make(config, (3, 3), 2, 7, seed=4, iterations=9, lanes=5)
    assert isinstance(made, Built)
    setup = made.setup
    assert setup.options is config
    assert (setup.lanes, setup.iterations, setup.learning_rate, setup.agent) == (5, 9, 0.25, SMALL)
    assert made.rule is not None
    assert made.rule is setup.rule
    assert made.rule.name == "open-random:3"
    assert made.rule_digest() == made.rule.content
    assert made.optimiser._learning_rate == 0.25
