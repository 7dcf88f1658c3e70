"""Rule weights, released, embedded and random.

- ``rule_weights``: loads weights by name, from files or from a seed (the null rule)
- ``released_rules``, ``embedded``: names and pinned sha256; ``weight_files``: search and download
- ``disco_format``: the arrays of a Disco rule; ``open``: OPEN as a torch optimiser
"""
