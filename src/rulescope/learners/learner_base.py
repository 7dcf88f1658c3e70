"""The base of every learner configuration: what a learner declares about itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from msgspec import Meta
from msgspec.structs import replace

from rulescope.core.errors import nearest
from rulescope.core.structs import Decay, Fraction, Frozen, NonNegative

HISTORY = "recurrent"
"""The carrier that holds the learning history, in any rule; audits act on it."""


class RunShape(NamedTuple):
    """Length of a run and size of its rollouts, as in :class:`~rulescope.run_spec.RunSpec`."""

    lanes: int = 2
    steps: int = 29
    iterations: int = 2000
    log_every: int = 20


class ReplayShape(NamedTuple):
    """Size of a first-in-first-out replay."""

    capacity: int
    """Entries kept."""
    per_iteration: int
    """Entries added in one iteration."""
    observations: int
    """Observations in one entry."""
    overhead: int
    """Bytes stored beside each observation, about."""


class ReturnScaling(Frozen, frozen=True):
    """Return-based scaling of TD errors, by Schaul et al. (2021): divide them by ``sigma``.

    ``sigma^2 = Var[R] + Var[Gamma] E[G^2]``, where R is the reward of an interaction, Gamma the
    discount after it (0 at an episode's end) and G the sum of an episode's rewards. All three are
    statistics of the whole lifetime, in the carrier ``scaling``.
    """

    floor: NonNegative = 0.01
    """The least sigma; 0 for none."""
    floor_unit: Literal["fixed", "reward"] = "fixed"
    """Unit of the floor: 1, or the largest absolute reward so far. With ``reward`` all of sigma is
    proportional to the rewards."""


class UnitReplacement(Frozen, frozen=True):
    """Continual Backprop, by Dohare et al. (2024): replace hidden units of little utility.

    After every step of the optimiser, in each hidden layer. Ages and utilities of the units are the
    carrier ``units``.
    """

    rate: Fraction = 1e-4
    """Share of the mature units of a layer that is replaced at each step. Where that is less than
    one unit, one is replaced with that probability."""
    maturity: Annotated[int, Meta(ge=0)] = 100
    """Steps of the optimiser in which a new unit is not replaced. The authors advise 100 to 10,000
    and use 10,000 of several million; a lifetime has some thousand steps here, of which a hundred
    is also the memory of the utility."""
    decay: Decay = 0.99
    """Of the running mean of utilities, at each step."""
    utility: Literal["contribution", "random"] = "contribution"
    """``contribution``: mean size of a unit's activation times that of its outgoing weights.
    ``random``: which mature units are replaced is left to chance, as a control."""
    initial: Literal["lecun", "network"] = "lecun"
    """Range of new incoming weights: the square root of 3 over their number, as in the authors'
    experiments, or of 1 over it, as in the initial networks here."""


class LearnerBase(Frozen, frozen=True):
    """The properties of a learner that are known without building it.

    Subclasses override what differs. Nothing here is a field, so nothing here is part of a run's
    id.
    """

    CARRIERS: ClassVar[tuple[str, ...]] = ()
    """Names of the parts of its persistent state, those of options that are off left out."""
    builds: ClassVar[str] = ""
    """Module and class of a baseline, such as ``ppo:PPOLearner``. The class is called with the
    configuration, the shape of observations, the number of actions, the seed and the keyword
    ``device``; if :attr:`scheduled`, also with the keyword ``interactions``."""
    takes_setup: ClassVar[bool] = False
    """Whether that class is called with one :class:`~rulescope.learners.plugin_rule.Setup` instead,
    as an :class:`~rulescope.learners.update_rule.UpdateRule` is; its ``options`` are the
    configuration, and its ``rule`` the weights that the field ``rule`` of the configuration names,
    if it has one."""
    usual_shape: ClassVar[RunShape] = RunShape()
    """The shape of a run where nothing else is asked for."""
    scheduled: ClassVar[bool] = True
    """Whether what it does in an iteration may depend on the length of the whole run. A learner
    that never does shares iterations with longer and shorter runs."""
    stepwise: ClassVar[bool] = False
    """Whether an intervention can act after each step of the optimiser."""
    network_copies: ClassVar[int] = 4
    """Arrays as large as the network in a checkpoint: parameters, target and two moments."""
    outputs: ClassVar[int] = 20
    """Outputs of the network, about."""
    BOOTSTRAPS: ClassVar[bool] = False
    """Whether it can estimate the value of an episode that was cut off."""

    @property
    def bootstraps(self) -> bool:
        """Whether it can estimate the value of an episode that was cut off, with its options."""
        return self.BOOTSTRAPS

    @property
    def kind(self) -> str:
        """The name of the learner in a specification."""
        return str(self.__struct_config__.tag)

    @property
    def carrier_names(self) -> tuple[str, ...]:
        """Names of the parts of its persistent state, those of its options included."""
        return self.CARRIERS

    @property
    def history(self) -> tuple[str, ...]:
        """The carriers that hold the learning history."""
        return tuple(name for name in self.carrier_names if name == HISTORY)

    def first_update(self, lanes: int, steps: int) -> int:  # noqa: ARG002
        """Return the iteration in which the parameters are first updated."""
        return 1

    def replay(self, lanes: int, steps: int) -> ReplayShape | None:  # noqa: ARG002
        """Return the size of the replay, or None if the learner has none."""
        return None

    def workspace(self, lanes: int, steps: int) -> int:
        """Return the bytes that an update needs for intermediate results, about."""
        return 10_000 * lanes * steps

    def problems(self, lanes: int, steps: int) -> Iterator[str]:  # noqa: ARG002
        """Yield what is wrong with the configuration for such rollouts, the key first."""
        yield from ()

    def missing_carrier(self, name: str) -> str:
        """Return the message for a carrier ``name`` that the learner does not have."""
        return f"no carrier {name!r}{nearest(name, self.carrier_names)}"

    def for_minatar(self, game: str) -> Self:  # noqa: ARG002
        """Return the configuration for a MinAtar game: a torso for its channels."""
        agent = getattr(self, "agent", None)
        return self if agent is None else replace(self, agent=replace(agent, torso="channel"))


def minibatch_problems(minibatches: int, interactions: int) -> Iterator[str]:
    """Yield the problem of having more ``minibatches`` than ``interactions`` per iteration."""
    if minibatches > interactions:
        yield f"minibatches: {minibatches} is more than an iteration has ({interactions})"
