"""A small store of made-up lifetimes: an assay, a donor, and its recipient, a hostile record."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rulescope import assays
from rulescope.assays import narrowed
from rulescope.audit.profile import RULE, WITHOUT, Axis, Figure, Measure, Profile
from rulescope.bench.synthetic import fill, made_up
from rulescope.cli.choosing import folder_name
from rulescope.learners.disco.config import Disco
from rulescope.plan import Plan
from rulescope.records import Record, RuleIdentity, Store
from rulescope.report import site
from rulescope.report.site.model import Site
from rulescope.spec import RunSpec, Transplant

ASSAY = assays.ASSAYS["E-POP"]
BUDGET = narrowed(ASSAY, ASSAY.budget("smoke"), seeds=3)
PLAN = Plan.of(ASSAY, BUDGET)
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'"
DONOR = RunSpec(learner=Disco(rule="random:1"), iterations=30, log_every=10, world_seed=7)
RECIPIENT = RunSpec(
    learner=Disco(rule="random:1"),
    iterations=30,
    log_every=10,
    interventions=(Transplant(carrier="recurrent", donor=DONOR, mode="clamp"),),
)
MISSING = next(iter(PLAN.runs))
"""A planned lifetime that was not lived."""


def stored(folder: Path) -> Store:
    """Return a store in ``folder``."""
    store = Store(folder)
    fill(store, [run for key, run in PLAN.runs.items() if key != MISSING])
    store.commit(made_up(DONOR))
    store.commit(hostile(RECIPIENT))
    return store


def hostile(spec: RunSpec) -> Record:
    """Return a record whose texts are meant to break out of a page."""
    like = made_up(spec)
    return Record.make(
        spec,
        {**like.log, "<b>column</b>": like.log["score"]},
        like.state,
        source={"version": HOSTILE, "commit": None, "dirty": None},
        runtime={"cpu": HOSTILE, "made up": True},
        rule=RuleIdentity(name=HOSTILE, sha256="0" * 64, digest="0" * 64),
        started=datetime(2000, 1, 1, tzinfo=UTC),
        seconds=1.5,
        inherited={DONOR.id: "0" * 64},
    )


def profile() -> Profile:
    """Return the profile of an audit."""
    lived, erased = Figure(0.9, 0.8, 1.0, 3, "bootstrap"), Figure(0.2, 0.1, 0.4, 2, "range")
    one = {RULE: Figure(0.7, None, None, 1, "none")}
    found = {RULE: lived, WITHOUT: erased}
    measure = Measure("score", "Score at the end", "score", found, "E-POP", 2)
    gain = Measure("gain", "Gain", "score", one, "E9", 2, difference=True)
    axis = Axis("horizon", "How fast?", (measure, gain), f"Fast. {HOSTILE}")
    return Profile("disco103", "smoke", "a learner", (axis,), ("a note",))


def gathered(store: Store) -> Site:
    """Return the report of ``store``, not yet written."""
    return site.gather(store, folder_name, profiles={"disco103": profile()})
