"""Records of lifetimes: what one is (``record``), where it is kept (``store``), how it is found."""

from rulescope.records.record import Logged, Manifest, Record, RuleIdentity, science_hash
from rulescope.records.store import ConflictError, Problem, Quarantined, Store

__all__ = [
    "ConflictError",
    "Logged",
    "Manifest",
    "Problem",
    "Quarantined",
    "Record",
    "RuleIdentity",
    "Store",
    "science_hash",
]
