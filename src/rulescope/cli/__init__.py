"""The command line: one module per verb.

``main`` has the table of verbs; ``options``, ``selection_options``, ``engine_options`` and
``lifetime_options`` hold the options that verbs take; ``console`` and ``progress`` print.
"""
