"""Change within a lifetime: E3, E-A4x, E-A4m."""
