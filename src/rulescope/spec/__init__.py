"""Specifications of runs: configurations of worlds and learners, and interventions."""
