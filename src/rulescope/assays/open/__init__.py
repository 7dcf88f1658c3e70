"""OPEN, a learned optimiser: what its carry is worth, after its capability gate."""
