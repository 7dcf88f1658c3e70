"""Reward scale: the window of scales (E1), and explicit normalisation (E-POP)."""
