"""Exploration in DeepSea: E-A5, ladder, discovery, F1."""
