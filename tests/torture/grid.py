"""The runs of the stress tests: short chains, in which each run is the donor of the next."""

from __future__ import annotations

import msgspec

from rulescope.envs.world_config import Catch
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.learners.disco_config import AgentSizes, Disco
from rulescope.learners.learner_config import LearnerSpec
from rulescope.records import Store
from rulescope.records.record import decode
from rulescope.run_spec import Mode, RunSpec, Transplant, with_donors

SEEDS = 3
A2C_CHAIN, DISCO_CHAIN = 5, 3
"""Runs per chain: each but the first starts with a carrier of the one before."""


def grid(seeds: int = SEEDS) -> dict[str, RunSpec]:
    """Return eight runs per seed by id, donors first: real learners of small size."""
    a2c = A2C(agent=NetworkSizes(hidden=(16, 16)))
    sizes = AgentSizes(hidden=(32, 32), model=16, head=16)
    disco = Disco(rule="random:20240", agent=sizes, batch=4, capacity=16)
    final = [
        spec
        for seed in range(seeds)
        for spec in (
            _chain(a2c, "params", seed, A2C_CHAIN, iterations=300),
            _chain(disco, "recurrent", seed, DISCO_CHAIN, iterations=16),
        )
    ]
    return with_donors(final)


def _chain(
    learner: LearnerSpec, carrier: str, seed: int, generations: int, iterations: int
) -> RunSpec:
    """Return the last run of a chain of ``generations``."""
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
    transplant = Transplant(carrier=carrier, donor=donor, mode=mode)
    return msgspec.structs.replace(spec, interventions=(transplant,))


def hashes(store: Store) -> dict[str, str]:
    """Return the science hash of every record by id; a damaged one raises and is not moved."""
    return {run: decode(run, store.files(run)).manifest.science_hash for run in store.ids()}
