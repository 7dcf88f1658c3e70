"""Benchmarks; each states what it is compared with (see docs/speed.md).

- ``python -m benchmarks``: the time of an iteration beside its peers and the arithmetic limit.
- ``python -m benchmarks.analysis_time``: the analysis of a full-size assay.
- ``python -m benchmarks.engine_overhead``: the cost of running a lifetime through each engine.
"""
