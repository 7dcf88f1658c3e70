"""Mechanism: views of what happens inside a lifetime (assays measure its outcome).

A view observes ordinary lifetimes without changing them (see ``docs/mechanism.md``). Each view is
a module with its runs, observer, analysis and table, beside a module with its figure:

- ``trajectory_view``, ``trajectory_figure``: the path of the rule's recurrent state;
- ``targets_view``, ``targets_figure``: the rule's targets under another recurrent state;
- ``replay_view``, ``replay_figure``: the age of replayed experience around a change of the world.

``views`` lists them by name, ``instrumented_runs`` runs and observes their lifetimes, and
``view_folder`` writes and reads their results.
"""
