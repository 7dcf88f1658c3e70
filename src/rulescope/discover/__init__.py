"""Discovery of update rules: meta-gradients through the learning of a population of agents.

- ``discovery_spec``: the specification; ``recipes``: specifications with a name;
- ``world_mix``, ``experience``, ``population``: worlds, replay and learning of the agents;
- ``critic``, ``objective``: advantages of fresh experience, and the meta-loss;
- ``rule_weights``, ``meta_training``, ``discovery_runner``: the rule, meta-steps, files.
"""
