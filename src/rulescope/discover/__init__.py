"""Discovery of update rules: meta-gradients through the learning of a population of agents.

- ``discovery_spec``: the specification; ``recipes``: specifications with a name;
- ``experience``, ``population``: worlds, replay and learning of the agents;
- ``critic``, ``objective``: advantages of fresh experience, and the meta-loss;
- ``rule_tensors``, ``meta_training``, ``discovery_runner``: the rule, meta-steps, files.

``evolution_strategy`` is a search without gradients; no recipe or command uses it yet.
"""
