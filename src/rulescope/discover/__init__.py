"""Discovery of update rules: by meta-gradients through the learning of agents, or by evolution.

By meta-gradients (rules of Disco):

- ``discovery_spec``: the specification; ``recipes``: specifications with a name;
- ``experience``, ``population``: worlds, replay and learning of the agents;
- ``critic``, ``objective``: advantages of fresh experience, and the meta-loss;
- ``rule_tensors``, ``meta_training``, ``discovery_runner``: the rule, meta-steps, files.

By evolution (rules of LPG and LPO):

- ``evolution_spec``: the specification; ``evolution_recipes``: specifications with a name;
- ``batched_worlds``, ``stacked_agents``, ``candidate_rules``, ``batched_lifetimes``: whole
  lifetimes under many candidate rules at once;
- ``imitation``: the warm start of LPG;
- ``evolution_strategy``, ``evolution_training``, ``fitness_workers``, ``evolution_runner``: the
  search, generations and validations, worker processes, files.
"""
