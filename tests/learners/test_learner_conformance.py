"""The conformance test passes what keeps the contract and names the clause that is broken."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from learners.small import CHANNEL_SIZES, RULE, small_disco
from rulescope import learners
from rulescope.core import arrays, seeds
from rulescope.core.arrays import Arrays
from rulescope.learners.disco.disco_learner import DiscoLearner
from rulescope.learners.disco_config import AGENTS, Disco
from rulescope.learners.learner import Carrier, Choice, Learner, Rollout
from rulescope.learners.learner_conformance import check_learner
from rulescope.rules.rule_weights import RuleWeights, load

STEPS = 5
pytestmark = pytest.mark.usefixtures("deterministic")


def disco(config: Disco, shape: tuple[int, ...] = (4, 4)) -> Callable[[], Learner]:
    return lambda: learners.make(config, shape, 3, STEPS, seed=1)


@pytest.mark.parametrize("bundle", AGENTS)
def test_disco_conforms(bundle: str) -> None:
    check_learner(disco(small_disco(bundle, capacity=8)), (4, 4), 3, steps=STEPS)


def test_disco_with_channels_conforms() -> None:
    config = small_disco(agent=CHANNEL_SIZES, capacity=8)
    check_learner(disco(config, (2, 4, 4)), (2, 4, 4), 3, steps=STEPS, rollouts=4)


def test_disco_conforms_with_every_available_rule(rule: str) -> None:
    config = small_disco(rule=rule, capacity=6)
    check_learner(disco(config), (4, 4), 3, steps=STEPS, lanes=3, rollouts=4, seed=9)


def test_disco_conforms_before_it_has_enough_to_learn_from() -> None:
    check_learner(disco(small_disco(batch=16)), (4, 4), 3, steps=STEPS, rollouts=3)


class Sarsa(Learner):
    """A linear learner without a rule, small enough to be right by inspection."""

    metrics = ("error",)

    def __init__(self) -> None:
        self.table = np.zeros((3, 4))
        self.count = np.zeros((), np.int64)
        self.streams = {"action": seeds.stream(0, "action")}
        self.carriers = {
            "params": Carrier(self.get_params, self.set_params),
            "count": Carrier(self.get_count, self.set_count),
        }

    def get_params(self) -> dict[str, NDArray[Any]]:
        return {"table": self.table.copy()}

    def set_params(self, content: Arrays) -> None:
        self.table = np.array(content["table"])

    def get_count(self) -> dict[str, NDArray[Any]]:
        return {"count": self.count.copy()}

    def set_count(self, content: Arrays) -> None:
        self.count = np.array(content["count"])

    def act(self, observation: NDArray[np.float32]) -> Choice:
        logits = (observation @ self.table.T).astype(np.float32)
        noise = self.streams["action"].gumbel(size=logits.shape)
        return Choice((logits + noise).argmax(axis=1), {"logits": logits})

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        error = 0.0
        for seen, action, reward in zip(
            rollout.observations[:-1], rollout.actions, rollout.rewards, strict=True
        ):
            for lane, chosen in enumerate(action):
                miss = reward[lane] - self.table[chosen] @ seen[lane]
                self.table[chosen] += 0.01 * miss * seen[lane]
                error += float(abs(miss))
        self.count = np.array(self.count + 1)
        return {"error": error} if measure else {}


def check(make: Callable[[], Learner]) -> None:
    check_learner(make, (4,), 3, steps=STEPS, rollouts=4)


def test_a_learner_without_a_rule_conforms() -> None:
    check(Sarsa)


class NoCarriers(Sarsa):
    def __init__(self) -> None:
        super().__init__()
        self.carriers = {}


class SlashInName(Sarsa):
    def __init__(self) -> None:
        super().__init__()
        self.carriers = {"a/b": Carrier(self.get_params, self.set_params)}


class CarrierCalledStream(Sarsa):
    def __init__(self) -> None:
        super().__init__()
        self.carriers = {"stream": Carrier(self.get_params, self.set_params)}


class LegacyStream(Sarsa):
    def __init__(self) -> None:
        super().__init__()
        self.streams = {"action": np.random}  # type: ignore[dict-item]


class ActionsOutOfRange(Sarsa):
    def act(self, observation: NDArray[np.float32]) -> Choice:
        choice = super().act(observation)
        return choice._replace(actions=choice.actions + 1)


class SmallActions(Sarsa):
    def act(self, observation: NDArray[np.float32]) -> Choice:
        choice = super().act(observation)
        return choice._replace(actions=choice.actions.astype(np.int8))


class OneActionForAll(Sarsa):
    def act(self, observation: NDArray[np.float32]) -> Choice:
        choice = super().act(observation)
        return choice._replace(actions=choice.actions[:1])


class DoubleBehaviour(Sarsa):
    def act(self, observation: NDArray[np.float32]) -> Choice:
        choice = super().act(observation)
        wide = {name: array.astype(np.float64) for name, array in choice.behaviour.items()}
        return choice._replace(behaviour=wide)  # type: ignore[arg-type]


class OwnChance(Sarsa):
    """Draws from a generator that is in no stream and was never seeded."""

    def __init__(self) -> None:
        super().__init__()
        self.table += np.random.default_rng().standard_normal(self.table.shape)


class MeasuringLearns(Sarsa):
    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        if measure:
            self.table = self.table * (1.0 + 1e-12)
        return super().learn(rollout, measure)


class MeasuringDrawsChance(Sarsa):
    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        if measure:
            self.streams["action"].random()
        return super().learn(rollout, measure)


class UnknownMetric(Sarsa):
    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        return super().learn(rollout, measure) | {"surprise": 1.0}


class MetricNotAFloat(Sarsa):
    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        super().learn(rollout, measure)
        return {"error": np.zeros(2)}  # type: ignore[dict-item]


class ActingLearns(Sarsa):
    def act(self, observation: NDArray[np.float32]) -> Choice:
        self.count = np.array(self.count + 1)
        return super().act(observation)


class WritesToObservations(Sarsa):
    def act(self, observation: NDArray[np.float32]) -> Choice:
        observation *= 2.0
        return super().act(observation)


class WritesToRollouts(Sarsa):
    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        rollout.rewards.clip(-1.0, 1.0, out=rollout.rewards)
        return super().learn(rollout, measure)


class GivesItsOwnMemory(Sarsa):
    def get_params(self) -> dict[str, NDArray[Any]]:
        return {"table": self.table}


class KeepsWhatItIsGiven(Sarsa):
    def set_params(self, content: Arrays) -> None:
        self.table = content["table"]


class RoundsWhenSet(Sarsa):
    def set_params(self, content: Arrays) -> None:
        self.table = np.array(content["table"]).astype(np.float32).astype(np.float64)


class NotAnArray(Sarsa):
    def get_count(self) -> dict[str, NDArray[Any]]:
        return {"count": int(self.count)}  # type: ignore[dict-item]


class SettingDisturbs(Sarsa):
    """Writing the same value back advances a random stream."""

    def set_count(self, content: Arrays) -> None:
        super().set_count(content)
        self.streams["action"].random()


class CannotBeZero(Sarsa):
    def set_params(self, content: Arrays) -> None:
        table = np.array(content["table"])
        self.table = table if table.any() else self.table


class HiddenState(Sarsa):
    """Carries something from one rollout to the next that is in no carrier."""

    def __init__(self) -> None:
        super().__init__()
        self.momentum = np.zeros_like(self.table)

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        before = self.table.copy()
        found = super().learn(rollout, measure)
        self.momentum = 0.5 * self.momentum + (self.table - before)
        self.table = before + self.momentum
        return found


class HiddenStream(Sarsa):
    """Draws from a generator that is seeded but in no stream."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = seeds.stream(0, "hidden")

    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        self.table = self.table + 0.01 * self.hidden.standard_normal(self.table.shape)
        return super().learn(rollout, measure)


