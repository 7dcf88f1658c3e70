"""Records of lifetimes: what one is (``record``) and where it is kept (``store``)."""

from rulescope.records.record import Manifest, Record, RuleIdentity, science_hash
from rulescope.records.store import Problem, Quarantined, Store

__all__ = [
    "Manifest",
    "Problem",
    "Quarantined",
    "Record",
    "RuleIdentity",
    "Store",
    "science_hash",
]
