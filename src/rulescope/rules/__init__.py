"""Rule weights: which rules are released, where their files are, and how they are read safely."""