class CannotLoad(Sarsa):
    def load(self, arrays: Arrays) -> None:
        super().load({name: array for name, array in arrays.items() if "table" not in name})


class DigestWithoutRule(Sarsa):
    def rule_digest(self) -> str | None:
        return "0" * 64


class WithRule(Sarsa):
    """A learner that has a rule, which it reads and leaves alone."""

    def __init__(self) -> None:
        super().__init__()
        self.rule: RuleWeights = load(RULE)
        self.eta = {name: array.copy() for name, array in self.rule.arrays.items()}

    def rule_digest(self) -> str | None:
        return arrays.digest(self.eta)


class ChangesItsRule(WithRule):
    def learn(self, rollout: Rollout, measure: bool) -> dict[str, float]:
        self.eta["lstm/linear/b"][0] += 1.0
        return super().learn(rollout, measure)


class NoDigest(WithRule):
    def rule_digest(self) -> str | None:
        return None


def test_a_learner_that_leaves_its_rule_alone_conforms() -> None:
    check(WithRule)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (NoCarriers, "[attributes] there are no carriers"),
        (SlashInName, "[attributes] 'a/b' is not a name without '/'"),
        (CarrierCalledStream, "[attributes] no carrier may be called 'stream'"),
        (LegacyStream, "[attributes] stream 'action' is <class 'module'>, no Generator"),
        (ActionsOutOfRange, "is not within 0 .. 2"),
        (SmallActions, "[actions] actions must be an array [2] of int64, are an array [2] of int8"),
        (OneActionForAll, "[actions] actions must be an array [2] of int64, are an array [1]"),
        (DoubleBehaviour, "[actions] behaviour 'logits' must be an array [2, ...] of float32"),
        (OwnChance, "[determinism] a second learner"),
        (MeasuringLearns, "[measure] a learner that is measured differs after rollout"),
        (MeasuringDrawsChance, "after rollout 0 in stream/action"),
        (UnknownMetric, "[measure] learn reported ['surprise'], which `metrics` does not name"),
        (MetricNotAFloat, "[measure] metric 'error' is <class 'numpy.ndarray'>, not a float"),
        (ActingLearns, "[purity] act changed carrier array count/count"),
        (WritesToObservations, "[purity] act or begin_episodes changed what it was given"),
        (WritesToRollouts, "[purity] learn changed the rollout's rewards"),
        (GivesItsOwnMemory, "[carriers] params: overwriting the arrays from get changed table"),
        (
            KeepsWhatItIsGiven,
            "[carriers] params: overwriting the arrays given to set changed table",
        ),
        (RoundsWhenSet, "[carriers] params: setting the arrays from get changed table"),
        (NotAnArray, "[carriers] count/count must be a numeric array, is <class 'int'>"),
        (SettingDisturbs, "[carriers] a learner whose carriers were read and written back"),
        (CannotBeZero, "[pin] params/table is not zero after it was set to zero"),
        (HiddenState, "[checkpoint] a new learner, loaded after"),
        (HiddenStream, "[checkpoint] a new learner, loaded after"),
        (CannotLoad, "[checkpoint] a new learner cannot load: KeyError('table')"),
        (DigestWithoutRule, "[rule] there is no rule, but rule_digest is"),
        (ChangesItsRule, "[rule] learning changed the rule's weights"),
        (NoDigest, "[rule] the initial rule_digest is not rule.content"),
    ],
)
def test_a_broken_learner_is_reported_with_its_fault(
    broken: Callable[[], Learner], message: str
) -> None:
    with pytest.raises(AssertionError, match=re.escape(message)):
        check(broken)


class LosesItsMoments(DiscoLearner):
    """Disco whose checkpoint lacks the optimiser's second moment."""

    def _set_moments(self, content: Arrays) -> None:
        super()._set_moments(content)
        self.state.moments.second.zero_()


class ActsFromAnOldCopy(DiscoLearner):
    """Disco whose acting policy does not see parameters that were set."""

    def _set_params(self, content: Arrays) -> None:
        params = torch.tensor(content["flat"])
        self.state = self.state._replace(params=params)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (LosesItsMoments, "[carriers] moments: setting the arrays from get changed second"),
        (ActsFromAnOldCopy, "[carriers] a learner whose carriers were read and written back"),
    ],
)
def test_a_broken_disco_learner_is_reported(broken: type[DiscoLearner], message: str) -> None:
    def make() -> Learner:
        return broken(small_disco(capacity=8), load(RULE), (4, 4), 3, STEPS, seed=1)

    with pytest.raises(AssertionError, match=re.escape(message)):
        check_learner(make, (4, 4), 3, steps=STEPS)
