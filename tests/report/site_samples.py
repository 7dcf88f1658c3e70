"""A small store of made-up lifetimes: an assay, a donor, and its recipient, a hostile record.

Beside it the results of a mechanism view, of two rules.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from made_up_records import fill, made_up
from mechanism.sample_observations import trajectory_observations
from report.ledger_samples import ledger
from rulescope import assays
from rulescope.assays import Selection, narrowed
from rulescope.assays.assay_run import folder_name
from rulescope.assays.plan import Plan
from rulescope.audit.profile import PINNED, RULE, Answer, Axis, Measure, Profile, ProfileValue
from rulescope.learners.disco_config import Disco
from rulescope.mechanism import trajectory_view
from rulescope.mechanism import view_folder as folders
from rulescope.mechanism.view_request import ViewRequest
from rulescope.records import Record, RuleIdentity, Store
from rulescope.report import report_inputs, site_builder
from rulescope.report.site_model import Site
from rulescope.run_spec import RunSpec, Transplant

ASSAY = assays.ASSAYS["E-POP"]
BUDGET = narrowed(ASSAY, ASSAY.budget("smoke"), Selection(seeds=3))
PLAN = Plan.of(ASSAY, BUDGET)
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'"
DONOR = RunSpec(learner=Disco(rule="random:1"), iterations=30, log_every=10, world_seed=7)
RECIPIENT = RunSpec(
    learner=Disco(rule="random:1"),
    iterations=30,
    log_every=10,
    interventions=(Transplant(carrier="recurrent", donor=DONOR, mode="clamp"),),
)
ASKED = ViewRequest("random:0", (0.1, 10.0), 1, 40)
OTHERWISE = ViewRequest("random:3", (0.1, 10.0), 1, 40)
"""Requests of a mechanism view: under two rules, two lifetimes and two with a transplant each."""
WATCHED, ELSEWHERE = (next(iter(group.runs.values())) for group in trajectory_view.stages(ASKED)[0])
"""Two lifetimes that the store has; of the second, one that ended otherwise."""
EVERY = len(PLAN.runs) - 1 + 4
"""Lifetimes of the store, of which four are Disco's."""
RETURN = 123.456
"""Of every episode of the recipient, whose world has no scores."""
MISSING = next(iter(PLAN.runs))
"""A planned lifetime that was not run."""


def stored(folder: Path) -> Store:
    """Return a store in ``folder``."""
    store = Store(folder)
    fill(store, [run for key, run in PLAN.runs.items() if key != MISSING])
    store.commit(made_up(DONOR))
    store.commit(hostile(RECIPIENT))
    store.commit(made_up(WATCHED))
    store.commit(made_up(ELSEWHERE))
    return store


def results(folder: Path) -> Path:
    """Return ``folder`` with what a mechanism view left there, once for each of two rules."""
    for request in (ASKED, OTHERWISE):
        seen = [
            one._replace(
                science_hashes=dict.fromkeys(
                    one.science_hashes, made_up(WATCHED).manifest.science_hash
                )
            )
            if WATCHED in one.group.runs.values()
            else one
            for one in trajectory_observations(request)
        ]
        found = trajectory_view.analyse(request, seen)
        place = folder / folders.folder_name(trajectory_view.VIEW, request)
        folders.write_view(trajectory_view.VIEW, request, found, seen, place)
    return folder


def hostile(spec: RunSpec) -> Record:
    """Return a record whose texts are meant to break out of a page; it has returns, no scores."""
    like = made_up(spec)
    unknown = np.full_like(like.log["score"], np.nan)
    lasting = np.full_like(unknown, RETURN)
    returns = {"score": unknown, "rate_score": unknown, "mean_return": lasting}
    return Record.make(
        spec,
        {**like.log, **returns, "<b>column</b>": like.log["score"]},
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
    live, erased = (
        ProfileValue(0.9, 0.8, 1.0, 3, "bootstrap"),
        ProfileValue(0.2, 0.1, 0.4, 2, "range"),
    )
    one = {RULE: ProfileValue(0.7, None, None, 1, "none")}
    found = {RULE: live, PINNED: erased}
    measure = Measure("score", "Score at the end", "score", found, "E-POP", 2)
    gain = Measure("gain", "Gain", "score", one, "E9", 2, difference=True)
    axis = Axis("horizon", "How fast?", (measure, gain), f"Fast. {HOSTILE}")
    answer = Answer("asset", f"History: asset (decided by nothing). {HOSTILE}")
    return Profile("disco103", "smoke", "a learner", (axis,), ("a note",), answer=answer)


def other_profile() -> Profile:
    """Return the profile of a baseline without a history, with a lower score."""
    score = ProfileValue(0.5, 0.4, 0.6, 3, "bootstrap")
    measure = Measure("score", "Score at the end", "score", {RULE: score}, "E-POP", 2)
    answer = Answer("no history", "History: none.")
    return Profile(
        "a2c", "smoke", "a baseline", (Axis("horizon", "", (measure,), ""),), answer=answer
    )


def gathered(store: Store, left: Path | None = None) -> Site:
    """Return the report of ``store``, not yet written, with the views in the folder ``left``.

    Its verdicts on claims are made up: the lifetimes of ``store`` are too short for any.
    """
    views = ((), ()) if left is None else report_inputs.find_views(left)
    profiles = {"disco103": profile(), "a2c": other_profile()}
    site = site_builder.gather(store, folder_name, profiles=(profiles, ()), views=views)
    return replace(site, ledger=ledger())
