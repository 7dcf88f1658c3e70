"""Which agent each published cohort is taken to have been made with.

The code of the published audit was never released. It names the matrices that were run with
reference indexing; the others were run earlier. Which agent made which is an inference from a few
printed numbers, applied to whole cohorts; the assay ``agent-identity`` tests it. An assay is run
with the agent of its cohort unless ``--agent`` names another.
"""

from __future__ import annotations

from typing import NamedTuple


class Cohort(NamedTuple):
    """A group of published lifetimes that one agent is taken to have made."""

    agent: str
    """A name of :data:`~rulescope.learners.disco_config.AGENTS`; empty without a Disco learner."""
    evidence: str
    """Why this agent, in one sentence."""


REFERENCE_INDEXED = Cohort(
    "published",
    "The audit lists this matrix as reference-indexed, or reports it with one that is. One cell of "
    "that cohort, E1 pinned at reward scale 1,000, leaves no room for lifetimes that fail, as "
    "chained actions do; `rulescope run agent-identity` tests the choice.",
)
HISTORICAL = Cohort(
    "historical",
    "The audit does not list this matrix as reference-indexed. One number of the earlier cohorts, "
    "the crossing of 0.8 near iteration 384 on unit-scale Catch, is close to that of chained "
    "actions; `rulescope run agent-identity` tests the choice.",
)
CONVENTIONS = Cohort(
    "historical",
    "The audit does not list this comparison as reference-indexed. One of its cells, live against "
    "pinned at reward scale 1,000, has a gap of 0.81 of the span, as chained actions have, where "
    "the reference-indexed table has none; `rulescope run agent-identity` tests the choice.",
)
LADDER = Cohort(
    "legacy",
    "The audit calls this ladder historical and prints none of its numbers, so nothing tests the "
    "choice.",
)
EVENTS = Cohort(
    "published",
    "Neither the list of reference-indexed matrices nor a printed number tells which agent made "
    "this cohort.",
)
UNPUBLISHED = Cohort(
    "published",
    "This assay is not one of the published audit; it has the agent of the published lifetimes "
    "that are among its own.",
)
NO_DISCO = Cohort("", "No learner of this assay is a Disco learner.")
EVERY_AGENT = Cohort("", "This assay runs every candidate agent.")
