"""Records: the results of runs, and the store that keeps them.

``record``                     a record: spec, log, terminal state, manifest; its three files
``migration``                  manifests of older versions
``checkpoint``                 the file of a run in progress
``store``, ``store_layout``    a folder of records; its names and paths
``quarantine``, ``cleanup``    damaged entries, and files left by crashed processes
``archive``, ``merge``         records in one file; records of one store copied into another
``columns``, ``index_shards``, ``index``, ``query``    SQL over all records
``sizes``, ``trackers``        disk use; export to TensorBoard and Weights & Biases
"""

from rulescope.records.quarantine import Quarantined
from rulescope.records.record import Logged, Manifest, Record, RuleIdentity, science_hash
from rulescope.records.store import ConflictError, Problem, Store

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
