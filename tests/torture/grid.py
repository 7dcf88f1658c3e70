"""The lifetimes that are tortured: short ones, which inherit from one another in chains."""

from __future__ import annotations

import msgspec

from rulescope.records import Store
from rulescope.records.record import decode
from rulescope.spec.baseline_config import A2C, NetworkSizes
from rulescope.spec.disco_config import AgentSizes, Disco
from rulescope.spec.learner_config import LearnerSpec
from rulescope.spec.run_spec import Mode, RunSpec, Transplant, with_donors
from rulescope.spec.world_config import Catch

SEEDS = 3
A2C_CHAIN, DISCO_CHAIN = 5, 3
"""Generations: each but the first begins with what the one before it ended with."""


def grid(seeds: int = SEEDS) -> dict[str, RunSpec]:
    """Return eight lifetimes a seed by id, donors first: real learners, everything little."""
    a2c = A2C(agent=NetworkSizes(hidden=(16, 16)))
    sizes = AgentSizes(hidden=(32, 32), model=16, head=16)
    disco = Disco(rule="random:20240", agent=sizes, batch=4, capacity=16)
    last = [
        spec
        for seed in range(seeds)
        for spec in (
            _chain(a2c, "params", seed, A2C_CHAIN, iterations=300),
            _chain(disco, "recurrent", seed, DISCO_CHAIN, iterations=16),
        )
    ]
    return with_donors(last)


def _chain(
    learner: LearnerSpec, carrier: str, seed: int, generations: int, iterations: int
) -> RunSpec:
    """Return the youngest of ``generations``."""
    spec = RunSpec(
        learner=learner,
        environment=Catch(rows=5, columns=5),
        iterations=iterations,
        log_every=4,
        steps=6,
        seed=seed,
        keep=(carrier,),
    )
    if generations == 1:
        return spec
    donor = _chain(learner, carrier, seed, generations - 1, iterations)
    mode: Mode = "clamp" if carrier == "recurrent" and generations == 2 else "natural"
    heritage = Transplant(carrier=carrier, donor=donor, mode=mode)
    return msgspec.structs.replace(spec, interventions=(heritage,))


def hashes(store: Store) -> dict[str, str]:
    """Return the science hash of every record by id; one that is not whole raises, and stays."""
    return {run: decode(run, store.files(run)).manifest.science_hash for run in store.ids()}
