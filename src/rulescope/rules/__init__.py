"""Rule weights: the released rules, their files, and how they are read safely."""
