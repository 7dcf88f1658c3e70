"""Mechanism: what happens inside of lifetimes, where the assays tell what comes of it.

Three views look at ordinary lifetimes without changing them (see ``docs/mechanism.md``). Each has
a pure computation, a way of looking, and a figure.
"""
