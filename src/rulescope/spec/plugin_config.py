"""The configuration of a learner whose rule another package provides."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from rulescope.core.structs import Frozen
from rulescope.spec.baseline_config import NetworkSizes, Rate

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
CarrierName = Annotated[str, Meta(pattern=r"^[^/]+\Z")]

HISTORY = "recurrent"
"""The carrier that is, in any rule, what it remembers of the lifetime: what an audit acts on."""
CARRIERS = (HISTORY, "moments", "params")
"""Carriers of a rule that is an :class:`~rulescope.learners.update_rule.UpdateRule`."""
LEARNING_RATE = 1e-3
"""Of a rule that does not say otherwise."""


class Plugin(Frozen, frozen=True, tag="plugin", tag_field="kind"):
    """A learner whose rule is a plug-in; ``rulescope.learners.plugin_rule.pin_rule`` makes one.

    Everything here is data, so that a record can be read where the rule is not installed.
    """

    rule: Annotated[str, Meta(min_length=1)]
    """Name of an entry point of the group ``rulescope.rules``."""
    source: Sha256
    """Of the package that it comes from: an edited rule is another rule, and another run."""
    carriers: Annotated[tuple[CarrierName, ...], Meta(min_length=1)] = CARRIERS
    """What the learner carries, by name."""
    agent: NetworkSizes = NetworkSizes()
    """The network that a rule without one of its own is given."""
    learning_rate: Rate = LEARNING_RATE

    @property
    def CARRIERS(self) -> tuple[str, ...]:  # noqa: N802  # what other learners call a constant
        """The carriers, under the name that they have in all learners."""
        return self.carriers
