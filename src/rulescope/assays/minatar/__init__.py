"""MinAtar: reward scale (M1), masked ends, and learners side by side."""
