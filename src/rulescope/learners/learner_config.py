"""All learner configurations: that of a plug-in, the union, the named ones of the command line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec import Meta

from rulescope.core.structs import Rate, Sha256
from rulescope.envs.world_config import Argument, EnvironmentSpec, MinAtar
from rulescope.learners.baseline_config import VARIANTS as BASELINES
from rulescope.learners.baseline_config import Baseline, NetworkSizes
from rulescope.learners.disco_config import VARIANTS as DISCO
from rulescope.learners.disco_config import Disco
from rulescope.learners.further_config import VARIANTS as FURTHER
from rulescope.learners.further_config import Further
from rulescope.learners.learner_base import HISTORY, LearnerBase
from rulescope.learners.open_config import VARIANTS as OPEN
from rulescope.learners.open_config import Open, OpenAdam

CarrierName = Annotated[str, Meta(pattern=r"^[^/]+\Z")]

STATELESS = ("moments", "params")
"""Carriers of an :class:`~rulescope.learners.update_rule.UpdateRule` without a state."""
CARRIERS = (HISTORY, *STATELESS)
"""Carriers of one with a state."""
LEARNING_RATE = 1e-3
"""Of a rule that declares none."""


class Plugin(LearnerBase, frozen=True, tag="plugin", tag_field="kind"):
    """A learner whose rule is a plug-in; ``rulescope.learners.plugin_rule.pin_rule`` makes one.

    Everything here is data, so that a record can be read where the rule is not installed.
    """

    rule: Annotated[str, Meta(min_length=1)]
    """Name of an entry point of the group ``rulescope.rules``."""
    source: Sha256
    """Hash of its package's source: an edited rule is another rule, and another run."""
    carriers: Annotated[tuple[CarrierName, ...], Meta(min_length=1)] = CARRIERS
    """Names of the parts of the learner's persistent state."""
    BOOTSTRAPS: ClassVar[bool] = True
    """Decided by the rule itself: :attr:`rulescope.learners.learner.Learner.bootstraps`."""
    agent: NetworkSizes = NetworkSizes()
    """The network of a rule that does not bring its own."""
    learning_rate: Rate = LEARNING_RATE
    options: tuple[Argument, ...] = ()
    """Values of the rule's options that are not their default, in the order of its class."""
    history_carriers: tuple[CarrierName, ...] | None = None
    """Carriers that count as its history; None: the carrier ``recurrent``, if there is one."""
    stepwise: bool = False  # type: ignore[misc]
    """Whether an intervention can act after each step of the optimiser."""
    null_seed: Annotated[int, Meta(ge=0, le=2**32 - 1)] | None = None
    """Seed of random weights in place of the rule's own; None: its own."""

    @property
    def CARRIERS(self) -> tuple[str, ...]:  # type: ignore[override]  # noqa: N802
        """The carriers, under the name that they have in all learners."""
        return self.carriers

    def problems(self, lanes: int, steps: int) -> Iterator[str]:  # noqa: ARG002
        """Yield what is wrong with the configuration for such rollouts, the key first."""
        names = self.carriers
        if len(set(names)) < len(names):
            yield f"carriers: {max(names, key=names.count)!r} is named twice"
        given = [each.name for each in self.options]
        if len(set(given)) < len(given):
            yield f"options: {max(given, key=given.count)!r} is named twice"
        for name in self.history_carriers or ():
            if name not in names:
                yield f"history_carriers: {super().missing_carrier(name)}"

    @property
    def history(self) -> tuple[str, ...]:
        """The carriers that hold the learning history."""
        return super().history if self.history_carriers is None else self.history_carriers

    def missing_carrier(self, name: str) -> str:
        """Return the message for a carrier ``name`` that the learner does not have."""
        message = super().missing_carrier(name)
        if name == HISTORY:
            message += f" (the rule {self.rule!r} has no history under that name to intervene on)"
        return message


LearnerSpec = Disco | Baseline | Open | OpenAdam | Plugin | Further

VARIANTS: dict[str, LearnerSpec] = {**DISCO, **BASELINES, **OPEN, **FURTHER}
"""Learners of the published assays, by the names of the command line."""


def adapt_to_world(learner: LearnerSpec, environment: EnvironmentSpec) -> LearnerSpec:
    """Return ``learner`` with the settings that it has in this world."""
    if isinstance(environment, MinAtar):
        return learner.for_minatar(environment.game)
    return learner
