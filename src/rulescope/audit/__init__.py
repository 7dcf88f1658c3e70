"""The audit of a rule along five axes: which assays, and the one profile that they come to."""
