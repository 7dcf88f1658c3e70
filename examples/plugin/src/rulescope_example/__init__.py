"""A rule and a world for Rulescope, to copy and change."""
