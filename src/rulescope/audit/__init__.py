"""The audit of a rule along five axes: which assays, and the profile that results."""
