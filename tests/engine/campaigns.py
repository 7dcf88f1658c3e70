"""Small runs for tests of the engines, with donors and recipients."""

from __future__ import annotations

import msgspec

from learners.small import small_spec
from rulescope.learners.baseline_config import A2C, NetworkSizes
from rulescope.records import Store
from rulescope.run_spec import RunSpec, Transplant

SMALL = small_spec(iterations=4, log_every=2)
LONG = msgspec.structs.replace(
    SMALL, learner=A2C(agent=NetworkSizes(hidden=(8, 8))), iterations=1500, log_every=100
)
DONOR = msgspec.structs.replace(SMALL, seed=7, scale=0.1)


def recipient(donor: RunSpec, seed: int = 0) -> RunSpec:
    """Return a run that receives the recurrent state of ``donor``."""
    item = Transplant(carrier="recurrent", donor=donor, mode="clamp")
    return msgspec.structs.replace(SMALL, seed=seed, interventions=(item,))


def hashes(specs: list[RunSpec], store: Store) -> list[str]:
    """Return the science hashes of the records of ``specs``."""
    return [store.read(spec.id).manifest.science_hash for spec in specs]
