"""Discovery of update rules: meta-gradients through the learning of a population of agents."""
