"""Results for people to look at: curves in the terminal and figures on disk."""
