"""Two published methods as rules for Rulescope, to copy and change."""
