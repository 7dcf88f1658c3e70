"""The claims of the published audit: a ledger, verdicts from records, and what to run next.

- ``ledger``: the claims and their predicates as data
- ``decision``, ``record_evidence``, ``verdicts``: from records to a verdict
- ``calibration``: error rates and power of verdicts, by simulation
- ``compute_cost``, ``replication_queue``, ``replication``: a campaign that decides claims
- ``judged_ledger``: a verdict on every claim of a store
- ``ledger_tables``: verdicts as tables, plain data and words
- ``exact_checks``: the claims that code decides without a campaign, by id
- ``interface_checks``, ``design_checks``, ``printed_checks``, ``run_checks``: their four kinds
- ``exact_result``, ``exact_verdicts``: what a check needs and returns, and its verdict
- ``printed_numbers``: numbers of the published text that are in no table (``printed.json``)
"""
