"""The claims of the published audit, as data, and the evidence for and against each.

- ``exact_checks``: the claims that code decides without a campaign, by id
- ``interface_checks``, ``design_checks``, ``printed_checks``, ``run_checks``: their four kinds
- ``exact_result``: what a check needs and returns
- ``printed_numbers``: numbers of the published text that are in no table (``printed.json``)
"""
